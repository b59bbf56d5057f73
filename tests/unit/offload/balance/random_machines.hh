#pragma once

#include <cstdint>
#include <vector>

#include "offload/balance/simulator.hh"

namespace headrace::balance {

/// A machine drawn by `seed`, whose load, costs or device change after `step_s` seconds. Its places suffice to keep its
/// devices busy.
std::vector<Phase> random_machine(uint64_t seed, double step_s);

/// A machine drawn by `seed` with many quick workers and one device, whose jobs may take as long as those of a GPU that
/// scans payloads. Each `step_s` seconds the load changes: it is light, but for a worker or two that are near the limit
/// of the CPU or beyond, or it is as much as they can do together, or nearly so.
std::vector<Phase> random_gpu_machine(uint64_t seed, double step_s);

}  // namespace headrace::balance
