#pragma once
/// \file
/// How a balancer did on a simulated machine.

#include <string>

namespace headrace::balance {

/// The outcome of one phase.
struct SimulatedPhase {
  double at_s = 0;
  double optimum_mpps = 0;
  double mpps = 0;           ///< from 100 ms behind its begin on; if it is shorter, in its second half
  double at_95_ms = -1;      ///< from here on the rate of any 30 ms is at least 0.95 of the optimum; -1: never
  double at_98_ms = -1;      ///< likewise 0.98
  double cycling = 0;        ///< highest less lowest rate of 50 ms, from 100 ms on, as a part of the optimum
  double p99_us = 0;         ///< the median of the steps' p99
  double bound_us = 0;       ///< the least bound of a chain; 0: none
  double over_bound = 0;     ///< part of the steps from 100 ms on whose p99 was over it
  double share = 0;          ///< of devices
  double worker_cycles = 0;  ///< busy, in a second
  double stated_mpps = 0;    ///< the optimum by the balancer itself, at the end
  std::string why;           ///< at the end
};

/// How many phases are as they should be (docs/balancing.md).
struct SimulatedScore {
  int phases = 0;
  int near = 0;     ///< reach 0.98 of the optimum
  int soon_95 = 0;  ///< reach 0.95 of it within 100 ms, for good
  int soon_98 = 0;  ///< likewise 0.98
  int steady = 0;   ///< do not cycle by more than 2 %
  int held = 0;     ///< hold their bound in 98 % of the steps, or have none

  /// \returns true if this one is
  bool add(const SimulatedPhase& phase);
};

}  // namespace headrace::balance
