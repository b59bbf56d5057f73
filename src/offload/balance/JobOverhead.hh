#pragma once
/// \file
/// What a job costs a worker, however few packets it has.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::balance {

/// A packet in a job of n costs a + b / n cycles: b for submitting the job and taking it back, which is alike for all
/// chains of a device. It follows from how much dearer small jobs were than large ones of the same chain (least squares).
/// So a probe of few packets tells what they will cost in full jobs.
class JobOverhead {
 public:
  explicit JobOverhead(size_t chains = 0) : sums_(chains) {}

  /// A packet of this chain in a job of `job` packets cost so many cycles.
  void add(size_t chain, double cycles, double job) {
    if (!(job >= 1) || !(cycles > 0)) return;
    Sums& s = sums_[chain];
    const double x = 1 / job;
    s.weight = kKept * s.weight + 1;
    const double off = x - s.x, other = cycles - s.cycles;
    s.x += off / s.weight;
    s.cycles += other / s.weight;
    s.squares = kKept * s.squares + off * (x - s.x);
    s.products = kKept * s.products + off * (cycles - s.cycles);
    double squares = 0, products = 0;
    for (const Sums& k : sums_) {
      squares += k.squares;
      products += k.products;
    }
    if (squares > kSpread * kSpread) cycles_ = std::max(products / squares, 0.0);
  }
  /// b; 0: not known.
  double cycles() const { return cycles_; }
  /// What a packet would cost in a job of `full` packets.
  /// \param seen what it cost in one of `job`
  double in_full(double seen, double job, double full) const {
    if (!(job >= 1) || !(full >= 1)) return seen;
    return std::max(seen - cycles_ * (1 / job - 1 / full), kLeastPart * seen);
  }

 private:
  static constexpr double kKept = 0.9;
  static constexpr double kSpread = 0.02;     // of 1 / n: jobs of 50 packets and of very many
  static constexpr double kLeastPart = 0.25;  // of what was seen

  struct Sums {
    double weight = 0, x = 0, cycles = 0;  // means
    double squares = 0, products = 0;      // of what is off these
  };
  std::vector<Sums> sums_;  // by chain
  double cycles_ = 0;
};

}  // namespace headrace::balance
