#pragma once
/// \file
/// How long jobs of different sizes take on a device that has nothing else to do.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace headrace::balance {

/// The shortest times that were seen, by size, and what follows for sizes that were not. A job takes some time whatever
/// its size, and some for each packet: how much of either differs by a hundred times between a lookup, which a device does
/// for all packets at once, and a scan, which it does one packet after the other.
class JobTimes {
 public:
  /// Jobs of `packets` on average took `ns` on average.
  void add(double packets, double ns) {
    if (!(packets >= 1) || !(ns > 0)) return;
    const size_t i = std::min(static_cast<size_t>(std::lround(std::log2(packets) * kPerDoubling)), kSizes - 1);
    Size& size = sizes_[i];
    size.seen = true;
    if (size.ns > 0 && ns >= size.ns && size.doubt >= 1) return;
    if (size.doubt < 1) size.per_second = ns > kSame * size.ns ? std::max(0.5 * size.per_second, kSlowest) : kFastest;
    size.packets = packets;
    size.ns = ns;
    size.doubt = 1;
  }
  /// Some time has passed. Shortest times grow a little. What was not seen since may have been seen at a bad time: it is
  /// believed to be less and less, until it is tried again; more slowly each time that it was no less.
  void pass(double seconds) {
    for (Size& size : sizes_) {
      if (size.ns <= 0) continue;
      if (std::exchange(size.seen, false))
        size.ns *= 1 + kGrowth * seconds;
      else
        size.doubt = std::max(size.doubt * (1 - size.per_second * seconds), kLeastDoubt);
    }
  }
  /// What add() would have to be told to know as much: packets and nanoseconds.
  std::vector<std::pair<double, double>> seen() const {
    std::vector<std::pair<double, double>> all;
    for (const Size& size : sizes_)
      if (size.ns > 0) all.emplace_back(size.packets, size.ns);
    return all;
  }
  bool known() const {
    return std::any_of(sizes_.begin(), sizes_.end(), [](const Size& s) { return s.ns > 0; });
  }

  /// The time that a job of `packets` takes, in nanoseconds; 0: nothing is known. Where two sizes were seen, they tell how
  /// others do. From a single one, sizes up to twice as large are guessed so that it is worth while to try them, which
  /// tells; beyond that, to be safe, they take longer by as much as they are larger.
  double of(double packets) const { return of(packets, true); }

  /// The same, by all that was seen, but no more than smaller sizes tell: one that was only seen in a full device took
  /// longer than it does.
  double at_least(double packets) const {
    const Size *small = nullptr, *large = nullptr;
    for (const Size& size : sizes_) {
      if (size.ns <= 0 || 2 * size.packets > packets) continue;
      if (large == nullptr || size.packets >= 2 * large->packets) small = std::exchange(large, &size);
    }
    const double seen = of(packets, false);
    if (small == nullptr || small->ns > large->ns) return seen;
    return std::min(seen, large->ns + slope(*small, *large) * (packets - large->packets));
  }

 private:
  static constexpr double kFastest = 2, kSlowest = 0.02, kSame = 0.9;
  struct Size {
    double packets = 0, ns = 0;
    double doubt = 1;              ///< part of the time that is believed
    double per_second = kFastest;  ///< by which that becomes less
    bool seen = false;             ///< since time passed last
  };
  static double slope(const Size& a, const Size& b) { return (b.ns - a.ns) / std::max(b.packets - a.packets, 1.0); }

  double of(double packets, bool doubts) const {
    // A larger job takes no less time. Where that is not what was seen, what was seen last is believed.
    std::array<Size, kSizes> seen;
    size_t n = 0;
    for (const Size& size : sizes_) {
      if (size.ns <= 0) continue;
      Size now = size;
      if (doubts) now.ns *= size.doubt;
      if (n > 0 && now.doubt < 1) now.ns = std::max(now.ns, seen[n - 1].ns);
      while (n > 0 && seen[n - 1].ns > now.ns) --n;
      seen[n++] = now;
    }
    if (n == 0) return 0;
    const Size &first = seen[0], &last = seen[n - 1];
    if (packets >= last.packets) {
      const double part = packets / last.packets;
      if (n > 1 && last.packets >= 2 * seen[n - 2].packets)
        return std::min(last.ns * part, last.ns + slope(seen[n - 2], last) * (packets - last.packets));
      return last.ns * (kFixed + (1 - kFixed) * std::min(part, 2.0)) * std::max(part / 2, 1.0);
    }
    if (packets <= first.packets) {
      const double part = packets / first.packets;
      if (n > 1 && seen[1].packets >= 2 * first.packets)
        return std::clamp(first.ns - slope(first, seen[1]) * (first.packets - packets), first.ns * part, first.ns);
      return first.ns * (kFixed + (1 - kFixed) * part);
    }
    size_t i = 1;
    while (seen[i].packets < packets) ++i;
    return seen[i - 1].ns + slope(seen[i - 1], seen[i]) * (packets - seen[i - 1].packets);
  }

  static constexpr double kPerDoubling = 2, kFixed = 0.4, kGrowth = 0.05, kLeastDoubt = 0.5;
  static constexpr size_t kSizes = 34;  // up to 92681 packets, two for each doubling

  std::array<Size, kSizes> sizes_{};
};

}  // namespace headrace::balance
