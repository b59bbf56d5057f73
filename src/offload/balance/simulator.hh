#pragma once
/// \file
/// A machine that does not exist: workers, chains and devices in simulated time, for balancers to be tried on.
///
/// Every worker is simulated burst by burst: it receives, runs packets in slices on the CPU, packs jobs, submits them,
/// looks for finished ones, and moves its shares by follow_share() every millisecond. Devices do jobs in the order in
/// which they come. What is left out: caches, packet lengths within a chain, flows.

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/balancer.hh"
#include "offload/balance/SimulatedScore.hh"
#include "offload/balance/machine.hh"
#include "offload/balance/sanitize.hh"

namespace headrace::balance {

/// What the simulation saw in one step.
struct SimulatedStep {
  double at_s = 0;           ///< its end
  double mpps = 0;           ///< packets that workers received, and have appended to jobs or run
  double p99_us = 0;         ///< of the time in the router, of the chain where it is longest as a part of its bound
  double share = 0;          ///< part of the packets that devices did
  double worst_us = 0;       ///< p99 of the chain with a bound, 0: none has one
  double worker_cycles = 0;  ///< busy cycles of all workers, in a second
  std::string why;
};

struct Simulated {
  std::vector<SimulatedStep> steps;
  std::vector<SimulatedPhase> phases;
  uint64_t jobs = 0, stream_jobs = 0;  ///< that came back; of these, those by stream
  Corrections corrections;             ///< of what the balancer did wrong
  std::vector<std::string> trace;      ///< if it was asked for
  double step_us = 0;                  ///< a decision took on average; of real time
};

/// Runs `balancer` on the machine for `seconds`. The same seed gives the same samples. What the balancer's start() throws
/// ends it.
/// \param trace_as writes a trace with this name of a balancer; empty: none
Simulated simulate(const std::vector<Phase>& phases, Balancer& balancer, double seconds, uint64_t seed,
                   const std::string& trace_as = {});

}  // namespace headrace::balance
