#include "offload/balance/SimulatedScore.hh"

namespace headrace::balance {

void SimulatedScore::add(const SimulatedPhase& phase) {
  const auto soon = [](double ms) { return ms >= 0 && ms <= 100; };
  ++phases;
  near += phase.mpps >= 0.98 * phase.optimum_mpps;
  soon_95 += soon(phase.at_95_ms);
  soon_98 += soon(phase.at_98_ms);
  steady += phase.cycling <= 0.02;
  held += phase.over_bound <= 0.02;
}

}  // namespace headrace::balance
