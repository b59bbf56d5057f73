#pragma once
/// \file
/// A histogram of durations whose classes are 6 % wide.

#include <algorithm>
#include <array>
#include <cstdint>

namespace headrace {

/// Written by one thread. Other threads may add it up meanwhile; the sum may then mix slightly different moments.
class Histogram {
 public:
  void add(uint64_t value, uint64_t n = 1) {
    uint64_t& cell = cells_[index(value)];
    __atomic_store_n(&cell, cell + n, __ATOMIC_RELAXED);
    if (value > __atomic_load_n(&max_, __ATOMIC_RELAXED)) __atomic_store_n(&max_, value, __ATOMIC_RELAXED);
  }
  void add(const Histogram& other) {
    for (size_t i = 0; i < cells_.size(); ++i) cells_[i] += __atomic_load_n(&other.cells_[i], __ATOMIC_RELAXED);
    const uint64_t max = __atomic_load_n(&other.max_, __ATOMIC_RELAXED);
    if (max > max_) max_ = max;
  }
  /// Leaves what was added since `before`, an earlier copy. The maximum stays.
  void subtract(const Histogram& before) {
    for (size_t i = 0; i < cells_.size(); ++i) cells_[i] -= std::min(cells_[i], before.cells_[i]);
  }
  void clear() {
    for (uint64_t& c : cells_) __atomic_store_n(&c, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&max_, 0, __ATOMIC_RELAXED);
  }
  uint64_t count() const {
    uint64_t n = 0;
    for (const uint64_t& c : cells_) n += __atomic_load_n(&c, __ATOMIC_RELAXED);
    return n;
  }
  /// How many values are above `limit`, which is rounded to the end of its class.
  uint64_t above(uint64_t limit) const {
    uint64_t n = 0;
    for (size_t i = index(limit) + 1; i < cells_.size(); ++i) n += __atomic_load_n(&cells_[i], __ATOMIC_RELAXED);
    return n;
  }
  uint64_t max() const { return __atomic_load_n(&max_, __ATOMIC_RELAXED); }
  /// The value that a share `q` of all values does not exceed; 0 if there are none.
  uint64_t quantile(double q) const {
    const uint64_t all = count();
    if (all == 0) return 0;
    const auto wanted = static_cast<uint64_t>(q * static_cast<double>(all - 1)) + 1;
    uint64_t seen = 0;
    for (size_t i = 0; i < cells_.size(); ++i) {
      seen += __atomic_load_n(&cells_[i], __ATOMIC_RELAXED);
      if (seen >= wanted) return upper(i) < max() ? upper(i) : max();
    }
    return max();
  }

 private:
  static constexpr int kSub = 16;  // classes per power of two
  static size_t index(uint64_t v) {
    if (v < kSub) return static_cast<size_t>(v);
    const int top = 63 - __builtin_clzll(v);
    return static_cast<size_t>((top - 3) * kSub + static_cast<int>(v >> (top - 4) & (kSub - 1)));
  }
  static uint64_t upper(size_t i) {
    if (i < kSub) return i;
    const int top = static_cast<int>(i / kSub) + 3;
    return (uint64_t{kSub} + i % kSub + 1) * (uint64_t{1} << (top - 4)) - 1;
  }

  std::array<uint64_t, 61 * kSub> cells_{};
  uint64_t max_ = 0;
};

}  // namespace headrace
