#pragma once
#include <algorithm>
#include <cstdint>

#include "headrace/timestamp.hh"

namespace headrace {

/// Tokens that come at a rate and gather up to a capacity.
///
/// Time advances in ticks of a millisecond, or of 10 microseconds when a millisecond would bring many tokens. As in
/// Click, the bucket counts in fractions of its capacity (of 32 bits; of 64 for large capacities, for which 32 would be
/// too coarse) and a tick's share is rounded down. So a bucket of one token fills a tick late, and a configuration
/// tuned with Click behaves alike.
class TokenBucket {
 public:
  /// Keeps the degree to which the bucket is filled. A rate or a capacity of 0 means that no token comes.
  /// \param rate tokens a second
  void assign(uint64_t rate, uint64_t capacity) {
    const Timestamp time = Timestamp::from_ns(static_cast<int64_t>(time_ * tick_ns_));
    rate_ = capacity == 0 ? 0 : rate;
    tick_ns_ = rate_ > kFineRate ? kFineTickNs : kTickNs;
    time_ = ticks(time);
    const uint64_t per_second = 1000000000 / tick_ns_;
    // At least what a tick brings, or some of it would be lost.
    capacity_ = std::max<uint64_t>({capacity, (rate_ + per_second - 1) / per_second, 1});
    const uint64_t full = capacity_ <= kCoarseCapacity ? UINT32_MAX : UINT64_MAX;
    // The degree of filling stays.
    if (full != full_) level_ = full == UINT64_MAX ? level_ << 32 : level_ >> 32;
    full_ = full;
    scale_ = full_ / capacity_;
    per_tick_ = static_cast<uint64_t>(static_cast<Wide>(rate_) * scale_ / per_second);
    if (rate_ > 0) per_tick_ = std::max<uint64_t>(per_tick_, 1);
  }
  /// As above, but keeps the number of tokens.
  void assign_adjust(uint64_t rate, uint64_t capacity) {
    const uint64_t tokens = size();
    assign(rate, capacity);
    set(tokens);
  }

  uint64_t rate() const { return rate_; }
  uint64_t capacity() const { return capacity_; }
  /// Whole tokens in the bucket.
  uint64_t size() const { return std::min(level_ / scale_, capacity_); }
  bool contains(uint64_t tokens) const { return tokens <= capacity_ && tokens * scale_ <= level_; }
  void set(uint64_t tokens) { level_ = tokens >= capacity_ ? full_ : tokens * scale_; }
  /// Takes tokens, all that are left if there are fewer.
  void remove(uint64_t tokens) { level_ -= tokens > capacity_ ? level_ : std::min(level_, tokens * scale_); }
  bool remove_if(uint64_t tokens) {
    if (!contains(tokens)) return false;
    remove(tokens);
    return true;
  }
  /// \param now steady time. The first call fills the bucket.
  void refill(Timestamp now) {
    const uint64_t time = ticks(now);
    if (time > time_ && per_tick_ > 0) {
      const Wide more = static_cast<Wide>(time - time_) * per_tick_;
      level_ = more > full_ - level_ ? full_ : level_ + static_cast<uint64_t>(more);
    }
    time_ = std::max(time_, time);
  }
  /// How long until the bucket contains this; a day if it never will.
  Timestamp time_until(uint64_t tokens) const {
    if (contains(tokens)) return {};
    if (per_tick_ == 0 || tokens > capacity_) return Timestamp::from_sec(86400);
    const uint64_t need = tokens * scale_;
    const uint64_t n = (need - level_ - 1) / per_tick_ + 1;
    return Timestamp::from_ns(static_cast<int64_t>(std::min<Wide>(static_cast<Wide>(n) * tick_ns_, 86400000000000)));
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr uint64_t kTickNs = 1000000;
  static constexpr uint64_t kFineTickNs = 10000;
  static constexpr uint64_t kFineRate = 100000;
  static constexpr uint64_t kCoarseCapacity = 1 << 20;

  uint64_t ticks(Timestamp t) const { return static_cast<uint64_t>(t.ns) / tick_ns_; }

  uint64_t rate_ = 0;
  uint64_t capacity_ = 1;
  uint64_t tick_ns_ = kTickNs;
  uint64_t full_ = UINT32_MAX;   // level of the full bucket
  uint64_t scale_ = UINT32_MAX;  // level of one token
  uint64_t per_tick_ = 0;
  uint64_t level_ = 0;
  uint64_t time_ = 0;
};

}  // namespace headrace
