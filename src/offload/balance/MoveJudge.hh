#pragma once
/// \file
/// Whether a worker's move to devices was right, judged by its rate. Costs in cycles cannot tell: where a device is
/// emulated on the worker's own CPU, or the worker shares it with a driver's threads, each side's cycles contain the
/// other's.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "offload/balance/Pause.hh"

namespace headrace::balance {

/// Of one worker. Times in nanoseconds, rates in packets a second.
class MoveJudge {
 public:
  explicit MoveJudge(size_t devices = 0) : used_(devices, false), moved_to_(devices, false), pauses_(devices) {}

  /// \param backlogged packets waited for the worker: its rate is all that it can do
  /// \param waits it waits for devices for much of its time: it gives them too much, as long as it is not known how
  ///     much they take
  void see(double rate, double ns, double now, bool backlogged, bool waits) {
    held_.add(rate, ns, kHold);
    last_ = rate;
    if (phase_ == Phase::kNone || now < since_ + kSettle) return;
    if (waits && phase_ == Phase::kMoved && now < since_ + kLearn) return;
    if (backlogged) seen_.add(rate, ns, kWindow);
    const bool enough = seen_.ns >= kWindow;
    if (phase_ == Phase::kMoved) {
      if (enough && seen_.rate < kLow * wanted_) {
        for (size_t d = 0; d < pauses_.size(); ++d)
          if (moved_to_[d]) pauses_[d].begin(now);
        before_ = wanted_;
        after_ = seen_.rate;
        begin(Phase::kBack, now);
      } else if (now > since_ + kTrial) {
        phase_ = Phase::kNone;
      }
    } else if (enough || now > since_ + kTrial) {
      // Is it better without the devices? Or has the traffic become dearer, on either side?
      if (enough && seen_.rate * kLow < after_) {
        for (size_t d = 0; d < pauses_.size(); ++d)
          if (moved_to_[d]) pauses_[d].cancel(now);
        trusted_until_ = now + kTrust;
      }
      phase_ = Phase::kNone;
    }
  }

  /// The devices that the worker uses from now on, and the rate that its costs promise.
  void decide(const std::vector<bool>& used, double expected, double now) {
    bool more = false, left = true;
    for (size_t d = 0; d < used.size(); ++d) {
      more |= used[d] && !used_[d];
      left &= !(used[d] && moved_to_[d]);
    }
    if (more && held_.ns > 0 && now >= trusted_until_) {
      for (size_t d = 0; d < used.size(); ++d) moved_to_[d] = used[d] && !used_[d];
      // What has become dearer just before the move is no fault of the move.
      wanted_ = std::min({held_.rate, last_, expected});
      begin(Phase::kMoved, now);
    } else if (phase_ == Phase::kMoved && left) {
      phase_ = Phase::kNone;
    }
    used_ = used;
  }

  /// The device lowered the rate, and is not to be used now.
  bool refuses(size_t device, double now) const { return !pauses_[device].over(now); }
  double before() const { return before_; }
  double after() const { return after_; }

 private:
  /// A mean in which what is older than `window` counts little.
  struct Mean {
    double rate = 0, ns = 0;
    void add(double r, double span, double window) {
      const double old = std::min(ns, window);
      rate = (rate * old + r * span) / (old + span);
      ns += span;
    }
  };
  enum class Phase { kNone, kMoved, kBack };
  static constexpr double kHold = 50e6, kSettle = 15e6, kLearn = 100e6, kWindow = 20e6, kTrial = 300e6, kTrust = 1e9;
  static constexpr double kLow = 0.8;

  void begin(Phase phase, double now) {
    phase_ = phase;
    since_ = now;
    seen_ = {};
  }

  std::vector<bool> used_, moved_to_;  ///< by device
  std::vector<Pause> pauses_;          ///< likewise
  Phase phase_ = Phase::kNone;
  Mean held_, seen_;  ///< the rate, and that since the last move
  double last_ = 0, since_ = 0, wanted_ = 0, before_ = 0, after_ = 0, trusted_until_ = 0;
};

}  // namespace headrace::balance
