// The steps of Model, and what it learns from samples.

#include "offload/balance/Model.hh"

#include <nlohmann/json.hpp>
#include <utility>

namespace headrace::balance {

namespace {

/// Where in `list` the thing is that `json` names: at the same place, or wherever one has its name.
template <typename T>
std::vector<size_t> places_of(const nlohmann::json& json, size_t place, const std::vector<T>& list) {
  std::vector<size_t> found;
  const auto name = json.is_object() ? json.find("name") : json.end();
  if (!json.is_object() || name == json.end() || !name->is_string()) return found;
  const std::string text = name->get<std::string>();
  if (place < list.size() && list[place].name == text) return {place};
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == text) found.push_back(i);
  return found;
}

}  // namespace

void Model::start() {
  const size_t chains = setup().chains.size(), devices = setup().devices.size();
  ChainState chain;
  chain.lanes.resize(devices);
  WorkerState worker;
  worker.chains.assign(chains, chain);
  worker.tokens = bank();
  worker.judge = MoveJudge(devices);
  workers_.assign(static_cast<size_t>(std::max(setup().workers, 0)), worker);
  pairs_.assign(chains, std::vector<PairState>(devices));
  cpu_.assign(chains, Cost());
  changed_ns_.assign(chains, -1e18);
  lengths_.assign(chains, Lengths());
  for (size_t k = 0; k < chains; ++k) lengths_[k].most_job = largest_job(setup().chains[k], 0);
  DeviceState device;
  device.times = DeviceTimes(chains);
  device.overhead = JobOverhead(chains);
  devices_.assign(devices, device);
  plan_ = {};
  shared_.assign(devices, false);
}

BalanceDecision Model::step(const BalanceSample& sample) {
  const double now = static_cast<double>(sample.at_ns);
  const double passed = started_ ? std::clamp(now - now_, 0.0, 1e9) : 10 * kMs;
  last_ = std::exchange(now_, started_ ? std::max(now, now_) : now);
  started_ = true;
  for (WorkerState& w : workers_) {
    w.tokens = std::min(w.tokens + kProbePart * hz() * passed * 1e-9, bank());
    w.lately *= std::exp(-passed / kLately);
  }
  for (auto& by_device : pairs_)
    for (PairState& pair : by_device) pair.times.pass(passed * 1e-9);
  for (const WorkerSample& w : sample.workers) take(w);
  look_at_lengths(passed);
  judge_total(passed);
  double last = 0, before = 0;
  for (const WorkerState& w : workers_) {
    if (w.sampled_ns < now_ || w.before <= 0) continue;
    last += w.last;
    before += w.before;
  }
  rates_left_ = before > 0 ? std::min(last / before, 1.0) : 1;
  for (size_t d = 0; d < devices_.size(); ++d) look_at_device(d);

  BalanceDecision decision = everything_on_cpu();
  make_plan();
  for (size_t w = 0; w < workers_.size(); ++w)
    if (workers_[w].known) decide(w, decision.workers[w]);
  if (!devices_.empty()) probe(decision, passed);
  choose_runs(decision, passed);
  // For people, who do not see it change: the dearest part of a step.
  if (step_ == 0) optimum_ = optimum();
  step_ = (step_ + 1) % 8;
  decision.optimum_mpps = optimum_ * 1e-6;
  decision.why = why();
  return decision;
}

