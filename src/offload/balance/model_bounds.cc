// What Model does to hold bounds on delay: the sizes of jobs, and their places.

#include "offload/balance/Model.hh"

namespace headrace::balance {

void Model::see_delay(size_t k, WorkerState& w, double p99) {
  ChainState& chain = w.chains[k];
  const double bound = setup().chains[k].p99_us * 1e3;
  // What happens to a chain of another balancer is for that one to judge.
  if (bound <= 0 || !setup().chains[k].balanced) return;
  chain.delays.add(p99);
  chain.p99_ns = chain.delays.median();
  const bool over = chain.p99_ns > bound;
  // A try ends with the first packets that are late.
  if (chain.tries && chain.on_device && p99 > bound) {
    avoid(w, k, chain.job);
    chain.resized_ns = -1e18;
  }
  chain.over = over ? chain.over + 1 : 0;
  chain.late = over && (chain.late || chain.over >= 3);
  chain.broken &= over;
  if (chain.over >= 2 && !is_hungry(w))
    for (size_t d = 0; d < devices_.size(); ++d)
      if (chain.lanes[d].waits && chain.lanes[d].share > 0.01) devices_[d].late_ns = now_;
  judge_size(k, w, p99);
  double share = 0;
  bool scarce = false;
  for (const LaneState& lane : chain.lanes) {
    share += lane.share;
    scarce |= lane.scarce && lane.full > 0.01;
  }
  // That packets wait long for places says nothing about others: more places are what helps them.
  if (scarce && p99 > chain.foretold + chain.extra_ns) return;
  // Nor does it that they wait because the worker is full, which larger jobs may help.
  if (is_hungry(w) && p99 > chain.foretold + chain.extra_ns) {
    chain.extra_ns *= 0.98;
    return;
  }
  if (chain.foretold <= 0 || share < 0.05) {
    // What was seen long ago says less and less.
    chain.extra_ns *= 0.98;
    return;
  }
  // Too long soon, too short slowly.
  chain.extra.add(std::clamp(p99 - chain.foretold, -0.5 * bound, 2 * bound));
  const double extra = chain.extra.median();
  chain.extra_ns += (extra > chain.extra_ns ? 0.3 : 0.1) * (extra - chain.extra_ns);
}

void Model::judge_size(size_t k, WorkerState& w, double p99) {
  ChainState& chain = w.chains[k];
  // The first samples are of jobs of the size before, too.
  if (!chain.on_device || chain.job <= 0 || now_ - chain.resized_ns < kStay) return;
  const double per_second = w.per_second * chain.part;
  ChainState::Size& size = chain.size(chain.job);
  if (chain.late && is_full(w, k)) {
    size.dear.begin(now_);
    size.dear_at = per_second;
  }
  if (chain.over == 0 && p99 <= setup().chains[k].p99_us * 1e3) {
    size.held_ns = now_;
    size.held_at = per_second;
  } else if (chain.late && has_time(w) && !gets_less(chain.device)) {
    // What is foretold of a size may be wrong, and is foretold again when what was seen is forgotten. Where nothing smaller
    // has held the bound, the device may be full, which large jobs help.
    bool held = false;
    for (int job = smaller(chain.job); job > 1; job = smaller(job)) {
      const ChainState::Size& before = chain.size(job);
      held |= now_ - before.held_ns < kHolds && std::abs(before.held_at - per_second) < kOtherLoad * per_second;
    }
    if (held) avoid(w, k, chain.job);
  }
}

int Model::users_of(const WorkerState& w, size_t d) const {
  int users = 0;
  for (const WorkerState& other : workers_) {
    double share = 0;
    for (const ChainState& chain : other.chains) share += chain.lanes[d].share;
    users += share > 0 || &other == &w;
  }
  return users;
}

double Model::capacity_for(const WorkerState& w, size_t d) const { return devices_[d].capacity / users_of(w, d); }

bool Model::is_scarce(const WorkerState& w, size_t k) const {
  const ChainState& chain = w.chains[k];
  if (chain.places < setup().chains[k].most_places) return false;
  bool any = false, full = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (chain.lanes[d].share <= 0.01) continue;
    any |= chain.lanes[d].scarce;
    full |= now_ - devices_[d].bound_ns < kFullBefore;
  }
  return any && !full;
}

double Model::finds_places(const WorkerState& w, size_t k, const DevicePath& path) const {
  const double let_through =
      1e9 * setup().chains[k].most_places * path.job / std::max(path.job_ns + 0.5 * path.stretch_ns, 1.0);
  // A full worker would receive more: how much is not known.
  const double arrives = path.arrivals * (is_hungry(w) && is_scarce(w, k) ? kMoreComes : 1);
  return let_through / std::max(arrives, 1.0);
}

