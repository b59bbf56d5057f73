// What Model says to each worker: shares, jobs and slices, with regard to bounds on delay.

#include "offload/balance/Model.hh"

namespace headrace::balance {

void Model::decide(size_t number, std::vector<ChainDecision>& decisions) {
  WorkerState& w = workers_[number];
  for (size_t k = 0; k < decisions.size(); ++k) {
    ChainState& chain = w.chains[k];
    std::vector<size_t> devices;
    if (w.on_devices && w.group < plan_.shares.size()) devices = planned(w, k);
    ChainDecision& decision = decisions[k];
    if (!devices.empty() && !fit_bound(w, k, devices, decision)) devices.clear();
    if (devices.empty()) {
      chain.on_device = false;
      for (LaneState& lane : chain.lanes) lane.share = 0;
      continue;
    }
    set_shares(w, k, devices, decision);
    chain.on_device = true;
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
  w.judge.decide(used, hz() / std::max(cost, 1.0), now_);
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
    const double wanted = std::min(plan_.shares[w.group][k][d], 1 - sum);
    decision.shares[d] = wanted;
    sum += wanted;
    seen += chain.lanes[d].share;
    near &= std::abs(wanted - chain.lanes[d].share) < 0.1 * wanted + 0.01;
    alone &= !shared_[d];
  }
  // Where the CPU gets the rest, a worker itself finds out best what the device takes. Where another device or chain
  // gets it, that is for the plan to say.
  decision.follow = alone && (devices.size() == 1 || sum < 0.999);
  // It has found that the device takes more than is believed.
  if (alone && devices.size() == 1 && seen > sum && chain.lanes[devices[0]].full < 0.01) near = true;
  // What another device had is not the CPU's.
  double had = 0;
  for (const LaneState& lane : chain.lanes) had += lane.share;
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

double Model::capacity_for(const WorkerState& w, size_t d) const {
  int users = 0;
  for (const WorkerState& other : workers_) {
    double share = 0;
    for (const ChainState& chain : other.chains) share += chain.lanes[d].share;
    users += share > 0 || &other == &w;
  }
  return devices_[d].capacity / users;
}

bool Model::fit_bound(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision) {
  const BalanceSetup::Chain& chain = setup().chains[k];
  ChainState& state = w.chains[k];
  const double bound = chain.p99_us * 1e3;
  if (bound <= 0) return true;
  if (state.over >= 5 && !state.broken) {
    if (state.on_device) {
      state.bound_pause.begin(now_);
    } else if (!state.bound_pause.over(now_)) {
      // Without the device it is no better.
      state.broken = true;
    }
    state.over = 0;
  }
  if (!state.bound_pause.over(now_) && !state.broken) return false;
  const PairState& pair = pairs_[k][devices[0]];
  DevicePath path;
  path.arrivals = w.per_second * state.part;
  path.capacity = capacity_for(w, devices[0]);
  // Without a device there are no short slices.
  path.stretch_ns = state.on_device ? w.stretch_ns : std::min(w.stretch_ns, bound / 8);
  path.max_wait_ns = std::min<double>(chain.most_wait_us * 1e3, bound / 4);
  decision.max_wait_us = static_cast<int>(path.max_wait_ns * 1e-3);
  const auto foretell = [&](int job) {
    path.job = job;
    // Of jobs that wait for no others: how long others wait here is for this decision to say.
    const bool known = pair.alone_ns > 0;
    const double n = std::max(known ? pair.largest : pair.packets_per_job, 1.0);
    path.job_ns = (known ? pair.alone_ns : pair.job_ns) * (0.4 + 0.6 * std::min(path.job / n, 4.0));
    // As many as the packets that the device takes while one is under way, and one to fill.
    const double taken = path.capacity > 0 ? std::min(path.arrivals, path.capacity) : path.arrivals;
    const double under_way = taken * 1e-9 * (path.job_ns + path.stretch_ns) / path.job;
    path.places = static_cast<int>(std::min<double>(chain.most_places, 2 + under_way));
    state.foretold = foretold_p99_ns(path);
  };
  for (int job = chain.most_job;; job = std::max(job / 2, 1)) {
    foretell(job);
    if (state.foretold * state.margin < (state.on_device ? 1.0 : 0.9) * bound) break;
    if (path.job <= kLeastJob) break;
  }
  // One more where there is room for it: places that are all taken look like a device that is.
  DevicePath more = path;
  more.places = std::min(path.places + 1, chain.most_places);
  if (const double foretold = foretold_p99_ns(more); foretold * state.margin < 0.6 * bound) {
    path = more;
    state.foretold = foretold;
  }
  // What is foretold is careful, and larger jobs cost a worker that takes all it can get less.
  if (state.grown > 0 && state.over > 0) {
    state.grown = state.over = 0;
    state.grow_pause.begin(now_);
  } else if (is_hungry(w) && state.on_device && state.p99_ns < kRoom * bound &&
             path.job << state.grown < chain.most_job && state.grow_pause.over(now_) && now_ - state.grown_ns > kGrow) {
    ++state.grown;
    state.grown_ns = now_;
  }
  if (state.grown > 0) foretell(std::min(path.job << state.grown, chain.most_job));
  decision.job = path.job;
  decision.places = path.places;
  return state.foretold * state.margin < bound || state.broken || state.grown > 0;
}

}  // namespace headrace::balance
