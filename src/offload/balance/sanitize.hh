#pragma once
/// \file
/// Balancers that somebody else wrote: their decisions are made such that workers can carry them out, and what they throw
/// ends nothing.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// What had to be changed in the decisions of one balancer, and what it threw, by kind of mistake.
class Corrections {
 public:
  /// \param kind what was expected, or what happened
  /// \param where the place of the first one
  void add(const std::string& kind, const std::string& where) { add({kind, where, 1}); }
  /// Those that came after these.
  void add(const Corrections& later);
  /// All mistakes of all kinds.
  uint64_t all() const { return all_; }
  /// A line for each of the first 32 kinds, with the number of times and the first place, in the order in which they came
  /// up.
  std::vector<std::string> lines() const;
  /// The same without numbers, which change.
  std::vector<std::string> kinds() const;

 private:
  struct Kind {
    std::string text, first;
    uint64_t count = 0;
  };
  void add(const Kind& kind);

  std::vector<Kind> kinds_;
  uint64_t all_ = 0;
};

/// Makes `decision` one for `setup`: worker and chain lists of the right lengths, shares from 0 to 1 with sums of at
/// most 1, jobs, waits, places and slices within the limits of the chain, and stream only where a device offers it. Adds
/// each value that was wrong to `corrections`.
void sanitize(BalanceDecision& decision, const BalanceSetup& setup, Corrections& corrections);

/// Calls a function of a balancer, whose name is `name`. Returns what it threw, in words; empty if nothing.
std::string thrown_by(const char* name, const std::function<void()>& call);

/// The next decision of a balancer, sanitized. Where it throws, the one before holds.
/// \param last the one before; without workers if there is none
/// \param number of the decision, for people
BalanceDecision decide(Balancer& balancer, const BalanceSample& sample, const BalanceDecision& last, uint64_t number,
                       Corrections& corrections);

/// Tells a balancer what the one before it has learnt, if that is anything.
void teach(Balancer& balancer, const std::string& learnt, Corrections& corrections);

}  // namespace headrace::balance
