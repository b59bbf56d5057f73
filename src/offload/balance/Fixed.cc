// A constant part of the packets goes to the nearest device.

#include <fmt/format.h>

#include <charconv>

#include "headrace/balancer.hh"
#include "offload/balance/formulas.hh"

namespace headrace {

namespace {

class Fixed : public Balancer {
 public:
  bool configure(std::string_view argument) override {
    const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), share_);
    return error == std::errc() && end == argument.data() + argument.size() && share_ >= 0 && share_ <= 1;
  }
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    for (size_t w = 0; w < decision.workers.size(); ++w)
      for (ChainDecision& chain : decision.workers[w])
        if (!chain.shares.empty()) chain.shares[balance::first_device(setup(), w)] = share_;
    decision.why = fmt::format("the balancer Fixed uses the nearest device for {} of all", share_);
    return decision;
  }

 private:
  double share_ = 0;
};
HEADRACE_BALANCER(Fixed, "Fixed=X: the part X of the packets, from 0 to 1, to the nearest device")

}  // namespace

}  // namespace headrace
