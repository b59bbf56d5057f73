#pragma once
/// \file
/// The rate of late, for those who judge moves by it.

#include <algorithm>

namespace headrace::balance {

/// A mean in which what is older than `window` nanoseconds counts little.
struct RateMean {
  double rate = 0;  ///< packets a second
  double ns = 0;    ///< of all that was added
  void add(double r, double span, double window) {
    const double old = std::min(ns, window);
    rate = (rate * old + r * span) / (old + span);
    ns += span;
  }
};

}  // namespace headrace::balance
