#pragma once
/// \file
/// How long to wait before the next attempt to connect.

#include <algorithm>
#include <cstdint>

namespace headrace::openflow {

inline constexpr int64_t kSecond = 1'000'000'000;

/// Open vSwitch's rule (lib/reconnect.c): 1 s, then twice as long each time, up to a bound. A connection that has been
/// up for longer than the last wait begins anew; shorter ones do not, or a controller that closes each connection at
/// once would be asked in every second.
class Backoff {
 public:
  static constexpr int64_t kFirst = kSecond;

  /// `most`: the bound, in nanoseconds; at least 1 s.
  explicit Backoff(int64_t most) : most_(std::max(most, kFirst)) {}

  /// The wait after an attempt that failed, or after a connection that was up for `up` nanoseconds.
  int64_t next(int64_t up = 0) {
    if (wait_ == 0 || (up > 0 && up >= wait_))
      wait_ = kFirst;
    else
      wait_ = std::min(wait_ * 2, most_);
    return wait_;
  }
  /// How long an attempt may take before it has failed: as long as the wait before it was, and at least 1 s.
  int64_t patience() const { return std::max(wait_, kFirst); }

 private:
  int64_t most_;
  int64_t wait_ = 0;
};

}  // namespace headrace::openflow
