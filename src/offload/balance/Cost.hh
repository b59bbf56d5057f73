#pragma once
/// \file
/// What a packet costs, as seen from samples.

#include <cmath>

namespace headrace::balance {

/// Cycles per packet: a mean in which each sample counts less than the one behind it. Two samples in a row that lie far
/// off begin it anew.
class Cost {
 public:
  /// \param few it is a sample of few packets, of which more are needed to know as much
  /// \returns true if it is another than before
  bool add(double cycles, double packets, double at_ns, bool few = false) {
    if (!(packets > 0) || !(cycles >= 0)) return false;
    constexpr double kFar = 0.25;
    const double kept = few ? 0.9 : 0.7;
    const double here = cycles / packets;
    far_ = known() && std::abs(here - mean()) > kFar * mean() ? far_ + 1 : 0;
    double keep = far_ >= 2 ? 0 : kept;
    // Behind samples of many packets, one of few counts as it does behind others of few.
    if (few && packets_ * (1 - kept) > packets) keep *= packets / (packets_ * (1 - kept));
    if (far_ >= 2) far_ = samples_ = 0;
    if (++samples_ == 1) began_ns_ = at_ns;
    cycles_ = cycles_ * keep + cycles;
    packets_ = packets_ * keep + packets;
    at_ns_ = at_ns;
    if (before_ <= 0) before_ = mean();
    off_ = std::abs(mean() - before_) > kFar * before_ ? off_ + 1 : 0;
    if (off_ < 2) return false;
    before_ = mean();
    off_ = 0;
    return true;
  }
  bool known() const { return packets_ > 0; }
  double mean() const { return packets_ > 0 ? cycles_ / packets_ : 0; }
  double at_ns() const { return at_ns_; }
  /// Of the first sample since it last began anew.
  double began_ns() const { return began_ns_; }
  /// Since it last began anew.
  int samples() const { return samples_; }
  /// The last sample was far off.
  bool suspect() const { return far_ > 0; }

 private:
  double cycles_ = 0, packets_ = 0, at_ns_ = 0, began_ns_ = -1e18;
  double before_ = 0;  ///< the mean when it last was another
  int far_ = 0, off_ = 0, samples_ = 0;
};

}  // namespace headrace::balance