double Model::below_full(const WorkerState& w, size_t k, double share) const {
  const DeviceState& device = devices_[w.chains[k].device];
  if (has_choice() || is_hungry(w) || !(device.capacity > 0) || !(share > 0)) return 1;
  double arrives = 0;
  for (const WorkerState& other : workers_)
    if (other.chains[k].on_device) arrives += other.per_second * other.chains[k].part;
  const double part = kBelowFull * device.capacity / std::max(arrives, 1.0) / share;
  return part < 1 && has_time_for_rest(w, k, part, kAlmostBusy) ? part * share : 1;
}

bool Model::has_time_for_rest(const WorkerState& w, size_t k, double part, double cycles) const {
  double cost = w.outside.mean();
  for (size_t j = 0; j < w.chains.size(); ++j) {
    const double on_cpu = cpu_cost_of(w, j);
    double saved = 0;
    for (size_t d = 0; d < devices_.size(); ++d)
      if (const double share = j == k ? plan_.shares[w.group][j][d] : w.chains[j].lanes[d].share; share > 0)
        saved += share * (on_cpu - device_cost_of(w, j, d));
    cost += w.chains[j].part * (on_cpu - (j == k ? part : 1) * saved);
  }
  return w.per_second * cost < cycles * hz();
}

bool Model::carries_all(const WorkerState& w, size_t k, const DevicePath& path) const {
  const double part = finds_places(w, k, path);
  if (part >= 1 || !is_scarce(w, k)) return true;
  // It is full with such jobs.
  const ChainState& chain = w.chains[k];
  if (is_hungry(w) && path.job <= chain.job && now_ - chain.resized_ns >= kStay) return false;
  return has_time_for_rest(w, k, share_of(part));
}

void Model::avoid(const WorkerState& w, size_t k, int job) {
  for (WorkerState& other : workers_)
    if (&other == &w || alike(w, other, k)) other.chains[k].size(job).pause.begin(now_);
}

bool Model::may_use(const WorkerState& w, size_t k, int job) const {
  const ChainState& mine = w.chains[k];
  if (job <= kLeastJob || !mine.on_device) return true;
  // Fine steps are for few places: a full device, or worker, would go back and forth between sizes near each other.
  const bool fine = !std::has_single_bit(static_cast<unsigned>(job)) && job != most_job(k);
  if (fine && (is_hungry(w) || mine.places < setup().chains[k].most_places)) return false;
  // Larger jobs than those that do not hold the bound do so even less.
  for (int size = job; size > kLeastJob && has_time(w); size = smaller(size))
    if (!mine.size(size).pause.over(now_)) return false;
  if (mine.job <= 0 || job <= mine.job) return true;
  bool held = false, tried = false;
  for (const WorkerState& other : workers_) {
    const ChainState& chain = other.chains[k];
    if (&other == &w || !chain.on_device || !alike(w, other, k)) continue;
    held |= chain.job >= job && now_ - chain.size(chain.job).held_ns < kStay;
    tried |= chain.job > mine.job && now_ - chain.resized_ns < kTried;
  }
  if (held) return true;
  // What is foretold of sizes far from those that were seen is often wrong.
  if (job > 2 * mine.job && is_scarce(w, k)) return false;
  return !tried || is_hungry(w);
}

bool Model::is_full(const WorkerState& w, size_t k) const {
  return is_hungry(w) && w.saturated_ns > w.chains[k].resized_ns + kStay / 2;
}

int Model::smallest_job(const WorkerState& w, size_t k, DevicePath path, double limit) const {
  const ChainState& chain = w.chains[k];
  const int most = most_job(k), least = std::min(kLeastJob, most);
  if (!chain.on_device || chain.job <= 0) return least;
  const JobTimes& times = pairs_[k][chain.device].times;
  // Where packets would be late even if no job had to wait for others, jobs are too large.
  path.capacity = 0;
  const auto fits = [&](int job) {
    path.job = job;
    path.job_ns = job <= 2 * chain.job ? times.at_least(job) : times.of(job);
    return foretold_p99_ns(path) < limit;
  };
  const auto is_dear = [&](int job) {
    const ChainState::Size& size = chain.size(job);
    return !size.dear.over(now_) && w.per_second * chain.part > (1 - kOtherLoad) * size.dear_at;
  };
  // Smaller jobs than those that keep the worker busy do so even more. But where packets are much too late, what is
  // foretold of such jobs is wrong.
  const bool may_stay = !is_dear(chain.job) || chain.p99_ns < kLittleOver * 1e3 * setup().chains[k].p99_us;
  const int end = is_hungry(w) && fits(chain.job) && may_stay ? chain.job : least;
  int found = end;
  for (int job = most; job >= end && !is_dear(job); job = smaller(job)) {
    if (fits(job) && may_use(w, k, job)) found = job;
    if (job <= least) break;
  }
  return found;
}

