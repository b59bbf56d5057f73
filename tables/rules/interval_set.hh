#pragma once
/// \file
/// Sets of unsigned integers as intervals: ports and addresses of rules.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace headrace {

/// Disjoint intervals in rising order that do not touch. `T` is an unsigned integer of up to 128 bits.
template <typename T>
class IntervalSet {
 public:
  struct Interval {
    T first, last;
    bool operator==(const Interval&) const = default;
  };
  static constexpr T kMost = static_cast<T>(~T{0});

  static IntervalSet all() {
    IntervalSet set;
    set.intervals_ = {{0, kMost}};
    return set;
  }

  bool empty() const { return intervals_.empty(); }
  bool is_all() const { return intervals_.size() == 1 && intervals_[0] == Interval{0, kMost}; }
  const std::vector<Interval>& intervals() const { return intervals_; }
  bool operator==(const IntervalSet&) const = default;

  bool contains(T value) const {
    // Most sets of rules have a handful of intervals.
    if (intervals_.size() <= 4) {
      for (const Interval& i : intervals_)
        if (value <= i.last) return value >= i.first;
      return false;
    }
    const auto at = std::lower_bound(intervals_.begin(), intervals_.end(), value,
                                     [](const Interval& i, T v) { return i.last < v; });
    return at != intervals_.end() && value >= at->first;
  }

  void add(T first, T last) {
    intervals_.push_back({first, last});
    normalize();
  }
  void add(const IntervalSet& other) {
    append(other);
    normalize();
  }
  /// As add(), for many sets: nothing else may be done before normalize() was called.
  void append(const IntervalSet& other) {
    intervals_.insert(intervals_.end(), other.intervals_.begin(), other.intervals_.end());
  }
  IntervalSet complement() const {
    IntervalSet result;
    T next = 0;
    for (const Interval& i : intervals_) {
      if (i.first > next) result.intervals_.push_back({next, static_cast<T>(i.first - 1)});
      if (i.last == kMost) return result;
      next = static_cast<T>(i.last + 1);
    }
    result.intervals_.push_back({next, kMost});
    return result;
  }
  /// What is here and not in `other`.
  IntervalSet without(const IntervalSet& other) const {
    IntervalSet outside = complement();
    outside.add(other);
    return outside.complement();
  }
  void normalize() {
    std::sort(intervals_.begin(), intervals_.end(),
              [](const Interval& a, const Interval& b) { return a.first < b.first; });
    size_t kept = 0;
    for (const Interval& i : intervals_) {
      if (kept > 0) {
        Interval& before = intervals_[kept - 1];
        if (before.last == kMost) break;
        if (i.first <= static_cast<T>(before.last + 1)) {
          before.last = std::max(before.last, i.last);
          continue;
        }
      }
      intervals_[kept++] = i;
    }
    intervals_.resize(kept);
  }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace headrace
