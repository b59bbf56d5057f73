// What Model says to each worker: shares and slices.

#include <utility>

#include "offload/balance/Model.hh"

namespace headrace::balance {

void Model::decide(size_t number, std::vector<ChainDecision>& decisions) {
  WorkerState& w = workers_[number];
  for (size_t k = 0; k < decisions.size(); ++k) {
    ChainState& chain = w.chains[k];
    std::vector<size_t> devices;
    if (w.on_devices && w.group < plan_.shares.size()) devices = planned(w, k);
    ChainDecision& decision = decisions[k];
    chain.undivided = -1;
    if (devices.size() == 1) look_at_flows(w, k, devices[0], plan_.shares[w.group][k][devices[0]]);
    if (chain.undivided == 0) devices.clear();
    if (!devices.empty() && !fit_bound(w, k, devices, decision)) devices.clear();
    if (devices.empty()) {
      chain.on_device = chain.follows = false;
      chain.probed_after_ns = kCpuProbeNs;
      for (LaneState& lane : chain.lanes) lane.share = 0;
      continue;
    }
    set_shares(w, k, devices, decision);
    if (!std::exchange(chain.on_device, true)) chain.began_ns = now_;
    decision.slice = slice(w, k, decision);
  }
  std::vector<bool> used(devices_.size(), false);
  double cost = w.outside.mean();
  for (size_t k = 0; k < w.chains.size(); ++k) {
    const double on_cpu = cpu_cost_of(w, k);
    double here = on_cpu;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const double share = w.chains[k].lanes[d].share;
      if (share > 0.02) used[d] = true;
      if (share > 0) here += share * (device_cost_of(w, k, d) - on_cpu);
    }
    cost += w.chains[k].part * here;
  }
  w.judge.decide(used, hz() / std::max(cost, 1.0), w.sampled_ns < now_ ? rates_left_ : 1, now_);
}

void Model::look_at_flows(WorkerState& w, size_t k, size_t d, double share) {
  ChainState& chain = w.chains[k];
  if (chain.heaviest <= kDivisible) return;
  const double now = chain.lanes[d].share;
  const bool divided = now > kAtAnEnd && now < 1 - kAtAnEnd;
  // While all go to one side, nobody sees what flows there are.
  if (!divided && chain.looks_at_flows.over(now_)) {
    chain.heaviest = 0;
    return;
  }
  const double low = 1 - chain.heaviest, high = chain.heaviest;
  if (share <= low || share >= high) return;
  Sides sides;
  sides.cycles = hz();
  sides.outside = w.outside.mean();
  for (size_t j = 0; j < w.chains.size(); ++j)
    if (j != k) sides.outside += w.chains[j].part * cpu_cost_of(w, j);
  sides.outside /= std::max(chain.part, 1e-3);
  sides.cpu = cpu_cost_of(w, k);
  sides.device = device_cost_of(w, k, d);
  // The plan has the device do this much at least.
  sides.capacity = 1e18;
  sides.capacity = std::max(share * rate(sides, share), capacity_for(w, d));
  const double better = rate(sides, low) >= rate(sides, high) ? low : high;
  chain.undivided = better < kAtAnEnd ? 0 : better > 1 - kAtAnEnd ? 1 : better;
  chain.looks_at_flows.begin(now_);
}

std::vector<size_t> Model::planned(const WorkerState& w, size_t k) const {
  std::vector<size_t> found;
  for (size_t d = 0; d < devices_.size(); ++d)
    if (plan_.shares[w.group][k][d] > 1e-3) found.push_back(d);
  std::stable_sort(found.begin(), found.end(),
                   [&](size_t a, size_t b) { return device_cost_of(w, k, a) < device_cost_of(w, k, b); });
  return found;
}

void Model::set_shares(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision) {
  ChainState& chain = w.chains[k];
  bool near = true, alone = true;
  double sum = 0, seen = 0;
  for (const size_t d : devices) {
    const double wanted = chain.undivided >= 0 ? chain.undivided : std::min(plan_.shares[w.group][k][d], 1 - sum);
    decision.shares[d] = wanted;
    sum += wanted;
    seen += chain.lanes[d].share;
    near &= std::abs(wanted - chain.lanes[d].share) < 0.1 * wanted + 0.01;
    // A worker that does all that arrives, and finds places, takes from a full device what another worker lacks.
    if (any_hungry_ && !is_hungry(w)) near &= chain.lanes[d].share < wanted + kMuch;
    alone &= !shared_[d];
  }
  // Where the CPU gets the rest, a worker itself finds out best what the device takes. Where another device or chain
  // gets it, that is for the plan to say.
  decision.follow = alone && (devices.size() == 1 || sum < 0.999) && chain.undivided < 0;
  // But what it takes of a full device, another worker lacks that has no time to do the packets itself.
  if (any_hungry_ && !is_hungry(w) && now_ - devices_[devices[0]].late_ns < kFullBefore) decision.follow = false;
  // It has found that the device takes more than is believed.
  if (alone && devices.size() == 1 && seen > sum && chain.lanes[devices[0]].full < 0.01) near = true;
  // What was said to it is not what it has found.
  near &= std::exchange(chain.follows, decision.follow);
  // What another device had is not the CPU's.
  double had = 0, no_place = 0;
  for (const LaneState& lane : chain.lanes) {
    had += lane.share;
    if (lane.share > 0.01) no_place = std::max(no_place, lane.full);
  }
  if (chain.most_share < 1 && sum > chain.most_share) {
    // Packets must not wait for places while there is time on the CPU.
    for (const size_t d : devices) decision.shares[d] *= chain.most_share / sum;
    decision.follow = chain.follows = false;
  } else if (!alone && sum > kAlmostAll && (had < kAlmostAll || no_place > kManyWithoutPlace)) {
    // A chain that begins to use a device finds the jobs of other chains there. Its packets must not wait for places behind
    // these, and with them all that the worker receives: as long as there are no places, they take the CPU, as before.
    for (const size_t d : devices) decision.shares[d] *= kAlmostAll / sum;
  }
  near &= had < seen + 0.01;
  if (decision.follow && near && seen <= 1 && sum < 0.999)
    for (const size_t d : devices) decision.shares[d] = chain.lanes[d].share;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (std::abs(decision.shares[d] - chain.lanes[d].share) > 0.05) devices_[d].moved_ns = now_;
    chain.lanes[d].share = decision.shares[d];
  }
}

int Model::slice(const WorkerState& w, size_t k, const ChainDecision& decision) const {
  double outstanding_ns = 80e3;
  for (const LaneState& lane : w.chains[k].lanes)
    if (lane.share > 0 && lane.full > 0 && lane.per_second > 0)
      outstanding_ns = std::min(outstanding_ns, 1e9 * decision.job * decision.places / lane.per_second);
  double most_ns = 0.25 * outstanding_ns;
  if (setup().chains[k].p99_us > 0) most_ns = std::min(most_ns, setup().chains[k].p99_us * 1e3 / 8);
  const double packets = most_ns * 1e-9 * hz() / std::max(cpu_cost_of(w, k), 1.0);
  int n = 256;
  while (n > 16 && n > packets) n /= 2;
  return n;
}

}  // namespace headrace::balance
