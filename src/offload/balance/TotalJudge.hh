#pragma once
/// \file
/// Whether a move of all workers to devices was right, judged by the rate of all. Costs cannot tell: packets that go to
/// devices may make those on the CPU dearer, for they share memory and caches, and without devices they would cost less than is
/// seen beside them. One worker's rate cannot tell, either: what it does alone changes little of that. So what the CPU does
/// alone is tried now and then, for less than a tenth of a second, where it may be enough.

#include <algorithm>
#include <cmath>
#include <utility>

#include "offload/balance/Pause.hh"
#include "offload/balance/RateMean.hh"

namespace headrace::balance {

/// Times in nanoseconds, rates in packets a second.
class TotalJudge {
 public:
  /// What all workers did since the last step.
  /// \param backlogged packets waited for each of them: the rate is all that they can do
  /// \param share the part of the packets that the balancer has sent to devices
  /// \param on_cpu the rate that the CPU would have, by what packets there cost now
  /// \param tries whether all may leave devices only to see what the CPU does alone
  void see(double rate, double ns, double now, bool backlogged, double share, double on_cpu, bool tries = true) {
    const bool uses = share > kUses;
    if (uses && !uses_) {
      moved_.begin(now);
      beside_costs_ = {};
      begin_wait(now);
    }
    if (!uses && uses_) left_ns_ = now;
    uses_ = uses;
    if (!backlogged) {
      // Other work arrives: what was seen says nothing about it.
      if (!uses) alone_ = {};
      moved_.on = false;
      hopeless_ns_ = now;
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
    if (back_.on && now > back_.since + kConverge) {
      // Devices are used all the same: there is nothing to see.
      back_.on = false;
      pause_.cancel(now);
    }
    look_at_change(rate, ns, now);
    compare_costs(on_cpu, ns, now);
    if (!tries || refuses(now) || on_cpu * dearer_ < kHopeful * beside_.rate) hopeless_ns_ = now;
    if (wait_.over(now) && now >= hopeless_ns_ + kWindow) {
      before_ = beside_.rate;
      leave(beside_.rate, now);
      wait_.begin(now);
      return;
    }
    if (!moved_.on || now < moved_.since + kConverge) return;
    if (now > moved_.since + kTrial) moved_.on = false;
    moved_.seen.add(rate, ns, kWindow);
    if (!is_alone_known() || moved_.seen.ns < kWindow || now < trusted_until_ || moved_.seen.rate >= kLow * alone_.rate)
      return;
    // Packets that are much dearer on the CPU than devices can make them are other packets.
    if (on_cpu < kDearer * moved_.seen.rate) return;
    before_ = alone_.rate;
    leave(moved_.seen.rate, now);
  }

  /// Devices lowered the rate, and are not to be used now.
  bool refuses(double now) const { return !pause_.over(now); }
  double before() const { return before_; }
  double after() const { return after_; }

 private:
  static constexpr double kUses = 0.01, kLow = 0.96;
  static constexpr double kSettle = 15e6, kCold = 30e6, kLearn = 100e6, kConverge = 500e6, kWindow = 40e6,
                          kHold = 150e6, kTrial = 1000e6, kTrust = 1e9;
  /// Of the rate with devices: what the CPU would do at least by the costs seen beside them, if devices are what made these
  /// so high.
  static constexpr double kDearer = 0.85;
  /// Less than this part of the rate before: other packets arrive.
  static constexpr double kOther = 0.8;
  /// By the costs seen beside devices, and how much dearer devices make packets, the CPU would do so much of the rate: it
  /// may do more.
  static constexpr double kHopeful = 0.85;
  static constexpr double kMostDearer = 4;
  static constexpr double kChange = 0.25;  // of the rate: other packets arrive, or the machine is another

  struct Trial {
    bool on = false;
    double since = 0;
    RateMean seen{};
    void begin(double now) { *this = {.on = true, .since = now}; }
  };

  /// \param rate with devices
  void leave(double rate, double now) {
    after_ = rate;
    alone_ = {};
    pause_.begin(now);
    moved_.on = false;
    back_.begin(now);
  }

  /// Of about the time of the last move to devices.
  bool is_alone_known() const { return alone_.ns >= kWindow && alone_ns_ > moved_.since - kTrial; }

  /// How much dearer packets on the CPU have become by the last move.
  void compare_costs(double on_cpu, double ns, double now) {
    if (now < moved_.since + kLearn || now > moved_.since + kTrial) return;
    beside_costs_.add(on_cpu, ns, kConverge);
    if (is_alone_known() && beside_costs_.ns >= kWindow && beside_costs_.rate > 0)
      dearer_ = std::clamp(alone_.rate / beside_costs_.rate, 1.0, kMostDearer);
  }

  void begin_wait(double now) {
    wait_.begin(now);
    beside_ = {};
    waits_at_ = 0;
    hopeless_ns_ = now;
  }

  /// What the CPU does alone is worth another try once the rate has changed, and stays so for a while.
  void look_at_change(double rate, double ns, double now) {
    beside_.add(rate, ns, kWindow);
    if (beside_.ns < kWindow || std::abs(beside_.rate - waits_at_) <= kChange * waits_at_) return;
    if (std::exchange(waits_at_, beside_.rate) <= 0) return;
    wait_.cancel(now);
    wait_.begin(now);
  }

  /// Is it better without devices? Or has the traffic become dearer, on any side?
  void see_alone(double rate, double ns, double now) {
    if (!refuses(now) || now < back_.since + kSettle) return;
    // Caches take some time to be as they were.
    const bool much_worse = back_.on && rate < kOther * after_;
    if (now >= back_.since + kCold) back_.seen.add(rate, ns, kWindow);
    if (back_.seen.ns < kWindow && !much_worse) return;
    const bool ends = std::exchange(back_.on, false);
    const bool worse = much_worse || (ends && back_.seen.rate < after_);
    if (worse) trusted_until_ = now + kTrust;
    if (ends && !worse) before_ = back_.seen.rate;
    if (worse || back_.seen.rate < kOther * before_) pause_.cancel(now);
  }

  bool uses_ = false;
  RateMean alone_;          ///< the rate without devices
  double alone_ns_ = 0;     ///< when that was seen last
  double left_ns_ = 0;      ///< when devices were used last
  Trial moved_;             ///< to devices
  Trial back_;              ///< from devices that lowered the rate
  Pause pause_{1e9};        // longer than a trial takes
  Pause wait_{2e9};         ///< until it is tried what the CPU does alone
  double hopeless_ns_ = 0;  ///< when the CPU last was no hope
  RateMean beside_;         ///< the rate with devices
  double waits_at_ = 0;     ///< that rate, when the wait for a try began
  RateMean beside_costs_;   ///< what the CPU would do by the costs seen there, since the move to devices
  double dearer_ = 1;       ///< packets on the CPU were so much dearer there when last compared
  double before_ = 0, after_ = 0, trusted_until_ = 0;
};

}  // namespace headrace::balance
