#pragma once
/// \file
/// Whether a worker's move to devices was right, judged by its rate. Costs in cycles cannot tell: where a device is
/// emulated on the worker's own CPU, or the worker shares it with a driver's threads, each side's cycles contain the
/// other's.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "offload/balance/Pause.hh"
#include "offload/balance/RateMean.hh"

namespace headrace::balance {

/// Of one worker. Times in nanoseconds, rates in packets a second.
class MoveJudge {
 public:
  explicit MoveJudge(size_t devices = 0)
      : used_(devices, false), moved_{.devices = used_}, back_{.devices = used_}, pauses_(devices) {}

  /// \param backlogged packets waited for the worker: its rate is all that it can do
  /// \param waits it waits for devices for much of its time: it gives them too much, as long as it is not known how
  ///     much they take
  void see(double rate, double ns, double now, bool backlogged, bool waits) {
    held_.add(rate, ns, kHold);
    last_ = rate;
    if (waits && moved_.on && now < moved_.since + kLearn) return;
    judge_move(rate, backlogged ? ns : 0, now);
    judge_back(rate, backlogged ? ns : 0, now);
  }

  /// The devices that the worker uses from now on, and the rate that its costs promise.
  /// \param left if what it did last is not known: the part of their rates that other workers still have; else 1
  void decide(const std::vector<bool>& used, double expected, double left, double now) {
    bool more = false, moved_on = true;
    for (size_t d = 0; d < used.size(); ++d) {
      more |= used[d] && !used_[d];
      moved_on &= !(used[d] && moved_.devices[d]);
      back_.on &= !(used[d] && back_.devices[d]);
    }
    if (more && held_.ns > 0 && now >= trusted_until_) {
      for (size_t d = 0; d < used.size(); ++d) moved_.devices[d] = used[d] && !used_[d];
      // What has become dearer just before the move is no fault of the move.
      wanted_ = std::min({held_.rate, left * last_, expected});
      moved_.begin(now);
    } else if (moved_on) {
      moved_.on = false;
    }
    used_ = used;
  }

  /// The device lowered the rate, and is not to be used now.
  bool refuses(size_t device, double now) const { return !pauses_[device].over(now); }
  double before() const { return before_; }
  double after() const { return after_; }

 private:
  static constexpr double kHold = 50e6, kSettle = 15e6, kLearn = 100e6, kWindow = 20e6, kTrial = 300e6, kTrust = 1e9;
  static constexpr double kLow = 0.8;

  /// What the worker does since it began to use some devices, or since it left them.
  struct Trial {
    std::vector<bool> devices{};
    bool on = false;
    double since = 0;
    RateMean seen{};
    void begin(double now) {
      on = true;
      since = now;
      seen = {};
    }
    /// \returns true if it is time to judge
    bool see(double rate, double ns, double now) {
      if (!on || now < since + kSettle) return false;
      if (ns > 0) seen.add(rate, ns, kWindow);
      return enough() || now > since + kTrial;
    }
    bool enough() const { return seen.ns >= kWindow; }
  };

  void judge_move(double rate, double ns, double now) {
    if (!moved_.see(rate, ns, now)) return;
    if (moved_.enough() && moved_.seen.rate < kLow * wanted_) {
      for (size_t d = 0; d < pauses_.size(); ++d) {
        if (moved_.devices[d]) pauses_[d].begin(now);
        // What it left for these says as little as they do.
        back_.devices[d] = moved_.devices[d] || (back_.on && back_.devices[d]);
      }
      before_ = wanted_;
      after_ = moved_.seen.rate;
      moved_.on = false;
      back_.begin(now);
    } else if (now > moved_.since + kTrial) {
      moved_.on = false;
    }
  }

  void judge_back(double rate, double ns, double now) {
    if (!back_.see(rate, ns, now)) return;
    back_.on = false;
    // Is it better without the devices? Or has the traffic become dearer, on any side?
    if (!back_.enough() || back_.seen.rate * kLow >= after_) return;
    for (size_t d = 0; d < pauses_.size(); ++d)
      if (back_.devices[d]) pauses_[d].cancel(now);
    trusted_until_ = now + kTrust;
  }

  std::vector<bool> used_;     ///< by device
  Trial moved_;                ///< to devices
  Trial back_;                 ///< from those that lowered the rate, to the CPU or to others
  std::vector<Pause> pauses_;  ///< by device
  RateMean held_;              ///< the rate
  double last_ = 0, wanted_ = 0, before_ = 0, after_ = 0, trusted_until_ = 0;
};

}  // namespace headrace::balance
