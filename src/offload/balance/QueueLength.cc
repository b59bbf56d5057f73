// Opportunistic offloading, as in Kargus (Jamshed et al., CCS 2012): a worker uses the CPU until packets queue up in
// front of it, then the device until the queue is short again.

#include "headrace/balancer.hh"
#include "offload/balance/formulas.hh"

namespace headrace {

namespace {

class QueueLength : public Balancer {
 public:
  void start() override { long_.assign(static_cast<size_t>(std::max(setup().workers, 0)), false); }

  BalanceDecision step(const BalanceSample& sample) override {
    for (const WorkerSample& w : sample.workers) {
      if (w.worker < 0 || static_cast<size_t>(w.worker) >= long_.size() || w.bursts == 0) continue;
      // A source that receives as many packets as it may leaves some behind. The two thresholds lie apart, because the
      // device makes the queue short that the CPU will make long again.
      const double full = balance::ratio(w.full_bursts, w.bursts);
      std::vector<bool>::reference is_long = long_[static_cast<size_t>(w.worker)];
      if (full > kLong) is_long = true;
      if (full < kShort) is_long = false;
    }
    BalanceDecision decision = everything_on_cpu();
    int on_device = 0;
    for (size_t w = 0; w < decision.workers.size(); ++w) {
      if (!long_[w] || setup().devices.empty()) continue;
      ++on_device;
      for (ChainDecision& chain : decision.workers[w]) chain.shares[balance::first_device(setup(), w)] = 1;
    }
    decision.why = on_device != 0 ? "packets queue up in front of workers" : "queues are short";
    return decision;
  }

 private:
  static constexpr double kLong = 0.5, kShort = 0.05;  // parts of the bursts that are full
  std::vector<bool> long_;                             // by worker
};
HEADRACE_BALANCER(QueueLength, "the CPU until packets queue up, then the nearest device until they do not (Kargus)")

}  // namespace

}  // namespace headrace
