// Which chains' jobs go by stream, and which to the resident kernel.

#include <utility>

#include "offload/balance/Model.hh"

namespace headrace::balance {

void Model::choose_runs(BalanceDecision& decision, double passed) {
  for (size_t d = 0; d < devices_.size(); ++d) find_rare(d, decision, passed);
  for (auto& worker : decision.workers)
    for (size_t k = 0; k < worker.size(); ++k) worker[k].stream = goes_by_stream(k, worker[k]);
}

void Model::find_rare(size_t d, const BalanceDecision& decision, double passed) {
  const BalanceSetup::Device& device = setup().devices[d];
  // Without a kernel that leaves, or without a choice, there is nothing to find.
  if (!device.resident || !device.stream || device.resident_idle_us <= 0 || !(passed > 0)) return;
  const double idle_ns = device.resident_idle_us * 1e3;
  for (size_t c = 0; c < devices_[d].kernels.size(); ++c) {
    KernelState& kernel = devices_[d].kernels[c];
    bool used = false;
    for (const auto& worker : decision.workers)
      for (size_t k = 0; k < worker.size(); ++k)
        used |= setup().chains[k].payload == (c == 1) && worker[k].shares[d] > 0;
    const double kept = kIdles * idle_ns / (kIdles * idle_ns + passed);
    kernel.between = kept * kernel.between + (1 - kept) * std::exchange(kernel.jobs, 0.0) * idle_ns / passed;
    // Who begins to use a device may be about to send much.
    if (!used || !kernel.used) kernel.between = kOften;
    kernel.used = used;
    kernel.rare = used && kernel.between < (kernel.rare ? kNotRare : kRare);
  }
}

bool Model::goes_by_stream(size_t k, const ChainDecision& decision) const {
  // Probes are to tell what the resident kernel costs, which is what a busy device would have.
  if (decision.probe > 0 && decision.probe_device >= 0) return false;
  const double bound = setup().chains[k].p99_us * 1e3;
  bool any = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (!(decision.shares[d] > 0)) continue;
    if (!devices_[d].kernels[setup().chains[k].payload].rare) return false;
    if (bound > 0 && pairs_[k][d].stream_ns > kMostOfBound * bound) return false;
    any = true;
  }
  return any;
}

}  // namespace headrace::balance
