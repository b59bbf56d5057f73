#pragma once
/// \file
/// The clock of jobs, and of what workers measure.

#include <x86intrin.h>

#include <atomic>
#include <cstdint>

#include "headrace/real_clock.hh"

namespace headrace::offload {

/// Time as jobs, samples and decisions see it: the monotonic clock and the time stamp counter, or a time that a test moves.
class JobClock {
 public:
  struct Simulated {
    int64_t ns = 0;
    uint64_t cycles = 0;
    double cycles_per_us = 1e3;
  };

  static int64_t ns() {
    const Simulated* const time = simulated();
    return time ? time->ns : now_ns();
  }
  static uint64_t cycles() {
    const Simulated* const time = simulated();
    return time ? time->cycles : __rdtsc();
  }
  /// The rate of cycles(), by ns(). Takes 2 ms in real time.
  static double measure_cycles_per_us() {
    if (const Simulated* const time = simulated()) return time->cycles_per_us;
    constexpr int64_t kLookNs = 2'000'000;
    const int64_t t0 = now_ns();
    const uint64_t c0 = __rdtsc();
    int64_t t1 = t0;
    while (t1 - t0 < kLookNs) t1 = now_ns();
    return static_cast<double>(__rdtsc() - c0) * 1e3 / static_cast<double>(t1 - t0);
  }
  /// Null in real time.
  static const Simulated* simulated() { return simulated_.load(std::memory_order_relaxed); }
  /// From now on the time is `time`'s, which one thread moves and reads; null: the real one. While there are no jobs. In
  /// simulated time nobody asks balancers but who calls BalanceLoop::step().
  static void simulate(const Simulated* time) { simulated_.store(time, std::memory_order_relaxed); }

 private:
  static inline std::atomic<const Simulated*> simulated_{nullptr};
};

}  // namespace headrace::offload
