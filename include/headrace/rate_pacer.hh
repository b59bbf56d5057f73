#pragma once
/// \file
/// Events at a rate.

#include <cstdint>

#include "headrace/timestamp.hh"

namespace headrace {

/// Schedules events at a rate. Each second has `rate` events, evenly spaced; late events are made up for, at most those
/// left over from one second.
class RatePacer {
 public:
  void set_rate(uint64_t rate) { rate_ = rate; }
  uint64_t rate() const { return rate_; }
  void reset() { second_ = -1; }

  /// True if fewer events were counted than should have happened by `now`.
  bool due(Timestamp now) {
    if (rate_ == 0) return false;
    const Wide scaled = static_cast<Wide>(now.nsec()) * rate_;
    const Wide should = scaled / kSecond;
    if (second_ < 0) {
      second_ = now.sec();
      done_ = static_cast<int64_t>(should) + (scaled % kSecond > kSecond / 2);
    } else if (now.sec() > second_) {
      second_ = now.sec();
      if (done_ > 0) done_ -= static_cast<int64_t>(rate_);
    }
    return static_cast<int64_t>(should) >= done_;
  }
  void count(uint64_t events) { done_ += static_cast<int64_t>(events); }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr uint64_t kSecond = 1000000000;

  uint64_t rate_ = 0;
  int64_t second_ = -1;
  int64_t done_ = 0;
};

}  // namespace headrace