std::string Model::learnt() const {
  nlohmann::ordered_json chains = nlohmann::ordered_json::array();
  for (size_t k = 0; k < pairs_.size(); ++k) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    for (size_t d = 0; d < devices_.size(); ++d) {
      const PairState& pair = pairs_[k][d];
      if (!pair.cost.known()) continue;
      const DeviceTimes& times = devices_[d].times;
      devices.push_back({{"name", setup().devices[d].name},
                         {"cycles", pair.cost.mean()},
                         {"job", pair.packets_per_job},
                         {"job_ns", pair.job_ns},
                         {"packet_ns", times.known() ? 1e9 * times.seconds(k) : 0},
                         {"jobs", pair.times.seen()}});
    }
    chains.push_back({{"name", setup().chains[k].name}, {"cpu", cpu_[k].mean()}, {"devices", devices}});
  }
  return chains.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Model::learn(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) return;
  // A value that is not there or is none teaches nothing.
  const auto value = [](const nlohmann::json& j) {
    const double v = j.is_number() ? j.get<double>() : 0;
    return v > 0 && v < 1e12 ? v : 0;
  };
  const auto number = [&](const nlohmann::json& j, const char* name) {
    const auto found = j.find(name);
    return found != j.end() ? value(*found) : 0;
  };
  std::vector<std::vector<double>> seconds(devices_.size(), std::vector<double>(pairs_.size(), 0.0));
  for (size_t i = 0; i < json.size(); ++i)
    for (const size_t k : places_of(json[i], i, setup().chains)) {
      if (const double c = number(json[i], "cpu"); c > 0) cpu_[k].add(c, 1, 0);
      const auto devices = json[i].find("devices");
      if (devices == json[i].end() || !devices->is_array()) continue;
      for (size_t j = 0; j < devices->size(); ++j)
        for (const size_t d : places_of((*devices)[j], j, setup().devices)) {
          const nlohmann::json& device = (*devices)[j];
          PairState& pair = pairs_[k][d];
          if (const double c = number(device, "cycles"); c > 0) pair.cost.add(c, 1, 0);
          pair.packets_per_job = pair.largest = number(device, "job");
          pair.job_ns = number(device, "job_ns");
          seconds[d][k] = 1e-9 * number(device, "packet_ns");
          if (const auto jobs = device.find("jobs"); jobs != device.end() && jobs->is_array())
            for (const nlohmann::json& job : *jobs)
              if (job.is_array() && job.size() == 2) pair.times.add(value(job[0]), value(job[1]));
        }
    }
  for (size_t d = 0; d < devices_.size(); ++d) devices_[d].times.learn(seconds[d]);
}

void Model::look_at_lengths(double passed) {
  const double fades = std::exp(-passed / kLengthsLast);
  for (size_t k = 0; k < lengths_.size(); ++k) {
    Lengths& seen = lengths_[k];
    if (setup().chains[k].job_bytes == 0 || !(seen.packets > 0)) continue;
    const int largest = largest_job(setup().chains[k], seen.bytes / seen.packets);
    seen.packets *= fades;
    seen.bytes *= fades;
    // Lengths near those at which it changes would change it each time.
    if (largest >= 0.9 * seen.most_job && largest < 2.2 * seen.most_job) continue;
    seen.most_job = static_cast<int>(std::bit_floor(static_cast<unsigned>(largest)));
    // What is known of larger jobs is of other packets.
    for (PairState& pair : pairs_[k])
      for (double* job : {&pair.largest, &pair.usual, &pair.costed}) *job = std::min<double>(*job, seen.most_job);
  }
}

void Model::judge_total(double passed) {
  const auto& chains = setup().chains;
  double rate = 0, on_devices = 0, on_cpu = 0, longest_ns = 0;
  bool backlogged = true;
  for (const WorkerState& w : workers_) {
    if (!w.known) continue;
    // Of a worker whose sample is late, nothing is known.
    if (w.sampled_ns < now_) return;
    backlogged &= w.saturated;
    rate += w.last;
    longest_ns = std::max(longest_ns, 1e9 * w.sample_s);
    on_cpu += hz() / std::max(cpu_cost_in_full(w), 1.0);
    // Where another balancer or mode decides, nothing arrives here.
    for (size_t k = 0; k < w.chains.size(); ++k)
      for (const LaneState& lane : w.chains[k].lanes)
        on_devices += chains[k].balanced && w.chains[k].part > 0 ? lane.per_second : 0;
  }
  // Behind a time in which nobody heard, samples are of a part of it.
  const double span = std::min(passed, 2 * longest_ns);
  const bool bound = std::any_of(chains.begin(), chains.end(), [](const auto& chain) { return chain.p99_us > 0; });
  if (rate > 0) judge_.see(rate, span, now_, backlogged, on_devices / rate, on_cpu, !bound);
}

