#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "headrace/timestamp.hh"

namespace headrace {

/// A token bucket that any number of threads take from at the same time. All of its state is one number, the time at
/// which the bucket was (or would have been) empty.
class SharedBucket {
 public:
  /// The first call fills the bucket, others keep the degree to which it is filled. A rate or a capacity of 0 means that
  /// no token comes. Not while threads take tokens.
  /// \param rate tokens a second
  void assign(uint64_t rate, uint64_t capacity, Timestamp now) {
    const double degree = rate_ == 0 ? 1 : tokens(now) / capacity_;
    rate_ = capacity == 0 ? 0 : rate;
    capacity_ = static_cast<double>(capacity);
    if (rate_ != 0) empty_at_ = static_cast<double>(now.ns) - degree * capacity_ / per_ns();
  }
  uint64_t rate() const { return rate_; }

  /// Calls `spend` with the tokens there are at `now` (steady time); it returns how many it takes. It is called again
  /// when another thread took tokens meanwhile. The number may become negative: then tokens come back later.
  template <typename Spend>
  void take(Timestamp now, Spend&& spend) {
    if (rate_ == 0) {
      (void)spend(0.);
      return;
    }
    double empty_at = empty_at_.load(std::memory_order_relaxed);
    double next;
    do {
      const double there = tokens(now, empty_at);
      next = static_cast<double>(now.ns) - (there - spend(there)) / per_ns();
    } while (!empty_at_.compare_exchange_weak(empty_at, next, std::memory_order_relaxed));
  }

 private:
  double tokens(Timestamp now, double empty_at) const {
    return std::min((static_cast<double>(now.ns) - empty_at) * per_ns(), capacity_);
  }
  double tokens(Timestamp now) const { return tokens(now, empty_at_.load(std::memory_order_relaxed)); }
  double per_ns() const { return static_cast<double>(rate_) * 1e-9; }

  uint64_t rate_ = 0;
  double capacity_ = 0;
  std::atomic<double> empty_at_{0};
};

}  // namespace headrace
