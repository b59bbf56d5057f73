// Everything runs on the CPU.

#include "headrace/balancer.hh"

namespace headrace {

namespace {

class CPUOnly : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    decision.why = "the balancer CPUOnly uses no device";
    return decision;
  }
};
HEADRACE_BALANCER(CPUOnly, "all packets to the CPU")

}  // namespace

}  // namespace headrace
