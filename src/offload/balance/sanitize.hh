#pragma once
/// \file
/// Decisions of balancers that somebody else wrote, made such that workers can carry them out.

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// What had to be changed in the decisions of one balancer, by kind of mistake.
class Corrections {
 public:
  /// \param kind what was expected, or what happened
  /// \param where the place of the first one
  void add(const std::string& kind, const std::string& where);
  /// All mistakes of all kinds.
  uint64_t all() const { return all_; }
  /// A line for each kind, with the number of times and the first place, in the order in which they came up.
  std::vector<std::string> lines() const;

 private:
  struct Kind {
    std::string text, first;
    uint64_t count = 0;
  };
  std::vector<Kind> kinds_;
  uint64_t all_ = 0;
};

/// Makes `decision` one for `setup`: worker and chain lists of the right lengths, shares from 0 to 1 with sums of at
/// most 1, jobs, waits, places and slices within the limits of the chain, and stream only where a device offers it. Adds
/// each value that was wrong to `corrections`.
void sanitize(BalanceDecision& decision, const BalanceSetup& setup, Corrections& corrections);

}  // namespace headrace::balance