bool Model::fit_bound(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision) {
  const BalanceSetup::Chain& chain = setup().chains[k];
  ChainState& state = w.chains[k];
  const double bound = chain.p99_us * 1e3;
  state.most_share = 1;
  if (bound <= 0) return true;
  // A worker that has more to do than the CPU can needs the device, whatever that makes of the bound: what it could not do
  // would wait longer. Near the limit of the CPU it does not go back and forth.
  const bool choice = w.load < (state.on_device ? kUse : 1) && !state.broken;
  if (state.over >= 5 && choice) {
    if (state.on_device) {
      state.bound_pause.begin(now_);
    } else if (!state.bound_pause.over(now_)) {
      // Without the device it is no better.
      state.broken = true;
    }
    state.over = 0;
  }
  if (!state.bound_pause.over(now_) && choice) return false;
  state.device = devices[0];
  const PairState& pair = pairs_[k][state.device];
  double share = 0;
  for (const size_t d : devices) share += plan_.shares[w.group][k][d];
  DevicePath path;
  path.arrivals = w.per_second * state.part * std::min(share, 1.0);
  path.capacity = capacity_for(w, state.device);
  // Without a device there are no short slices.
  path.stretch_ns = state.on_device ? w.stretch_ns : std::min(w.stretch_ns, bound / 8);
  path.max_wait_ns = std::min<double>(chain.most_wait_us * 1e3, bound / 4);
  decision.max_wait_us = static_cast<int>(path.max_wait_ns * 1e-3);
  const double limit = (state.on_device ? kHeld : kRoom) * bound;
  // The largest jobs that hold the bound, and of these as many as do. What others take is known after some samples.
  // A device that had too much to do gets fewer packets, and smaller jobs would not help it.
  const bool less = !is_full(w, k) && gets_less(state.device);
  const bool stays = state.on_device && state.job > 0 && (less || (state.over == 0 && now_ - state.resized_ns < kStay));
  // What is seen says more than what is foretold. But a full worker needs other jobs.
  const bool holds =
      state.on_device && !is_full(w, k) && state.over == 0 && now_ - state.resized_ns >= kStay && state.p99_ns <= bound;
  const bool scarce = is_scarce(w, k);
  const int least_job = smallest_job(w, k, path, limit);
  DevicePath best;
  double least = 0, most_carried = 0;
  bool held = false;
  for (int job = stays ? std::min(state.job, most_job(k)) : most_job(k); !held; job = smaller(job)) {
    if (!may_use(w, k, job)) continue;
    path.job = job;
    path.job_ns = pair.times.of(job);
    // As many as the packets that the device takes while one is under way, and one to fill. Some more, because jobs do not
    // come back one by one.
    const double taken = path.capacity > 0 ? std::min(path.arrivals, path.capacity) : path.arrivals;
    const double under_way = taken * 1e-9 * (path.job_ns + path.stretch_ns) / job;
    const int needed = std::min(chain.most_places, 1 + static_cast<int>(std::ceil(std::min(under_way, 1e6))));
    path.places = std::min(chain.most_places, 2 + static_cast<int>(std::ceil(std::min(1.5 * under_way, 1e6))));
    for (; !held && path.places >= needed; --path.places) {
      const double foretold = foretold_p99_ns(path);
      const bool all = carries_all(w, k, path);
      const bool as_now = job == state.job && path.places <= state.places;
      held = all && (foretold + state.extra_ns < limit || (as_now && holds));
      // If none does: what arrives is to be carried, and soon.
      const double part = scarce ? (all ? 1 : finds_places(w, k, path)) : path.places / (under_way + 1);
      const double carries = std::min(part, kCarried);
      if (held || best.job_ns <= 0 || carries > most_carried || (carries == most_carried && foretold < least)) {
        best = path;
        least = foretold;
        most_carried = carries;
      }
    }
    if (stays || job <= least_job) break;
  }
  state.foretold = least;
  if (best.job != state.job) {
    if (state.on_device && best.job < state.job && has_time(w)) avoid(w, k, state.job);
    state.tries = state.on_device && best.job > state.job && !is_hungry(w);
    state.resized_ns = now_;
  } else if (now_ - state.resized_ns >= kStay) {
    state.tries = false;
  }
  decision.job = state.job = best.job;
  decision.places = state.places = std::max(best.places, 1);
  const double part = finds_places(w, k, best);
  if (scarce && part < kAmple && has_time_for_rest(w, k, share_of(part))) state.most_share = share_of(part);
  if (!scarce) state.most_share = below_full(w, k, share);
  return held || stays || !choice;
}

}  // namespace headrace::balance