void Model::take(const WorkerSample& s) {
  if (s.worker < 0 || static_cast<size_t>(s.worker) >= workers_.size() || s.ns <= 0 || s.cycles == 0) return;
  WorkerState& w = workers_[static_cast<size_t>(s.worker)];
  // Costs are worth knowing however old they are; the rest is about the decision of its time.
  const bool old = s.decision < w.decision;
  w.decision = std::max(w.decision, s.decision);
  const double seconds = static_cast<double>(s.ns) * 1e-9;
  const bool backlogged = ratio(s.full_bursts, s.bursts) > 0.5;
  const double chains_cycles = take_chains(s, w, old, seconds, backlogged);
  double arrived = 0;
  const size_t chains = std::min(s.chains.size(), w.chains.size());
  for (size_t k = 0; k < chains; ++k) arrived += static_cast<double>(s.chains[k].arrived);
  const double busy = std::min(static_cast<double>(s.busy), static_cast<double>(s.cycles));
  if (arrived > 0) w.outside.add(std::max(busy - chains_cycles, 0.0), arrived, now_);
  w.bursts.add(s.outside);
  if (old) return;
  for (size_t k = 0; k < chains && arrived > 0; ++k) {
    const double part = static_cast<double>(s.chains[k].arrived) / arrived;
    w.chains[k].part = w.known ? 0.5 * (w.chains[k].part + part) : part;
  }
  const double per_second = arrived / seconds;
  if (s.bursts > 0) w.burst = arrived / static_cast<double>(s.bursts);
  w.before = std::exchange(w.last, per_second);
  w.per_second = w.known ? 0.5 * (w.per_second + per_second) : per_second;
  w.stretch_ns = 0.8 * w.stretch_ns + 0.2 * std::clamp(static_cast<double>(s.stretch_ns), 0.0, 10 * kMs);
  // A worker that waits for its device does not take all that comes, either.
  w.saturated = backlogged && busy + static_cast<double>(s.waiting) > 0.9 * static_cast<double>(s.cycles);
  if (w.saturated) w.saturated_ns = now_;
  // What it could not do on the CPU, and what is left over from then, says nothing of jobs.
  const bool there = std::any_of(w.chains.begin(), w.chains.end(),
                                 [this](const ChainState& c) { return c.on_device && now_ - c.began_ns > kStay; });
  if (w.saturated && there) w.full_ns = now_;
  w.load = w.per_second * cpu_cost_in_full(w) / hz();
  // What a packet costs in a large burst does not show in bursts of one. But nothing waits, so the CPU has time left.
  const bool alone = std::none_of(w.chains.begin(), w.chains.end(), [](const ChainState& c) { return c.on_device; });
  if (alone && w.bursts.single()) w.load = std::min(w.load, kCurious);
  if (w.saturated) w.load = std::max(w.load, 1.0);
  w.known |= arrived > 0;
  w.sampled_ns = now_;
  w.sample_s = seconds;
  const bool idle = busy + static_cast<double>(s.waiting) < 0.8 * static_cast<double>(s.cycles);
  w.judge.see(per_second, static_cast<double>(s.ns), now_, !idle && backlogged,
              static_cast<double>(s.waiting) > 0.2 * static_cast<double>(s.cycles));
}

