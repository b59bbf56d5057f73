// What each group of workers should have of each device, by all that Model knows.

#include "offload/balance/Model.hh"

namespace headrace::balance {

void Model::make_plan() {
  const size_t chains = pairs_.size();
  for (auto& by_device : pairs_)
    for (PairState& p : by_device) p.in_use = false;
  for (DeviceState& d : devices_) d.in_use = false;
  arrives_.assign(chains, 0);
  for (const WorkerState& w : workers_)
    for (size_t k = 0; k < chains; ++k) arrives_[k] += w.per_second * w.chains[k].part;
  std::vector<WorkerGroup> groups;
  std::vector<Kind> kinds;
  double hungry = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    WorkerState& w = workers_[i];
    if (w.load > kUse) w.on_devices = true;
    if (w.load < kLeave) w.on_devices = false;
    for (size_t k = 0; k < chains; ++k)
      for (size_t d = 0; d < devices_.size(); ++d)
        if (w.chains[k].lanes[d].share > 0.02) pairs_[k][d].in_use = devices_[d].in_use = true;
    if (!w.known || !w.on_devices) continue;
    Kind kind{first_device(setup(), i), most_used(w), is_hungry(w), std::vector<bool>(devices_.size())};
    for (size_t d = 0; d < devices_.size(); ++d) kind.refused[d] = refuses(w, d);
    w.group = static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
    if (w.group == groups.size()) {
      kinds.push_back(kind);
      WorkerGroup& group = groups.emplace_back();
      group.weight = 0;
      group.chains.resize(chains);
      for (auto& c : group.chains) c.device.assign(devices_.size(), 0.0);
    }
    add(w, groups[w.group], kind.hungry ? 1 : w.per_second);
    hungry += kind.hungry;
  }
  any_hungry_ = hungry > 0;
  lacking_ = any_hungry_ || !has_choice();
  for (size_t g = 0; g < groups.size(); ++g) {
    finish(groups[g], kinds[g]);
    if (groups.size() * chains * devices_.size() > kManyPairs) keep_few(groups[g], kinds[g].nearest);
    if (kinds[g].hungry) {
      groups[g].weight /= hungry;
    } else {
      // Some of its cycles are left, or it would be hungry.
      groups[g].arrivals = std::max(1.02 * groups[g].weight, 1.0);
      if (hungry > 0) groups[g].cycles *= kMostUsed;
    }
  }
  solve(groups);
}

size_t Model::most_used(const WorkerState& w) const {
  if (devices_.size() < 2) return devices_.size();
  for (size_t d = 0; d < devices_.size(); ++d) {
    double share = 0;
    for (const ChainState& chain : w.chains) share += chain.part * chain.lanes[d].share;
    if (share > 0.5) return d;
  }
  return devices_.size();
}

void Model::add(const WorkerState& w, WorkerGroup& group, double weight) const {
  group.cycles += 1;
  group.weight += weight;
  group.outside += weight * w.outside.mean();
  for (size_t k = 0; k < w.chains.size(); ++k) {
    auto& chain = group.chains[k];
    chain.part += weight * w.chains[k].part;
    chain.cpu += weight * cpu_cost_of(w, k);
    for (size_t d = 0; d < devices_.size(); ++d) chain.device[d] += weight * device_cost_of(w, k, d);
  }
}

void Model::finish(WorkerGroup& group, const Kind& kind) const {
  const double weight = std::max(group.weight, 1e-9);
  group.cycles *= hz();
  group.outside = std::max(group.outside / weight, 1.0);
  for (size_t k = 0; k < group.chains.size(); ++k) {
    auto& chain = group.chains[k];
    chain.part /= weight;
    chain.cpu /= weight;
    for (size_t d = 0; d < devices_.size(); ++d) {
      double& cost = chain.device[d];
      cost /= weight;
      const bool in_use = pairs_[k][d].in_use;
      const bool helps = cost > 0 && cost < chain.cpu * (in_use ? kLoss : kGain);
      if (!setup().chains[k].balanced || !devices_[d].pause.over(now_) || kind.refused[d] || !helps) {
        cost = 1e18;
        continue;
      }
      // Devices of one kind cost nearly the same: the nearest comes first, and who has packets keeps them.
      cost *= (d == kind.nearest ? 1 : kFarther) * (in_use ? 1 : kFarther) * (d == kind.mostly ? kStays : 1);
      cost = std::min(cost, 0.999 * chain.cpu);
    }
  }
}

void Model::keep_few(WorkerGroup& group, size_t nearest) const {
  std::vector<size_t> order(devices_.size());
  for (auto& chain : group.chains) {
    for (size_t i = 0; i < order.size(); ++i) order[i] = (nearest + i) % order.size();
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::floor(chain.device[a] / (0.1 * chain.cpu + 1)) < std::floor(chain.device[b] / (0.1 * chain.cpu + 1));
    });
    for (size_t i = 2; i < order.size(); ++i) chain.device[order[i]] = 1e18;
  }
}

