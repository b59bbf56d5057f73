// Everything goes to the nearest device. What finds no place there runs on the CPU.

#include "headrace/balancer.hh"
#include "offload/balance/formulas.hh"

namespace headrace {

namespace {

class DeviceOnly : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    for (size_t w = 0; w < decision.workers.size(); ++w)
      for (ChainDecision& chain : decision.workers[w])
        if (!chain.shares.empty()) chain.shares[balance::first_device(setup(), w)] = 1;
    decision.why = "the balancer DeviceOnly uses the nearest device for all";
    return decision;
  }
};
HEADRACE_BALANCER(DeviceOnly, "all packets to the nearest device, as far as it has places")

}  // namespace

}  // namespace headrace
