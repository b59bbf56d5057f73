#pragma once

#include <cstdint>
#include <vector>

#include "offload/balance/simulator.hh"

namespace headrace::balance {

/// A machine drawn by `seed`, whose load, costs or device change after `step_s` seconds. Its places suffice to keep its
/// devices busy.
std::vector<Phase> random_machine(uint64_t seed, double step_s);

}  // namespace headrace::balance
