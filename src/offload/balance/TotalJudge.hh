#pragma once
/// \file
/// Whether a move of all workers to devices was right, judged by the rate of all. Costs cannot tell: packets that go to
/// devices may make those on the CPU dearer, for they share memory and caches, and without devices they would cost less than is
/// seen beside them. One worker's rate cannot tell, either: what it does alone changes little of that.

#include <algorithm>
#include <utility>

#include "offload/balance/Pause.hh"
#include "offload/balance/RateMean.hh"

namespace headrace::balance {

/// Times in nanoseconds, rates in packets a second.
class TotalJudge {
 public:
  /// What all workers did since the last step.
  /// \param backlogged packets waited for each of them: the rate is all that they can do
  /// \param share the part of the packets that went to devices
  /// \param on_cpu the rate that the CPU would have, by what packets there cost now
  void see(double rate, double ns, double now, bool backlogged, double share, double on_cpu) {
    const bool uses = share > kUses;
    if (uses && !uses_) moved_.begin(now);
    if (!uses && uses_) left_ns_ = now;
    uses_ = uses;
    if (!backlogged) {
      // Other work arrives: what was seen says nothing about it.
      if (!uses) alone_ = {};
      moved_.on = false;
      return;
    }
    if (!uses) {
      if (now >= left_ns_ + kSettle) {
        alone_.add(rate, ns, kHold);
        alone_ns_ = now;
      }
      see_alone(rate, ns, now);
      return;
    }
    if (!moved_.on || now < moved_.since + kConverge) return;
    if (now > moved_.since + kTrial) moved_.on = false;
    moved_.seen.add(rate, ns, kWindow);
    const bool known = alone_.ns >= kWindow && alone_ns_ > moved_.since - kTrial;
    if (!known || moved_.seen.ns < kWindow || now < trusted_until_ || moved_.seen.rate >= kLow * alone_.rate) return;
    // Packets that are much dearer on the CPU than devices can make them are other packets.
    if (on_cpu < kDearer * moved_.seen.rate) return;
    before_ = alone_.rate;
    after_ = moved_.seen.rate;
    pause_.begin(now);
    moved_.on = false;
    back_.begin(now);
  }

  /// Devices lowered the rate, and are not to be used now.
  bool refuses(double now) const { return !pause_.over(now); }
  double before() const { return before_; }
  double after() const { return after_; }

 private:
  static constexpr double kUses = 0.01, kLow = 0.96;
  static constexpr double kSettle = 15e6, kCold = 30e6, kConverge = 500e6, kWindow = 40e6, kHold = 150e6,
                          kTrial = 1000e6, kTrust = 1e9;
  /// Of the rate with devices: what the CPU would do at least by the costs seen beside them, if devices are what made these
  /// so high.
  static constexpr double kDearer = 0.85;
  /// Less than this part of the rate before: other packets arrive.
  static constexpr double kOther = 0.8;

  struct Trial {
    bool on = false;
    double since = 0;
    RateMean seen{};
    void begin(double now) { *this = {.on = true, .since = now}; }
  };

  /// Is it better without devices? Or has the traffic become dearer, on any side?
  void see_alone(double rate, double ns, double now) {
    if (!refuses(now) || now < back_.since + kSettle) return;
    // Caches take some time to be as they were.
    const bool much_worse = back_.on && rate < kOther * after_;
    if (now >= back_.since + kCold) back_.seen.add(rate, ns, kWindow);
    if (back_.seen.ns < kWindow && !much_worse) return;
    const bool worse = much_worse || (std::exchange(back_.on, false) && back_.seen.rate < after_);
    if (worse) trusted_until_ = now + kTrust;
    if (worse || back_.seen.rate < kOther * before_) pause_.cancel(now);
  }

  bool uses_ = false;
  RateMean alone_;       ///< the rate without devices
  double alone_ns_ = 0;  ///< when that was seen last
  double left_ns_ = 0;   ///< when devices were used last
  Trial moved_;          ///< to devices
  Trial back_;           ///< from devices that lowered the rate
  Pause pause_{1e9};     // longer than a trial takes
  double before_ = 0, after_ = 0, trusted_until_ = 0;
};

}  // namespace headrace::balance
