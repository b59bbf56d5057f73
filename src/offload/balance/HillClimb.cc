// The adaptive load balancer of NBA (Kim et al., EuroSys 2015): one share for all, which moves by steps of 4 % in one
// direction while the throughput rises, and turns around when it falls. The higher the share, the longer it waits
// between steps, because throughput on the device is noisier.

#include <fmt/format.h>

#include "headrace/balancer.hh"
#include "offload/balance/formulas.hh"

namespace headrace {

namespace {

class HillClimb : public Balancer {
 public:
  BalanceDecision step(const BalanceSample& sample) override {
    double packets = 0, ns = 0;
    for (const WorkerSample& w : sample.workers) {
      if (w.ns <= 0) continue;
      ns = std::max(ns, static_cast<double>(w.ns));
      for (const ChainSample& chain : w.chains) {
        packets += static_cast<double>(chain.cpu.packets);
        for (const DeviceSample& device : chain.devices) packets += static_cast<double>(device.packets);
      }
    }
    packets_ += packets;
    ns_ += ns;
    if (ns_ >= kPeriodNs) {
      // Throughput is a moving average over the periods since the last move.
      rate_sum_ += packets_ / ns_;
      ++periods_;
      packets_ = ns_ = 0;
      const int wait = kLeastPeriods + static_cast<int>((kMostPeriods - kLeastPeriods) * share_);
      if (periods_ >= wait) move();
    }

    BalanceDecision decision = everything_on_cpu();
    for (size_t w = 0; w < decision.workers.size(); ++w)
      for (ChainDecision& chain : decision.workers[w])
        if (!chain.shares.empty()) chain.shares[balance::first_device(setup(), w)] = share_;
    decision.why = fmt::format("climbing {} at {:.2f}", direction_ > 0 ? "up" : "down", share_);
    return decision;
  }

 private:
  static constexpr double kStep = 0.04;
  static constexpr double kPeriodNs = 0.2e9;
  static constexpr int kLeastPeriods = 2, kMostPeriods = 32;

  void move() {
    const double rate = rate_sum_ / periods_;
    if (rate < last_rate_) direction_ = -direction_;
    last_rate_ = rate;
    rate_sum_ = 0;
    periods_ = 0;
    if (share_ + direction_ * kStep > 1 || share_ + direction_ * kStep < 0) direction_ = -direction_;
    share_ = std::clamp(share_ + direction_ * kStep, 0.0, 1.0);
  }

  double share_ = 0;
  int direction_ = 1;
  double packets_ = 0, ns_ = 0;  // of the present period
  double rate_sum_ = 0, last_rate_ = 0;
  int periods_ = 0;
};
HEADRACE_BALANCER(HillClimb, "one share that climbs by 4 % while the throughput rises (NBA)")

}  // namespace

}  // namespace headrace
