#pragma once
/// \file
/// What the time of a worker goes into.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "headrace/balancer.hh"
#include "offload/job_clock.hh"

namespace headrace::offload {

/// How often sources received packets, and how often as many as they may. Written by one worker.
struct Bursts {
  uint64_t all = 0;
  uint64_t full = 0;
};

/// Measures one worker, who alone calls it. Times are cycles of JobClock. To read it at each batch would cost
/// more than is worth it, so a few runs of tasks in so many are timed, with all that happens in them. Those that take so
/// long that nobody notices are timed always.
class LoadMeter {
 public:
  static uint64_t now() { return JobClock::cycles(); }
  /// True if what happens now is to be timed.
  bool timed() const { return timed_; }
  /// Times what happens from now on, until restore() gets the returned value.
  bool time_all() { return std::exchange(timed_, true); }
  void restore(bool timed) { timed_ = timed; }

  /// A part of the work. What parts inside of it take belongs to them alone. Only where timed() is true.
  struct Part {
    uint64_t began, outer;
  };
  Part begin() { return {now(), std::exchange(inner_, 0)}; }
  /// \returns the cycles of the part
  uint64_t end(const Part& part) {
    const uint64_t all = now() - part.began;
    const uint64_t own = all - std::min(all, inner_);
    inner_ = part.outer + all;
    return own;
  }

  /// Packets have arrived at a chain. Only where timed() is true.
  void arrive(int packets) { arrived_ += static_cast<uint64_t>(packets); }

  // What the worker tells.

  /// A task will run. \returns true if it is timed; then call end_task()
  /// \param looked when it ran before, if that was timed; this is changed to now
  /// \param source it is a source
  bool begin_task(uint64_t& looked, bool source) {
    const bool before = timed_;
    timed_ = slow_ || ++runs_ % kEvery < kTimed;
    if (!before && !timed_) return false;
    const uint64_t t = now();
    if (before) {
      sum_.timed += t - began_;
      account(t - ended_);
    }
    if (!timed_) return false;
    since_ = source && before && looked > t - kLongestLook ? looked : 0;
    looked = began_ = t;
    inner_ = arrived_ = 0;
    bursts_before_ = bursts_.all;
    return true;
  }
  /// \param source it has worked if it has received packets
  void end_task(bool worked, bool source) {
    ended_ = now();
    took_ = ended_ - began_;
    const Run run = std::exchange(run_, Run::kOther);
    if (run != Run::kOther)
      ended_run_ = run;
    else if (worked && source && bursts_.all != bursts_before_)
      ended_run_ = Run::kSource;
    else
      ended_run_ = worked && !source ? Run::kOther : Run::kNothing;
    since_ = 0;
    slow_ = took_ > kSlow;
  }
  /// The running task is one that looks for finished jobs. What it does outside of parts is what looks cost.
  /// \param waits it has found nothing, and no packets came since it ran last: the worker waits for a device
  void look(bool waits) {
    if (timed_) run_ = waits ? Run::kWait : Run::kLook;
  }
  /// The worker has slept, which is time in which it was idle.
  void slept(uint64_t cycles) {
    sum_.slept += cycles;
    if (!timed_) return;
    began_ += cycles;
    ended_ += cycles;
  }
  /// When the running task, a source, looked for packets before: those that it has now came later. 0: unknown.
  uint64_t since() const { return since_; }

  struct Sum {
    uint64_t timed = 0;    ///< cycles that were looked at, without sleep
    uint64_t busy = 0;     ///< of these, in tasks that had packets
    uint64_t waiting = 0;  ///< of these, in tasks that waited for devices
    uint64_t looks = 0;    ///< of `busy`, those of looks for finished jobs
    uint64_t slept = 0;    ///< all
    BatchSums outside;     ///< of sources' runs: packets that arrived at chains, cycles outside of them
  };
  /// Since the last call of take().
  const Sum& sum() const { return sum_; }
  Sum take() { return std::exchange(sum_, {}); }
  Bursts& bursts() { return bursts_; }

 private:
  /// What a run of a task was for.
  enum class Run : uint8_t { kNothing, kOther, kSource, kLook, kWait };
  static constexpr unsigned kEvery = 32, kTimed = 4;
  static constexpr uint64_t kSlow = 50'000;
  static constexpr uint64_t kLongestLook = uint64_t{1} << 32;
  /// Between two runs of tasks: what takes longer is no scheduling, but idle time, or another process.
  static constexpr uint64_t kLongestBetween = 2'000;

  /// Says what the last run's time went into, when it is known how long it took to come to the next.
  void account(uint64_t between) {
    const uint64_t all = took_ + (between <= kLongestBetween ? between : 0);
    const uint64_t own = all - std::min(all, inner_);
    switch (std::exchange(ended_run_, Run::kNothing)) {
      case Run::kNothing:
        return;
      case Run::kWait:
        sum_.waiting += all;
        return;
      case Run::kLook:
        sum_.looks += own;
        break;
      case Run::kSource:
        if (arrived_ > 0) sum_.outside.add(arrived_, own);
        break;
      case Run::kOther:
        break;
    }
    sum_.busy += all;
  }

  bool timed_ = false, slow_ = false;
  Run run_ = Run::kOther;          // what the running task has said
  Run ended_run_ = Run::kNothing;  // the last run, if it is not accounted for
  unsigned runs_ = 0;
  uint64_t began_ = 0, ended_ = 0, took_ = 0;
  uint64_t inner_ = 0, since_ = 0, bursts_before_ = 0, arrived_ = 0;
  Sum sum_;
  Bursts bursts_;
};

/// A small histogram of times, in classes that are 9 % wide.
class TimesWindow {
 public:
  void add(uint64_t ns, uint32_t n = 1) {
    cells_[index(ns)] += n;
    count_ += n;
  }
  uint64_t count() const { return count_; }
  /// The time that a share `q` does not exceed; 0 if there are none.
  uint64_t quantile(double q) const {
    const auto wanted = static_cast<uint64_t>(q * static_cast<double>(count_));
    uint64_t seen = 0;
    for (size_t i = 0; i < cells_.size(); ++i)
      if ((seen += cells_[i]) > wanted) return upper(i);
    return count_ == 0 ? 0 : upper(cells_.size() - 1);
  }
  void clear() {
    cells_.fill(0);
    count_ = 0;
  }

 private:
  static constexpr int kFirst = 7;  // times below 128 ns are one class
  static constexpr int kSub = 8;
  static size_t index(uint64_t ns) {
    if (ns < (uint64_t{1} << kFirst)) return 0;
    const int top = std::bit_width(ns) - 1;
    const size_t i = 1 + static_cast<size_t>(top - kFirst) * kSub + static_cast<size_t>(ns >> (top - 3) & (kSub - 1));
    return std::min(i, kCells - 1);
  }
  static uint64_t upper(size_t i) {
    if (i == 0) return uint64_t{1} << kFirst;
    const size_t top = (i - 1) / kSub + kFirst;
    return (kSub + (i - 1) % kSub + 1) << (top - 3);
  }
  static constexpr size_t kCells = 1 + 26 * kSub;
  std::array<uint32_t, kCells> cells_{};
  uint64_t count_ = 0;
};

}  // namespace headrace::offload