double Model::take_chains(const WorkerSample& s, WorkerState& w, bool old, double seconds, bool backlogged) {
  double all = 0;
  for (size_t k = 0; k < std::min(s.chains.size(), w.chains.size()); ++k) {
    const ChainSample& c = s.chains[k];
    ChainState& chain = w.chains[k];
    lengths_[k].packets += static_cast<double>(c.arrived);
    lengths_[k].bytes += static_cast<double>(c.bytes);
    if (c.cpu.timed != 0) {
      const double cycles = static_cast<double>(c.cpu.cycles), timed = static_cast<double>(c.cpu.timed);
      chain.cpu.add(cycles, timed, now_);
      chain.batches.add(c.cpu_batches);
      const double mine = static_cast<double>(c.cpu.packets);
      const bool few = mine <= kInARow * static_cast<double>(c.arrived);
      if (backlogged && mine > 2 * kLargeProbeOfCpu && !few) {
        const double in_full = chain.batches.in_full(cycles / timed) * timed;
        chain.in_a_row.add(in_full, timed, now_);
        // So many packets tell at once that it is another; what is planned depends on it where there is a choice.
        if (has_choice() && chain.in_a_row.suspect()) {
          chain.in_a_row = Cost();
          chain.in_a_row.add(in_full, timed, now_);
        }
        chain.probes = chain.first_probes = Cost();
      } else if (few) {
        chain.probes.add(cycles, timed, now_);
        if (chain.first_probes.samples() < kFirstProbes) chain.first_probes.add(cycles, timed, now_);
      }
      if (chain.cpu.suspect()) changed_ns_[k] = now_;
      if (cpu_[k].add(cycles, timed, now_))
        for (DeviceState& device : devices_) device.times.doubt();
      all += cycles / timed * static_cast<double>(c.cpu.packets);
      // What was paid beyond the true cost comes back.
      const double extra = std::max(std::exchange(chain.paid, 0.0) - chain.asked * cycles / timed, 0.0);
      w.tokens = std::min(w.tokens + extra, bank());
      w.lately = std::max(w.lately - extra, 0.0);
    }
    double wanted = 0;
    for (size_t d = 0; d < std::min(c.devices.size(), chain.lanes.size()); ++d) {
      const DeviceSample& v = c.devices[d];
      LaneState& lane = chain.lanes[d];
      PairState& pair = pairs_[k][d];
      const double packets = static_cast<double>(v.packets);
      const double job = v.jobs != 0 ? packets / static_cast<double>(v.jobs) : 0;
      const bool resident = is_resident(v, d);
      devices_[d].kernels[setup().chains[k].payload].jobs += static_cast<double>(v.jobs);
      if (v.stream_jobs != 0) {
        const double t = static_cast<double>(v.stream_job_ns) / static_cast<double>(v.stream_jobs);
        pair.stream_ns = pair.stream_ns > 0 ? 0.7 * pair.stream_ns + 0.3 * t : t;
      }
      if (resident) pair.usual = std::max(0.98 * pair.usual, job);
      if (v.timed != 0) {
        const double cycles = static_cast<double>(v.cycles), timed = static_cast<double>(v.timed);
        if (resident) {
          // Jobs are small because few packets went there. What the plan asks is what they cost if all do.
          double in_full = cycles;
          if (has_choice()) {
            devices_[d].overhead.add(k, cycles / timed, job);
            in_full = timed * devices_[d].overhead.in_full(cycles / timed, job, full_job(w, k));
          }
          // What smaller jobs cost says little beside a larger one, as a probe is.
          const bool few = v.jobs < kFewJobs;
          if (few && job > kLarger * lane.costed) lane.cost = Cost();
          lane.costed = few ? std::max(lane.costed, job) : job;
          lane.cost.add(in_full, timed, now_);
          if (lane.cost.suspect() && lane.share > 0.01) {
            changed_ns_[k] = now_;
            chain.probed_after_ns = kCpuProbeNs;
          }
          take_cost(pair, v, in_full, job);
        }
        // What was paid for a probe of the device beyond its true cost comes back, too, with each of its jobs.
        const double extra = std::max(cycles - timed * cpu_cost_of(w, k), 0.0);
        const double back = lane.asked > packets ? lane.paid * packets / lane.asked : lane.paid;
        w.tokens = std::min(w.tokens + std::max(back - extra, 0.0), bank());
        lane.paid -= back;
        lane.asked = std::max(lane.asked - packets, 0.0);
        all += cycles / timed * packets;
      }
      lane.queued = false;
      if (v.jobs != 0) {
        lane.job = job;
        if (resident) take_times(k, d, w, v, job, s.stretch_ns);
      }
      lane.open = v.lane;
      devices_[d].well &= v.well;
      if (!v.well) devices_[d].pause.begin(now_);
      if (old) continue;
      const double share = std::isfinite(v.share) ? std::clamp(v.share, 0.0, 1.0) : 0;
      lane.share = lane.had = std::min(share, 1 - std::min(wanted, 1.0));
      wanted += lane.share;
      const double full = static_cast<double>(v.full);
      lane.full = packets + full > 0 ? full / (packets + full) : 0;
      lane.starved = ratio(v.starved, v.polls);
      lane.per_second = packets / seconds;
      // Packets that wait for a job to be full are no sign.
      lane.owed = packets == 0 ? lane.owed + lane.share * static_cast<double>(c.arrived) : 0;
      lane.silent = lane.owed > 0 && lane.share > 0.05 && c.arrived > 1000 ? lane.silent + 1 : 0;
      if (lane.silent >= 3 && lane.silent * seconds > longest_queue_s(k, d) && lane.owed > 3.0 * most_job(k))
        devices_[d].pause.begin(now_);
      // Places that were all taken for a moment, while the device had nothing to do at others, are no sign; nor are those
      // that small jobs take: of a full device they would grow. With a bound there are few places.
      const double few = setup().chains[k].p99_us > 0 ? 0.01 : 0.001;
      const int most = chain.job > 0 ? std::min(chain.job, most_job(k)) : most_job(k);
      const bool large = lane.job >= kLarge * most;
      lane.full_places = lane.full > few && lane.share > 0.01 && lane.starved < 0.3 && large && !lane.scarce;
      if (lane.full_places && (lane.waits || has_choice())) devices_[d].bound_ns = now_;
    }
    if (!old && c.heaviest > 0) chain.heaviest = std::min(c.heaviest, 1.0);
    if (!old && c.delays >= 100) see_delay(k, w, static_cast<double>(c.delay_p99_ns));
  }
  return all;
}

