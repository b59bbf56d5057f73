#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "headrace/timestamp.hh"

namespace headrace {

/// How many errors may be sent, by all workers together (RFC 1812, 4.3.2.8; RFC 4443, 2.4 (f)). A token bucket in one
/// word: the generic cell rate algorithm (ITU-T I.371, annex A). Under a flood, when most is refused, workers only read
/// it.
class ErrorRate {
 public:
  static constexpr uint32_t kMostRate = 1000000, kMostBurst = 1000000;

  uint32_t rate = 1000;  ///< errors per second; 0: no limit
  uint32_t burst = 100;  ///< errors that may be sent at once after an idle period

  /// True if an error sent now would be one too many; if not, it counts as sent.
  bool is_over() {
    if (rate == 0) return false;
    const int64_t interval = Timestamp::kSecond / rate, tolerance = interval * (burst - 1);
    const int64_t now = clock::steady().ns;
    int64_t even = even_time_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t from = std::max(even, now);
      if (from - now > tolerance) return true;
      if (even_time_.compare_exchange_weak(even, from + interval, std::memory_order_relaxed)) return false;
    }
  }

 private:
  /// When all errors sent so far would have been sent at an even rate.
  std::atomic<int64_t> even_time_{0};
};

}  // namespace headrace
