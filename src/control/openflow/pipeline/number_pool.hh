#pragma once
/// \file
/// Numbers by which packets tell what they have met.

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/rcu.hh"

namespace headrace::openflow {

/// Numbers from 0 on, as few as possible. One that is given up is taken again only when no packet can bring it back.
class NumberPool {
 public:
  explicit NumberPool(uint32_t most) : most_(most) {}

  /// Nothing if none is free.
  std::optional<uint32_t> take() {
    while (!resting_.empty() && rcu::returned(resting_.front().first)) {
      free_.insert(free_.end(), resting_.front().second.begin(), resting_.front().second.end());
      resting_.pop_front();
    }
    if (!free_.empty()) {
      const uint32_t number = free_.back();
      free_.pop_back();
      return number;
    }
    if (next_ == most_) return std::nullopt;
    return next_++;
  }
  /// Nothing that is published from now on has the number.
  void give_up(uint32_t number) { given_up_.push_back(number); }
  /// The number of something that was never published.
  void put_back(uint32_t number) { free_.push_back(number); }
  /// What was given up until now can be taken when it has returned() from a grace period that begins now.
  void begin_grace() {
    if (!given_up_.empty()) resting_.emplace_back(rcu::start_grace(), std::exchange(given_up_, {}));
  }

 private:
  const uint32_t most_;
  uint32_t next_ = 0;
  std::vector<uint32_t> free_, given_up_;
  std::deque<std::pair<rcu::Epoch, std::vector<uint32_t>>> resting_;
};

}  // namespace headrace::openflow
