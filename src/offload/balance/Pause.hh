#pragma once
/// \file
/// How long to stay away from what has failed.

#include <algorithm>

namespace headrace::balance {

/// A time to stay away, which doubles each time up to a limit, and shrinks after a good time. Times in nanoseconds.
class Pause {
 public:
  void begin(double now) {
    if (now < until_) return;
    if (now > until_ + 4 * length_) length_ = kLeast;
    until_ = now + length_;
    length_ = std::min(2 * length_, kMost);
  }
  /// It was begun by mistake.
  void cancel(double now) {
    until_ = std::min(until_, now);
    length_ = kLeast;
  }
  bool over(double now) const { return now >= until_; }

 private:
  static constexpr double kLeast = 100e6, kMost = 10e9;
  double until_ = 0, length_ = kLeast;
};

}  // namespace headrace::balance