void Model::take_cost(PairState& pair, const DeviceSample& v, double cycles, double job) {
  const double timed = static_cast<double>(v.timed);
  // The small jobs of a worker with few packets say nothing about those of others.
  const bool few = v.jobs < kFewJobs;
  if (few && job > kLarger * pair.costed) pair.cost = Cost();
  // A packet of a small job costs no less than one of a large job: if it does, all have become cheaper.
  if (few && job < 0.8 * pair.costed && pair.cost.known() && cycles < kCheaper * timed * pair.cost.mean())
    pair.cost.add(cycles, timed, now_, few);
  if (job >= (few ? 0.8 * pair.costed : 0.5 * std::min(pair.usual, 256.0))) {
    pair.costed = few ? std::max(pair.costed, job) : std::min(job, 256.0);
    pair.cost.add(cycles, timed, now_, few);
  }
}

double Model::longest_queue_s(size_t k, size_t d) const {
  constexpr double kMost = 0.1;
  double sum = 0;
  for (size_t j = 0; j < pairs_.size(); ++j) {
    if (j != k && !pairs_[j][d].in_use) continue;
    sum += devices_[d].times.most_seconds(j) * most_job(j) * setup().chains[j].most_places;
  }
  return std::min(sum * static_cast<double>(workers_.size()), kMost);
}

void Model::take_times(size_t k, size_t d, WorkerState& w, const DeviceSample& v, double job, int64_t stretch_ns) {
  ChainState& chain = w.chains[k];
  LaneState& lane = chain.lanes[d];
  PairState& pair = pairs_[k][d];
  const double t = static_cast<double>(v.job_ns) / static_cast<double>(v.jobs);
  pair.packets_per_job = pair.job_ns > 0 ? 0.7 * pair.packets_per_job + 0.3 * job : job;
  pair.job_ns = pair.job_ns > 0 ? 0.7 * pair.job_ns + 0.3 * t : t;
  pair.largest = std::max(pair.largest, job);
  // Jobs that take far longer than such jobs have taken wait for others.
  if (job >= 0.5 * pair.largest) {
    pair.least_ns = pair.least_ns > 0 ? std::min(1.01 * pair.least_ns, t) : t;
    lane.queued = v.starved == 0 && t > 3 * pair.least_ns + w.stretch_ns;
  }
  pair.times.add(job, t);
  // A part of the time is that until the worker looked. Jobs that wait for others say nothing, small ones little.
  if (!lane.queued && now_ - devices_[d].bound_ns > 20 * kMs && job >= 0.5 * pair.own_job) {
    const double stretch = static_cast<double>(stretch_ns);
    pair.own_ns = (t > stretch ? t - 0.5 * stretch : 0.5 * t) / job;
    pair.own_job = job;
  }
  // With few places, or small jobs, all may be taken, and the device have time for more.
  lane.waits = t >= kWaits * pair.times.at_least(job) + 0.5 * w.stretch_ns;
  const int most = setup().chains[k].most_places * most_job(k);
  lane.scarce = chain.places > 0 && chain.places * chain.job < most && !lane.waits;
}

