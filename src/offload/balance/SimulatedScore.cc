#include "offload/balance/SimulatedScore.hh"

namespace headrace::balance {

bool SimulatedScore::add(const SimulatedPhase& phase) {
  const auto soon = [](double ms) { return ms >= 0 && ms <= 100; };
  const bool is_near = phase.mpps >= 0.98 * phase.optimum_mpps, is_soon_95 = soon(phase.at_95_ms),
             is_soon_98 = soon(phase.at_98_ms), is_steady = phase.cycling <= 0.02, is_held = phase.over_bound <= 0.02;
  ++phases;
  near += is_near;
  soon_95 += is_soon_95;
  soon_98 += is_soon_98;
  steady += is_steady;
  held += is_held;
  return is_near && is_soon_95 && is_soon_98 && is_steady && is_held;
}

}  // namespace headrace::balance
