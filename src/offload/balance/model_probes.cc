// A few packets for the side that is not in use, to learn what they cost there.

#include "offload/balance/Model.hh"

namespace headrace::balance {

void Model::probe(BalanceDecision& decision, double passed) {
  for (size_t k = 0; k < pairs_.size(); ++k)
    for (size_t d = 0; d < devices_.size() && setup().chains[k].balanced; ++d) probe_device(k, d, decision, passed);
  for (size_t w = 0; w < workers_.size(); ++w)
    for (size_t k = 0; k < pairs_.size(); ++k) probe_cpu(w, k, decision, passed);
}

int Model::harmless(const WorkerState& w, size_t k, double passed, double packets) const {
  const BalanceSetup::Chain& chain = setup().chains[k];
  packets = std::min<double>(packets, kProbeJobs * most_job(k));
  // Of a worker that cannot do what arrives, all packets are late.
  if (chain.p99_us > 0 && !is_hungry(w))
    packets = std::min(packets, 0.003 * w.per_second * w.chains[k].part * passed * 1e-9);
  return static_cast<int>(std::max(packets, 0.0));
}

void Model::probe_device(size_t k, size_t d, BalanceDecision& decision, double passed) {
  PairState& pair = pairs_[k][d];
  if (!devices_[d].pause.over(now_)) return;
  // The worker that profits most, and can pay. Jobs of one that has time left are small, and say little.
  const auto purse = [this](const WorkerState& s) { return s.tokens * (!has_choice() && is_hungry(s) ? 2 : 1); };
  size_t chosen = workers_.size();
  for (size_t w = 0; w < workers_.size(); ++w) {
    const WorkerState& state = workers_[w];
    if (!state.known || state.load <= kCurious || !(state.chains[k].part > 0) || decision.workers[w][k].probe != 0 ||
        refuses(state, d))
      continue;
    if (state.chains[k].lanes[d].share > 0.01) return;  // it is measured as it is
    if (chosen == workers_.size() || purse(state) > purse(workers_[chosen])) chosen = w;
  }
  if (chosen == workers_.size()) return;
  WorkerState& w = workers_[chosen];
  const double c = cpu_cost_of(w, k);
  if (c <= 0) return;
  const bool known = pair.cost.known();
  // Where there is a choice, it must be known how good each device is.
  const bool choice = has_choice();
  const bool settled = known && (is_conclusive(k, d) || (!choice && pair.cost.mean() < kGain * c));
  // What changed on the CPU may have changed on the device.
  if (std::abs(c - pair.cpu_when_probed) > 0.1 * c) pair.interval_ns = 30 * kMs;
  const double most = w.load > kUse ? 50 * kMs : w.load > 0.85 ? 200 * kMs : 2000 * kMs;
  const bool doubtful = pair.probed_ns < changed_ns_[k] || pair.cost.suspect();
  double wait = doubtful ? 0 : settled ? std::min(pair.interval_ns, most) : 15 * kMs;
  // Which of several sides is the best must not be left to the noise of one job.
  double rival = c;
  for (size_t other = 0; other < devices_.size(); ++other)
    if (w.chains[k].lanes[other].share > 0.01) rival = std::min(rival, device_cost_of(w, k, other));
  if (settled && pair.cost.samples() < kWellKnown && std::abs(pair.cost.mean() - rival) < kNear * rival) wait = 5 * kMs;
  // A job takes the device's time, too, from those who use it. How much, is not known of packets that are other ones now.
  const double each_ns = most_device_ns(k, d);
  if (known && devices_[d].in_use && !doubtful) wait = std::max(wait, pair.packets_per_job * each_ns / kProbePart);
  if (now_ - pair.probed_ns < wait || (known && now_ - pair.cost.at_ns() < wait)) return;
  // What it costs beyond what the CPU would have.
  double unknown = std::min(kUnknownCost * c, kUnknownJob + c);
  // Another chain tells what jobs cost there.
  for (const auto& by_device : pairs_)
    if (by_device[d].cost.known()) unknown = std::min(unknown, 4 * by_device[d].cost.mean() + c);
  // And another device what this chain costs.
  for (const PairState& other : pairs_[k])
    if (other.cost.known()) unknown = std::min(unknown, 8 * other.cost.mean() + c);
  const double each = known ? std::max(pair.cost.mean() - c, 0.1 * c) : unknown;
  // A first probe leaves something for other chains and devices.
  const double n = known ? w.tokens / each : std::min(w.tokens / each, std::max(0.25 * bank() / each, 1.0));
  // Where the costs are near each other, only whole jobs tell which is less. The first of them finds caches cold: on a
  // worker that needs to know, several follow, if that costs little.
  const bool close = known && pair.cost.mean() < 2 * c;
  const int in_full = most_job(k);
  // A sample may be lost, and the answer with it.
  const bool lost = pair.long_probe_ns > pair.cost.at_ns() && now_ - pair.long_probe_ns >= kProbeBackNs;
  if (doubtful || lost) pair.long_probes.cancel(now_);
  const double in_a_row = std::min<double>(kProbeJobs * in_full, kProbesLately * hz() * kLately * 1e-9 / each);
  const bool several = known && !choice && pair.cost.mean() > kGain * c && pair.cost.mean() < kColdCost * c &&
                       is_hungry(w) && in_a_row >= 2 * in_full && pair.long_probes.over(now_);
  const double enough = several ? in_a_row : settled && !close ? std::min(in_full, 128) : in_full;
  if (n < (settled ? enough : 1) && w.tokens < 0.99 * bank()) return;
  // Jobs of others wait for it.
  const double most_here = devices_[d].in_use && each_ns > 0 ? std::max(kProbeNs / each_ns, 1.0) : 1e9;
  const int packets = harmless(w, k, passed, std::min({std::max(n, 1.0), enough, most_here}));
  if (packets <= 0) return;
  // What it costs beyond what its packets cost now. The first ones are few, and there is much to gain.
  const double extra = settled ? packets * std::max(pair.cost.mean() - rival, 0.0) : 0;
  if (!pay(w, probe_of(k, d), extra)) return;
  decision.workers[chosen][k].probe = packets;
  decision.workers[chosen][k].probe_device = static_cast<int>(d);
  if (several) {
    pair.long_probes.begin(now_);
    pair.long_probe_ns = now_;
  }
  w.tokens -= packets * each;
  w.chains[k].lanes[d].paid = packets * each;
  w.chains[k].lanes[d].asked = packets;
  pair.probed_ns = now_;
  pair.cpu_when_probed = c;
  pair.interval_ns = std::min(pair.interval_ns * 2, most);
}

double Model::most_device_ns(size_t k, size_t d) const {
  if (devices_[d].times.known()) return 1e9 * devices_[d].times.most_seconds(k);
  const PairState& pair = pairs_[k][d];
  if (pair.own_ns > 0) return pair.own_ns;
  return pair.packets_per_job > 0 ? pair.job_ns / pair.packets_per_job : 0;
}

void Model::probe_cpu(size_t number, size_t k, BalanceDecision& decision, double passed) {
  WorkerState& w = workers_[number];
  ChainState& chain = w.chains[k];
  if (!setup().chains[k].balanced || !chain.on_device || decision.workers[number][k].probe != 0) return;
  // It gets packets anyway.
  if (chain.most_share < 1) return;
  // What a probe says may come a step late. Until then another one would cost as much, and say the same.
  const bool doubtful = chain.probed_ns < changed_ns_[k] || chain.cpu.suspect();
  const double wait = doubtful ? 5 * kMs : chain.probed_after_ns;
  if (now_ - chain.cpu.at_ns() < wait || now_ - chain.probed_ns < kProbeBackNs) return;
  const bool small = has_choice() && chain.probes.known();
  const double c = std::max(small ? chain.probes.mean() : cpu_cost_of(w, k), 1.0);
  // Of few packets, most of the cost is that of cold caches. Where several chains or devices are to be compared, probes are
  // many, and must be small.
  const double most = has_choice() ? std::clamp(kProbeCycles / c, kSmallProbeOfCpu, kProbeOfCpu)
                                   : std::clamp(0.1 * w.tokens / c, kProbeOfCpu, kLargeProbeOfCpu);
  const int packets = harmless(w, k, passed, std::min(most, w.tokens / c));
  if (packets <= 0 || !pay(w, probe_of_cpu(k), packets * c)) return;
  decision.workers[number][k].probe = packets;
  chain.probed_ns = now_;
  // Jobs that are done wait meanwhile, and their packets may be late.
  if (setup().chains[k].p99_us > 0) chain.probed_after_ns = std::min(2 * chain.probed_after_ns, kRareCpuProbeNs);
  chain.asked = packets;
  chain.paid = packets * c;
  w.tokens -= chain.paid;
}

}  // namespace headrace::balance