void Model::look_at_device(size_t d) {
  DeviceState& device = devices_[d];
  device.times.pass();
  // Of a worker whose sample is late, the last rates are the best guess.
  DeviceTimes::Seen seen(pairs_.size());
  double all = 0, idle = 1, starved = 0, most_full = 0;
  bool any = false, given = false, queued = false, waits = false, unsure = false, all_came = true;
  bool full_places = false, all_use = true;
  double users = 0;
  for (const WorkerState& w : workers_) {
    if (now_ - w.sampled_ns > 50 * kMs) continue;
    any |= w.sampled_ns >= now_;
    bool uses = is_hungry(w);
    for (size_t k = 0; k < pairs_.size(); ++k) {
      const LaneState& lane = w.chains[k].lanes[d];
      uses |= lane.share > 0.01;
      seen.per_second[k] += lane.per_second;
      // A job more or less at either end. Of a worker whose sample is late, even more is unsure.
      const bool late = w.sampled_ns < now_;
      const double at_end = kPartOfJob * lane.job / std::max(w.sample_s, 1e-4);
      const double unknown = late ? (now_ - device.moved_ns < 30 * kMs ? 0.5 : 0.1) * lane.per_second : 0;
      queued |= lane.queued && lane.share > 0.01 && w.sampled_ns >= now_;
      waits |= lane.waits && lane.per_second > 0;
      full_places |= lane.full_places && w.sampled_ns >= now_;
      all_use &= lane.share > 0.01 || !is_hungry(w);
      given |= lane.share > 0 && lane.per_second > 0;
      unsure |= w.sampled_ns < now_ && std::abs(lane.share - lane.had) > kMoved;
      // In a sample shorter than a job none may have ended.
      if (lane.per_second > 0 || lane.share > 0.01) {
        seen.at_end[k] += at_end * at_end;
        seen.spread[k] += unknown * unknown;
        all_came &= !late;
      }
      all += lane.per_second;
      if (lane.per_second > 0) idle *= lane.starved;  // as if they took turns by chance
      starved += lane.per_second * lane.starved;
      most_full = std::max(most_full, lane.share > 0.01 ? lane.full : 0);
    }
    users += uses;
  }
  const bool end_known = std::exchange(device.end_known, false);
  if (!any) return;
  // Jobs under way are of the packets before when these become other ones. What the device does until they are back is a
  // mixture of both.
  if (device.drained_ns > 0 && now_ >= device.drained_ns) {
    device.times.doubt();
    device.drained_ns = 0;
    device.forgotten = device.times.forgotten();
  }
  // Jobs that take no longer than alone do not wait for others: it is this worker that has no more places, not the device.
  // Where all that need the device use it, this is the same, until others need it.
  if (device.bound_ns >= now_) device.with_places_of = 0;
  if (full_places && all_use && device.bound_ns < now_) {
    device.bound_ns = now_;
    device.with_places_of = users;
  } else if (device.with_places_of > 0 && users > device.with_places_of) {
    const double part = std::max(device.with_places_of / users, kMostAtOnce);
    device.times.is_less(part);
    device.with_places_of /= part;
  }
  const bool full = device.bound_ns >= now_ && all > 0;
  seen.starved = all > 0 ? starved / all : 0;
  seen.follows = end_known && all_came;
  const auto follow = [all](double& capacity) { capacity = capacity > 0 ? 0.8 * capacity + 0.2 * all : all; };
  if (full) follow(device.capacity);
  if (full && device.with_places_of == 0) {
    follow(device.full_capacity);
    device.full_ns = now_;
  }
  const bool choice = has_choice();
  if ((unsure && choice) || (full && !choice && rates_left_ < kFell)) {
    // What came back for a worker whose share has changed since its last sample is not known. Where the load has fallen,
    // the device was full for a part of the sample only.
  } else if (full || (queued && all > 0 && choice)) {
    device.times.busy(seen, 1, true, most_full > 0.1);
    device.end_known = all_came;
  } else if (device.times.known() && all > 0) {
    // Not more than the time in which it had something to do. Workers look more often while there is nothing, so this says
    // something of a device only that should be nearly full.
    const double most = std::clamp(1.0 - idle, 0.1, 1.0), used = device.times.used(seen.per_second);
    if (used > 1 && choice)
      device.times.busy(seen, 1, false);
    else if (used > most && (used > kNearlyFull || !choice))
      device.times.busy(seen, most, false);
    // What is never tried is never learnt. Where jobs wait for others, the device has enough to do, as far as it is known
    // how long they take otherwise.
    const bool tries = !choice || !waits || step_ % 4 == 0;
    const bool alone = !choice && !waits && setup().chains[0].p99_us <= 0;
    if (used > kFull && lacking_ && tries) device.times.calm(starved > 0.4 * all, alone);
  }
  if (choice && device.times.forgotten() != device.forgotten) {
    device.forgotten = device.times.forgotten();
    double longest_ns = 0;
    for (const auto& by_device : pairs_)
      if (by_device[d].in_use) longest_ns = std::max(longest_ns, by_device[d].job_ns);
    if (longest_ns > 0) device.drained_ns = now_ + std::min(longest_ns, kLongestJob);
  }
  // Of many workers each may send too little for it to be in use.
  device.few = given && !device.in_use ? device.few + 1 : 0;
  if (!device.times.known() && all > 0 && (device.in_use || device.few > kTooLittle))
    device.ramp = std::min(2 * device.ramp, 1e6);
  // Nearly as much as it is believed to do was more than it can: packets would be late for long if that were learnt as
  // slowly as what it does at most. They may be late for other reasons, so this is believed but rarely.
  if (device.late_ns >= now_ && device.grows.over(now_) && all > kNearlyFull * device.capacity) {
    if (all < kLess * device.capacity) device.less_ns = now_;
    device.capacity = std::min(all, device.capacity);
    device.grows.begin(now_);
  }
  // Whether it does more is tried, and makes packets late if not: each time after a longer pause.
  if (now_ - device.bound_ns > 200 * kMs && device.grows.over(now_)) device.capacity *= 1.001;
  for (size_t k = 0; k < pairs_.size(); ++k) {
    const PairState& pair = pairs_[k][d];
    // A job took its packets' time at least.
    if (pair.job_ns > 0 && pair.packets_per_job > 0)
      device.times.at_most(k, 1.1e-9 * pair.job_ns / pair.packets_per_job);
  }
  bool well = true;
  std::swap(well, device.well);
  if (!well) device.bound_ns = -1e18;
}

