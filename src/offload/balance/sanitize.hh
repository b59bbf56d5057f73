#pragma once
/// \file
/// Decisions of balancers that somebody else wrote, made such that workers can carry them out.

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// Makes `decision` one for `setup`: worker and chain lists of the right lengths, shares from 0 to 1 with sums of at
/// most 1, and jobs, waits, places and slices within the limits of the chain. Adds a line to `complaints` for each kind
/// of mistake, with the number of times and the first place. Returns how many values were wrong.
uint64_t sanitize(BalanceDecision& decision, const BalanceSetup& setup, std::vector<std::string>& complaints);

}  // namespace headrace::balance