void Model::solve(const std::vector<WorkerGroup>& groups) {
  const size_t chains = pairs_.size();
  std::vector<std::vector<double>> device_s(chains, std::vector<double>(devices_.size(), 0.0));
  for (size_t k = 0; k < chains; ++k)
    for (size_t d = 0; d < devices_.size(); ++d) device_s[k][d] = planned_s(k, d);
  plan_ = assign(groups, device_s);
  bool spills = false;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t k = 0; k < chains; ++k) {
      bool helps = false;
      double left = 1;
      for (size_t d = 0; d < devices_.size(); ++d) {
        left -= plan_.shares[g][k][d];
        helps |= groups[g].chains[k].device[d] < groups[g].chains[k].cpu;
      }
      spills |= helps && left > 0.001 && groups[g].chains[k].part > 0;
    }
  shared_.assign(devices_.size(), false);
  if (spills) find_shared();
  if (has_choice()) explore(groups, device_s);
}

double Model::planned_s(size_t k, size_t d) const {
  const DeviceState& device = devices_[d];
  // What nobody does is not known well enough to do it all at once: to try it is for explore(). But of few packets much
  // may be wrong.
  if (device.times.known()) {
    const double mean = device.times.seconds(k), most = device.times.most_seconds(k);
    if (!has_choice() || mean <= 0) return mean;
    if (arrives_[k] * most < kLittleOfDevice) return std::max(2 * mean - most, 0.1 * mean);
    return !pairs_[k][d].in_use && arrives_[k] * most > kMuchOfDevice ? most : mean;
  }
  // A job took its packets' time at least, and how much less each of them takes is found out step by step. Where there
  // are several chains or devices, more is learnt in the same time from devices that are full.
  if (has_choice()) return 0;
  const PairState& pair = pairs_[k][d];
  if (!(pair.packets_per_job > 0)) return 0;
  const double most = most_job(k);
  return 1e-9 * pair.job_ns * (0.4 + 0.6 * std::min(most / pair.packets_per_job, 4.0)) / most / device.ramp;
}

void Model::find_shared() {
  for (size_t d = 0; d < devices_.size(); ++d) {
    int users = 0;
    for (size_t k = 0; k < pairs_.size(); ++k) {
      double share = 0;
      for (const auto& group : plan_.shares) share += group[k][d];
      users += share > 0.001;
    }
    shared_[d] = users > 1;
  }
}

double Model::how_far(const std::vector<WorkerGroup>& groups, const Assignment& supposed) const {
  // Of a device's time, by what is believed: later, a try must not take much from the rate of some ten milliseconds.
  constexpr double kBold = 1.6, kCareful = 1.08;
  double part = 1;
  for (size_t d = 0; d < devices_.size(); ++d) {
    double now = 0, then = 0;
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t k = 0; k < pairs_.size(); ++k) {
        const double takes = plan_.rates[g] * groups[g].chains[k].part * devices_[d].times.seconds(k);
        now += takes * plan_.shares[g][k][d];
        then += takes * supposed.shares[g][k][d];
      }
    const double most = std::max(devices_[d].times.is_new() ? kBold : kCareful, now);
    if (then > most) part = std::min(part, (most - now) / (then - now));
  }
  return part;
}

void Model::explore(const std::vector<WorkerGroup>& groups, std::vector<std::vector<double>>& device_s) {
  const size_t pairs = pairs_.size() * devices_.size();
  // Each takes a solution of the linear program: where that is large, they take turns.
  size_t turns = std::clamp<size_t>(kManyPairs / (groups.size() * pairs + 1), 1, pairs);
  double best = kWorthTrying * plan_.rate;
  Assignment tried;
  size_t chosen = devices_.size();
  for (size_t i = 0; i < pairs && turns > 0; ++i) {
    supposed_ = (supposed_ + 1) % pairs;
    const size_t k = supposed_ % pairs_.size(), d = supposed_ / pairs_.size();
    const std::vector<double> supposed = devices_[d].times.suppose(k, step_ == 3);
    if (supposed.empty()) continue;
    --turns;
    for (size_t j = 0; j < supposed.size(); ++j) device_s[j][d] = supposed[j];
    Assignment plan = assign(groups, device_s);
    for (size_t j = 0; j < supposed.size(); ++j) device_s[j][d] = planned_s(j, d);
    if (!(plan.rate > best)) continue;
    if (devices_[d].times.is_settled() && plan.rate < kWorthTryingLate * plan_.rate) continue;
    best = plan.rate;
    tried = std::move(plan);
    chosen = d;
  }
  if (chosen == devices_.size()) return;
  devices_[chosen].times.guess();
  const double part = how_far(groups, tried);
  for (size_t g = 0; g < plan_.shares.size(); ++g)
    for (size_t k = 0; k < pairs_.size(); ++k)
      for (size_t d = 0; d < devices_.size(); ++d)
        plan_.shares[g][k][d] += part * (tried.shares[g][k][d] - plan_.shares[g][k][d]);
  find_shared();
}

}  // namespace headrace::balance
