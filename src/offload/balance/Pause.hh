#pragma once
/// \file
/// How long to stay away from what has failed.

#include <algorithm>

namespace headrace::balance {

/// A time to stay away, which doubles each time up to a limit, and shrinks after a good time. Times in nanoseconds.
class Pause {
 public:
  /// \param least the first one, in nanoseconds
  explicit Pause(double least = 100e6) : least_(least), length_(least) {}
  void begin(double now) {
    if (now < until_) return;
    if (now > until_ + 4 * length_) length_ = least_;
    until_ = now + length_;
    length_ = std::min(2 * length_, kMost);
  }
  /// It was begun by mistake.
  void cancel(double now) {
    until_ = std::min(until_, now);
    length_ = least_;
  }
  bool over(double now) const { return now >= until_; }

 private:
  static constexpr double kMost = 10e9;
  double least_;
  double until_ = 0, length_;
};

}  // namespace headrace::balance
