#pragma once
/// \file
/// How often workers may bother the control thread.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "headrace/worker.hh"

namespace headrace::openflow {

/// A token bucket that all workers take from. The rate is that of all of them together, however uneven they are. While
/// the bucket is empty a worker looks only at a number of its own: what all share is read once a token, not once an event.
class RateLimit {
 public:
  static constexpr uint64_t kMostRate = 1'000'000'000;

  /// \param rate events a second, up to kMostRate; 0: no limit
  /// \param burst events that may come at once after a pause; at least 1
  explicit RateLimit(uint64_t rate = 0, uint64_t burst = 1)
      : ns_a_token_(rate == 0 ? 0 : static_cast<int64_t>(1'000'000'000 / std::min(rate, kMostRate))),
        full_ns_(ns_a_token_ * static_cast<int64_t>(std::clamp<uint64_t>(burst, 1, kMostRate))) {}

  /// Whether an event may happen. On any worker, and the control thread. \param now in nanoseconds
  bool take(int64_t now) {
    if (ns_a_token_ == 0) return true;
    int64_t& closed_until = closed_until_.local();
    if (now < closed_until) return false;
    // The state of the bucket is the time at which it will be full.
    int64_t full_at = full_at_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t next = std::max(full_at, now) + ns_a_token_;
      if (next - now > full_ns_) {
        closed_until = next - full_ns_;
        return false;
      }
      if (full_at_.compare_exchange_weak(full_at, next, std::memory_order_relaxed)) return true;
    }
  }

 private:
  const int64_t ns_a_token_;
  const int64_t full_ns_;
  std::atomic<int64_t> full_at_{0};
  PerThread<int64_t> closed_until_;
};

}  // namespace headrace::openflow