double Model::cpu_cost_in_full(const WorkerState& w) const {
  double cost = outside_in_full(w);
  for (size_t k = 0; k < w.chains.size(); ++k) cost += w.chains[k].part * cpu_cost_in_full(w, k);
  return cost;
}

double Model::device_cost_of(const WorkerState& w, size_t k, size_t d) const {
  const Cost &mine = w.chains[k].lanes[d].cost, &all = pairs_[k][d].cost;
  // What it knows is of other packets, if all of it was seen before the others' cost began anew, or if its last sample
  // is far from it and not from theirs.
  const bool old = mine.at_ns() < all.began_ns() || (mine.suspect() && !all.suspect() && all.at_ns() >= mine.at_ns());
  // Its own small jobs say less than large ones of others.
  const bool alike = w.chains[k].lanes[d].job >= 0.5 * std::min(pairs_[k][d].largest, 256.0);
  return mine.known() && !old && alike && mine.at_ns() > all.at_ns() - 100 * kMs ? mine.mean() : all.mean();
}

double Model::full_job(const WorkerState& w, size_t k) const {
  const ChainState& chain = w.chains[k];
  const double in_time = w.per_second * chain.part * 1e-6 * setup().chains[k].most_wait_us;
  return std::min<double>(in_time + w.burst * chain.part,
                          chain.job > 0 ? std::min(chain.job, most_job(k)) : most_job(k));
}

bool Model::is_conclusive(size_t k, size_t d) const {
  return pairs_[k][d].largest >= 0.5 * std::min(most_job(k), 1024);
}

HEADRACE_BALANCER(Model, "the default: measures what each side costs, and computes the best")

}  // namespace headrace::balance
