#pragma once
/// \file
/// What a packet would cost in a large batch, as seen from small ones.

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// The median of the last samples: one that a pause of the machine has spoilt says nothing.
class Usual {
 public:
  void add(double v) {
    last_[next_] = v;
    next_ = (next_ + 1) % last_.size();
    count_ = std::min(count_ + 1, last_.size());
  }
  double median() const {
    std::array<double, kLast> sorted = last_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count_ / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count_));
    return count_ == 0 ? 0 : *middle;
  }

 private:
  static constexpr size_t kLast = 5;
  std::array<double, kLast> last_{};
  size_t next_ = 0, count_ = 0;
};

/// A worker that polls takes what is there. A batch of n packets takes it F + v n cycles, during which more packets come,
/// so batches are as large as the load makes them: at a load of r (of 1 / v packets in a cycle), n = r F / (v (1 - r)).
/// It is busy nearly all the time, from very low loads on, and (F + v n) / n cycles for each packet say nothing about how
/// many more it could take. v does, and follows from how batches of one sample differ (least squares).
class BatchCost {
 public:
  void add(const BatchSums& sums) {
    const double count = static_cast<double>(sums.batches);
    if (sums.batches == 0 || sums.packets == 0) return;
    const double packets = static_cast<double>(sums.packets) / count, cycles = static_cast<double>(sums.cycles) / count;
    // As costs are kept: each sample counts less than the one behind it.
    batches_ = kKept * batches_ + count;
    packets_ = kKept * packets_ + static_cast<double>(sums.packets);
    const double spread = static_cast<double>(sums.squares) / count - packets * packets;
    if (sums.batches < kLeast || count * spread < kLeastSpread * packets * packets) return;
    const double together = static_cast<double>(sums.products) / count - packets * cycles;
    // Larger batches that cost less were others: caches were cold for some of the small ones.
    if (together <= 0) return;
    overhead_.add(cycles - packets * std::min(together / spread, cycles / packets));
  }
  /// Nearly all batches have one packet: none had to wait for the one before it.
  bool single() const { return batches_ > 0 && packets_ < kSingle * batches_; }
  /// Cycles for each packet of a large batch.
  /// \param seen the mean of batches as they are
  double in_full(double seen) const {
    if (packets_ <= 0) return seen;
    const double saved = overhead_.median() * std::max(batches_ / packets_ - 1 / kFull, 0.0);
    return std::max(seen - saved, kLeastPart * seen);
  }

 private:
  static constexpr double kKept = 0.7, kSingle = 1.2;
  static constexpr uint64_t kLeast = 32;      // batches of a sample
  static constexpr double kLeastSpread = 4;   // sum of squared deviations of their sizes, by the square of the mean
  static constexpr double kFull = 64;         // packets; what a larger batch saves is little
  static constexpr double kLeastPart = 0.02;  // of what was seen
  Usual overhead_;                            // F
  double batches_ = 0, packets_ = 0;
};

}  // namespace headrace::balance
