#include "offload/balance/simulator.hh"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "offload/balance/follow.hh"
#include "offload/balance/formulas.hh"
#include "offload/balance/sanitize.hh"
#include "offload/balance/trace.hh"

namespace headrace::balance {

namespace {

/// xorshift64*: the same numbers everywhere.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {}
  double roll() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<double>((state_ * 0x2545f4914f6cdd1du) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

/// Times in buckets that are a sixteenth of their power of two wide.
class Delays {
 public:
  void add(double ns, uint64_t packets) {
    const uint64_t v = static_cast<uint64_t>(std::clamp(ns, 16.0, 1e12));
    const int power = 63 - __builtin_clzll(v);
    const size_t bucket = static_cast<size_t>(power) * 16 + ((v >> (power - 4)) & 15);
    counts_[bucket] += packets;
    all_ += packets;
  }
  void add(const Delays& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    all_ += other.all_;
  }
  double quantile(double part) const {
    double left = part * static_cast<double>(all_);
    for (size_t i = 0; i < counts_.size(); ++i) {
      left -= static_cast<double>(counts_[i]);
      if (counts_[i] != 0 && left <= 0)
        return std::ldexp(1.0 + static_cast<double>(i % 16 + 1) / 16, static_cast<int>(i / 16));
    }
    return 0;
  }
  uint64_t all() const { return all_; }

 private:
  std::array<uint32_t, 41 * 16> counts_{};
  uint64_t all_ = 0;
};

struct Job {
  int packets = 0;
  double opened = 0;  ///< when its first packet came
  double first = 0;   ///< since when its first packet may have been in the router
  double last = 0;    ///< likewise its last
  double submitted = 0;
  double done = 0;
  bool stream = false;
};

/// One worker's jobs of one chain on one device.
struct Lane {
  Job open;
  int to_append = 0;
  int parked = 0;  ///< of these, those that have found no place
  std::deque<Job> under_way;
  double share = 0;
  double carry = 0;  ///< parts of packets
  int warming = 0;   ///< packets of a probe that are not measured
  DeviceSample sample;
  uint64_t ms_for = 0, ms_full = 0, ms_polls = 0, ms_starved = 0;
  double used = -1e18;  ///< when a packet went this way last
};

struct ChainState {
  double carry = 0;
  int on_cpu = 0;           ///< packets of the present burst that wait for the CPU
  double cpu_used = -1e18;  ///< when a packet went this way last
  int warming = 0;          ///< packets of a probe that are not measured
  std::vector<Lane> lanes;
  Lean lean;
  ChainSample sample;
  Delays delays;
};

/// Jobs of one lane at one look, as in JobQueue.
constexpr int kMostReleased = 8;
/// To divide packets costs nothing on these machines, in cycles per packet.
constexpr double kDividingCycles = 0;
/// A worker that has nothing to do looks again after so many nanoseconds.
constexpr double kLeastWait = 50;

struct WorkerState {
  double now = 0;      ///< ns
  double arrived = 0;  ///< until when packets have come into the ring
  double ring = 0;
  double stolen = 0;  ///< cycles that devices on its CPU will take
  double looked = 0;  ///< when the source was asked last
  double since = 0;   ///< and the time before
  double polled = 0;
  bool look = false;  ///< for finished jobs, before anything else
  unsigned looks = 0;
  double looks_cycles = 0;  ///< what they cost, as far as no packets came back for which that is
  double next_ms = 1e6;
  double next_pause = 0;
  double sampled = 0;
  double received = 0;  ///< packets, since then
  double in_hand = 0;   ///< packets that were received and not yet appended or run, then
  std::vector<ChainState> chains;
  WorkerSample sample;
};

class Simulation {
 public:
  Simulation(const std::vector<Phase>& phases, Balancer& balancer, uint64_t seed, std::string trace_as)
      : phases_(phases),
        machine_(&phases[0].machine),
        balancer_(balancer),
        dice_(seed),
        trace_as_(std::move(trace_as)) {
    setup_ = machine_->setup();
    decision_ = all_on_cpu();
    workers_.resize(static_cast<size_t>(setup_.workers));
    free_.assign(setup_.devices.size(), 0.0);
    leaves_.assign(setup_.devices.size(), {-1e18, -1e18});
    for (WorkerState& w : workers_) {
      w.chains.resize(setup_.chains.size());
      for (ChainState& c : w.chains) {
        c.lanes.resize(setup_.devices.size());
        c.sample.devices.resize(setup_.devices.size());
      }
      w.sample.chains.resize(setup_.chains.size());
      w.next_pause = pause_after(0);
    }
  }

  Simulated run(double seconds) {
    balancer_.set_setup(setup_);
    if (!trace_as_.empty()) result_.trace.push_back(trace_line(TraceHead{setup_, trace_as_, ""}));
    const double end = seconds * 1e9;
    double at = 0;
    size_t steps = 0;
    // Whole steps: a shorter one at the end would say little.
    while (at + machine_->step_ms * 1e6 < end * (1 + 1e-9)) {
      at += machine_->step_ms * 1e6;
      while (WorkerState* w = earliest(at)) event(*w);
      step(at);
      ++steps;
      if (phase_ + 1 < phases_.size() && phases_[phase_ + 1].at_s * 1e9 <= at) machine_ = &phases_[++phase_].machine;
    }
    result_.step_us = steps != 0 ? spent_us_ / static_cast<double>(steps) : 0;
    for (size_t p = 0; p <= phase_; ++p)
      judge(p, p + 1 < phases_.size() ? std::min(phases_[p + 1].at_s, seconds) : seconds);
    return std::move(result_);
  }

 private:
  BalanceDecision all_on_cpu() const {
    BalanceDecision d;
    std::vector<ChainDecision> chains;
    for (size_t k = 0; k < setup_.chains.size(); ++k) chains.push_back(chain_on_cpu(setup_, k));
    d.workers.assign(static_cast<size_t>(setup_.workers), chains);
    return d;
  }
  double pause_after(double ns) {
    return machine_->pauses > 0 ? ns + dice_.roll() * 2e9 / machine_->pauses : std::numeric_limits<double>::infinity();
  }
  WorkerState* earliest(double before) {
    WorkerState* found = nullptr;
    for (WorkerState& w : workers_)
      if (w.now < before && (!found || w.now < found->now)) found = &w;
    return found;
  }
  size_t index(const WorkerState& w) const { return static_cast<size_t>(&w - workers_.data()); }
  double ns(double cycles) const { return cycles / machine_->ghz; }

  void receive_into_ring(WorkerState& w) {
    w.ring = std::min<double>(w.ring + (w.now - w.arrived) * 1e-9 * machine_->arrivals(index(w)), machine_->ring);
    w.arrived = w.now;
  }
  /// The cycles that it took, with those that a device on the same CPU took meanwhile.
  double work(WorkerState& w, double cycles) {
    cycles += std::exchange(w.stolen, 0.0);
    w.now += ns(cycles);
    w.sample.busy += static_cast<uint64_t>(cycles);
    return cycles;
  }

  uint64_t measured(double cycles) {
    return static_cast<uint64_t>(cycles * (1 + machine_->noise * (2 * dice_.roll() - 1)));
  }

  /// What a side costs in addition if its caches are cold.
  double cold(const WorkerState& w, double& used) const {
    constexpr double kColdNs = 1e6;
    return w.now - std::exchange(used, w.now) > kColdNs ? machine_->cold_cycles : 0;
  }

  void submit(WorkerState& w, size_t k, size_t d) {
    Lane& lane = w.chains[k].lanes[d];
    if (lane.open.packets == 0) return;
    const Machine::Device& device = machine_->devices[d];
    Job job = lane.open;
    lane.open = Job();
    job.stream = (decision_.workers[index(w)][k].stream || !device.resident) && device.stream;
    auto& leaves = leaves_[d];
    const bool payload = machine_->chains[k].payload;
    double extra_us = job.stream ? device.stream_us : 0;
    if (!job.stream && device.resident_idle_us > 0 && w.now >= leaves[payload]) {
      extra_us += device.start_us;
      work(w, device.start_cycles);
    }
    job.submitted = w.now;
    const double start = std::max(w.now, free_[d]);
    const double taken = start < leaves[!payload] ? device.stays : 0;
    const double busy = job.packets * machine_->device_ns(k, d) / (1 - std::min(taken, 0.99));
    free_[d] = start + busy;
    job.done =
        start + std::max(busy, device.slow * ((device.job_us + extra_us) * 1e3 + device.packet_ns * job.packets));
    if (!job.stream) leaves[payload] = std::max(leaves[payload], job.done + device.resident_idle_us * 1e3);
    lane.under_way.push_back(job);
    w.stolen += device.steal_cycles * job.packets;
  }

  void release(WorkerState& w, size_t k, size_t d) {
    ChainState& chain = w.chains[k];
    Lane& lane = chain.lanes[d];
    const Machine::Device& device = machine_->devices[d];
    const Job job = lane.under_way.front();
    lane.under_way.pop_front();
    // A half was paid when packets were packed.
    const double mine = machine_->chains[k].device[d] * 0.5 * job.packets + device.job_cycles +
                        (job.stream ? device.stream_job_cycles : 0) + cold(w, lane.used);
    const double cost = machine_->chains[k].device[d] * 0.5 * job.packets + work(w, mine);
    const uint64_t n = static_cast<uint64_t>(job.packets);
    lane.sample.packets += n;
    const uint64_t measured_cost = measured(cost);
    if (lane.warming > 0) {
      lane.warming -= job.packets;
    } else {
      lane.sample.timed += n;
      lane.sample.cycles += measured_cost;
    }
    ++lane.sample.jobs;
    lane.sample.job_ns += static_cast<uint64_t>(w.now - job.submitted);
    if (job.stream) {
      ++lane.sample.stream_jobs;
      lane.sample.stream_job_ns += static_cast<uint64_t>(w.now - job.submitted);
      ++result_.stream_jobs;
    }
    ++result_.jobs;
    chain.delays.add(w.now - job.first, n - n / 2);
    chain.delays.add(w.now - job.last, n / 2);
    done_on_devices_ += static_cast<double>(n);
    done_ += static_cast<double>(n);
  }

  /// Jobs that a worker may not submit because all places are taken.
  bool has_place(const WorkerState& w, size_t k, size_t d) const {
    const Lane& lane = w.chains[k].lanes[d];
    return static_cast<int>(lane.under_way.size()) < decision_.workers[index(w)][k].places && machine_->devices[d].well;
  }

  /// A few are measured, as LoadMeter does.
  void cost_of_look(WorkerState& w) {
    constexpr unsigned kEvery = 16, kTimed = 2;
    if (machine_->look_cycles <= 0) return;
    const bool any = std::any_of(w.chains.begin(), w.chains.end(), [](const ChainState& chain) {
      return std::any_of(chain.lanes.begin(), chain.lanes.end(), [](const Lane& l) { return !l.under_way.empty(); });
    });
    if (!any) return;
    const double cycles = work(w, machine_->look_cycles);
    if (++w.looks % kEvery < kTimed) w.looks_cycles += cycles * kEvery / kTimed;
  }

  /// What looks cost is a part of what devices cost.
  static void charge_looks(WorkerState& w) {
    double packets = 0;
    for (const ChainState& chain : w.chains)
      for (const Lane& lane : chain.lanes) packets += static_cast<double>(lane.sample.timed);
    if (packets <= 0) return;
    const double each = std::exchange(w.looks_cycles, 0.0) / packets;
    for (ChainState& chain : w.chains)
      for (Lane& lane : chain.lanes)
        lane.sample.cycles += static_cast<uint64_t>(each * static_cast<double>(lane.sample.timed));
  }

  void poll(WorkerState& w) {
    w.sample.stretch_ns = std::max(w.sample.stretch_ns, static_cast<int64_t>(w.now - w.polled));
    w.polled = w.now;
    cost_of_look(w);
    for (size_t k = 0; k < w.chains.size(); ++k)
      for (size_t d = 0; d < w.chains[k].lanes.size(); ++d) {
        Lane& lane = w.chains[k].lanes[d];
        if (lane.share <= 0 && lane.under_way.empty() && lane.open.packets == 0) continue;
        if (!lane.under_way.empty()) work(w, Machine::kLook);
        // A job that is done has left the device, whether the worker has seen it or not.
        const bool starved = lane.under_way.empty() || lane.under_way.back().done <= w.now;
        ++lane.sample.polls;
        ++lane.ms_polls;
        lane.sample.starved += starved;
        lane.ms_starved += starved;
        for (int n = 0; n < kMostReleased && !lane.under_way.empty() && lane.under_way.front().done <= w.now &&
                        machine_->devices[d].well;
             ++n)
          release(w, k, d);
        if (lane.open.packets == 0) continue;
        const ChainDecision& decision = decision_.workers[index(w)][k];
        const bool waited = w.now - lane.open.opened >= decision.max_wait_us * 1e3;
        if ((lane.open.packets >= full_job(k, decision) || waited) && has_place(w, k, d)) submit(w, k, d);
      }
    w.look = false;
  }

  /// Packets a second since the last step. A worker ends a step within a burst, and some time behind it: a burst more or
  /// less would be much of what a slow one does.
  double rate(WorkerState& w) const {
    double in_hand = 0;
    for (const ChainState& chain : w.chains) {
      in_hand += chain.on_cpu;
      for (const Lane& lane : chain.lanes) in_hand += lane.to_append;
    }
    const double packets = std::exchange(w.received, 0.0) + w.in_hand - in_hand;
    w.in_hand = in_hand;
    return packets * 1e9 / std::max(w.now - w.sampled, 1.0);
  }

  void follow(WorkerState& w) {
    const double ms = (w.now - (w.next_ms - 1e6)) / 1e6;
    w.next_ms = w.now + 1e6;
    const double waiting = static_cast<double>(w.sample.waiting) / (machine_->ghz * std::max(w.now - w.sampled, 1.0));
    for (size_t k = 0; k < w.chains.size(); ++k) {
      ChainState& chain = w.chains[k];
      shares_.clear();
      seen_.clear();
      for (Lane& lane : chain.lanes) {
        shares_.push_back(lane.share);
        seen_.push_back({ratio(lane.ms_full, lane.ms_for), ratio(lane.ms_starved, lane.ms_polls), waiting});
        lane.ms_for = lane.ms_full = lane.ms_polls = lane.ms_starved = 0;
      }
      if (!decision_.workers[index(w)][k].follow) continue;
      follow_shares(shares_, seen_, chain.lean, worth_dividing(kDividingCycles, 0), ms);
      for (size_t d = 0; d < shares_.size(); ++d) chain.lanes[d].share = shares_[d];
    }
  }

  /// What a worker does between two looks for finished jobs.
  void event(WorkerState& w) {
    if (w.now >= w.next_pause) {
      w.now += machine_->pause_ms * 1e6;
      w.next_pause = pause_after(w.now);
    }
    if (w.now >= w.next_ms) follow(w);
    if (w.look) poll(w);
    for (size_t k = 0; k < w.chains.size(); ++k)
      for (size_t d = 0; d < w.chains[k].lanes.size(); ++d)
        if (w.chains[k].lanes[d].to_append != 0) return append(w, k, d);
    for (size_t k = 0; k < w.chains.size(); ++k)
      if (w.chains[k].on_cpu != 0) return slice(w, k);
    poll(w);
    receive_into_ring(w);
    w.since = w.looked;
    w.looked = w.now;
    const int n = std::min(static_cast<int>(w.ring), machine_->burst);
    if (n == 0) return idle(w);
    w.ring -= n;
    w.received += n;
    ++w.sample.bursts;
    w.sample.full_bursts += n == machine_->burst;
    const double cost = work(w, machine_->burst_cycles + machine_->outside * n);
    w.sample.outside.add(static_cast<uint64_t>(n), static_cast<uint64_t>(cost));
    split(w, n);
  }

  /// Says which packets of a burst go where.
  void split(WorkerState& w, int n) {
    int left = n;
    for (size_t k = 0; k < w.chains.size(); ++k) {
      ChainState& chain = w.chains[k];
      chain.carry += n * machine_->chains[k].part;
      int mine = k + 1 == w.chains.size() ? left : std::min(static_cast<int>(chain.carry), left);
      chain.carry -= mine;
      left -= mine;
      chain.sample.arrived += static_cast<uint64_t>(mine);
      chain.sample.bytes += static_cast<uint64_t>(mine) * static_cast<uint64_t>(machine_->chains[k].link_bytes);
      ChainDecision& decision = decision_.workers[index(w)][k];
      // A probe comes first, whatever the shares are.
      const int probe = std::min(decision.probe, mine);
      decision.probe -= probe;
      int left_over = mine - probe;
      for (size_t d = 0; d < chain.lanes.size(); ++d) {
        Lane& lane = chain.lanes[d];
        lane.carry += (mine - probe) * lane.share;
        int there = std::min(static_cast<int>(lane.carry), left_over);
        lane.carry -= there;
        left_over -= there;
        if (decision.probe_device == static_cast<int>(d)) there += probe;
        lane.to_append = there;
        lane.ms_for += static_cast<uint64_t>(there);
      }
      chain.on_cpu += left_over + (decision.probe_device < 0 ? probe : 0);
    }
  }

  int full_job(size_t k, const ChainDecision& decision) const {
    return std::min(decision.job, largest_job(setup_.chains[k], machine_->chains[k].link_bytes));
  }

  void append(WorkerState& w, size_t k, size_t d) {
    Lane& lane = w.chains[k].lanes[d];
    const int job = full_job(k, decision_.workers[index(w)][k]);
    if (lane.open.packets >= job && has_place(w, k, d)) submit(w, k, d);
    if (lane.open.packets >= job) {
      const bool waits = is_everything(lane.share) && machine_->devices[d].well;
      const int n =
          waits ? lane.to_append - lane.parked : std::min(lane.to_append, decision_.workers[index(w)][k].slice);
      lane.sample.full += static_cast<uint64_t>(n);
      lane.ms_full += static_cast<uint64_t>(n);
      if (waits) {
        // All goes to this device: packets and their source wait for a place.
        lane.parked = lane.to_append;
        const double next = std::max(lane.under_way.front().done, w.now + kLeastWait);
        w.sample.waiting += static_cast<uint64_t>((next - w.now) * machine_->ghz);
        w.now = next;
        w.look = true;
        return;
      }
      // The job is full and waits for a place. One slice runs on the CPU; then there may be one.
      w.chains[k].on_cpu += n;
      lane.to_append -= n;
      return slice(w, k);
    }
    const int n = std::min(lane.to_append, job - lane.open.packets);
    if (lane.open.packets == 0) {
      lane.open.opened = w.now;
      lane.open.first = w.since;
    }
    lane.open.last = w.since;
    lane.open.packets += n;
    lane.to_append -= n;
    lane.parked = std::min(lane.parked, lane.to_append);
    work(w, machine_->chains[k].device[d] * 0.5 * n);
    if (lane.open.packets >= job && has_place(w, k, d)) submit(w, k, d);
  }

  /// Of a packet.
  double cpu_cost(const Machine::Chain& chain) const {
    return chain.cpu_beside > 0 ? chain.cpu + beside_ * (chain.cpu_beside - chain.cpu) : chain.cpu;
  }

  void slice(WorkerState& w, size_t k) {
    ChainState& chain = w.chains[k];
    int n = std::min(chain.on_cpu, decision_.workers[index(w)][k].slice);
    chain.on_cpu -= n;
    const Machine::Chain& of_chain = machine_->chains[k];
    if (const int warming = std::min(chain.warming, n); warming > 0) {
      // Not measured; the rest of the batch is, as another one.
      chain.warming -= warming;
      (void)work(w, of_chain.batch_cycles + cpu_cost(of_chain) * warming + cold(w, chain.cpu_used));
      chain.sample.cpu.packets += static_cast<uint64_t>(warming);
      chain.delays.add(w.now - w.since, static_cast<uint64_t>(warming));
      done_ += warming;
      n -= warming;
      w.look = true;
      if (n == 0) return;
    }
    const uint64_t cycles = measured(work(w, of_chain.batch_cycles + cpu_cost(of_chain) * n + cold(w, chain.cpu_used)));
    const uint64_t packets = static_cast<uint64_t>(n);
    chain.sample.cpu.packets += packets;
    chain.sample.cpu.timed += packets;
    chain.sample.cpu.cycles += cycles;
    chain.sample.cpu_batches.add(packets, cycles);
    chain.delays.add(w.now - w.since, packets);
    done_ += n;
    w.look = true;
  }

  void idle(WorkerState& w) {
    constexpr double kMostIdle = 10e3;
    double next = w.now + kMostIdle;
    bool waiting = false;
    for (size_t k = 0; k < w.chains.size(); ++k)
      for (size_t d = 0; d < w.chains[k].lanes.size(); ++d) {
        Lane& lane = w.chains[k].lanes[d];
        // Nothing more comes soon, and the device has nothing to do.
        if (lane.open.packets != 0 && lane.under_way.empty() && has_place(w, k, d)) submit(w, k, d);
        if (!lane.under_way.empty()) next = std::min(next, std::max(lane.under_way.front().done, w.now + kLeastWait));
        waiting |= !lane.under_way.empty();
      }
    const double rate = machine_->arrivals(index(w)) * 1e-9;
    next = std::min(next, w.now + std::max((least_burst() - w.ring) / rate, kLeastWait));
    if (waiting) w.sample.waiting += static_cast<uint64_t>((next - w.now) * machine_->ghz);
    w.now = next;
  }

  /// Packets that are there before a worker with nothing to do sees them. Where bursts cost nothing by themselves, to look
  /// for each packet would only take time to simulate.
  double least_burst() const {
    bool costly = machine_->burst_cycles > 0;
    for (const Machine::Chain& chain : machine_->chains) costly |= chain.batch_cycles > 0;
    return costly ? 1.01 : 32.01;
  }

  static void see_costs(ChainState& chain) {
    const ChainSample& s = chain.sample;
    chain.lean.see_cpu(static_cast<double>(s.cpu.cycles), static_cast<double>(s.cpu.timed));
    double cycles = 0, packets = 0;
    for (const DeviceSample& d : s.devices) {
      cycles += static_cast<double>(d.cycles);
      packets += static_cast<double>(d.timed);
    }
    chain.lean.see_devices(cycles, packets);
  }

  void step(double at) {
    BalanceSample sample;
    sample.at_ns = static_cast<int64_t>(at);
    sample.workers = std::move(late_);
    late_.clear();
    SimulatedStep seen;
    double busy = 0;
    Delays all;
    for (size_t i = 0; i < workers_.size(); ++i) {
      WorkerState& w = workers_[i];
      WorkerSample& s = w.sample;
      s.worker = static_cast<int>(i);
      s.decision = number_;
      s.ns = static_cast<int64_t>(w.now - w.sampled);
      s.cycles = static_cast<uint64_t>((w.now - w.sampled) * machine_->ghz);
      seen.mpps += rate(w) * 1e-6;
      w.sampled = w.now;
      busy += static_cast<double>(s.busy);
      charge_looks(w);
      for (size_t k = 0; k < w.chains.size(); ++k) {
        ChainState& chain = w.chains[k];
        for (size_t d = 0; d < chain.lanes.size(); ++d) {
          chain.lanes[d].sample.share = chain.lanes[d].share;
          chain.lanes[d].sample.well = machine_->devices[d].well;
          chain.sample.devices[d] = chain.lanes[d].sample;
          chain.lanes[d].sample = DeviceSample();
        }
        see_costs(chain);
        chain.sample.delays = chain.delays.all();
        chain.sample.delay_p50_ns = static_cast<uint64_t>(chain.delays.quantile(0.5));
        chain.sample.delay_p99_ns = static_cast<uint64_t>(chain.delays.quantile(0.99));
        s.chains[k] = chain.sample;
        all.add(chain.delays);
        chain.delays = Delays();
        chain.sample = ChainSample();
        chain.sample.devices.resize(setup_.devices.size());
      }
      const double luck = dice_.roll();
      if (luck < machine_->late)
        late_.push_back(s);
      else if (luck >= machine_->late + machine_->missing)
        sample.workers.push_back(s);
      s = WorkerSample();
      s.chains.resize(setup_.chains.size());
    }
    if (!trace_as_.empty()) result_.trace.push_back(trace_line(sample));
    const auto before = std::chrono::steady_clock::now();
    BalanceDecision decision = decide(balancer_, sample, decision_, number_ + 1, result_.corrections);
    spent_us_ += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count();
    if (!trace_as_.empty()) result_.trace.push_back(trace_line(decision));
    decision_ = std::move(decision);
    for (WorkerState& w : workers_)
      for (size_t k = 0; k < w.chains.size(); ++k)
        if (const ChainDecision& chain = decision_.workers[index(w)][k]; chain.probe > 0) {
          w.chains[k].warming = chain.probe_device < 0 ? warming_packets(chain.probe) : 0;
          if (chain.probe_device >= 0)
            w.chains[k].lanes[static_cast<size_t>(chain.probe_device)].warming =
                warming_packets(chain.probe, chain.job);
        }
    ++number_;
    for (size_t i = 0; i < workers_.size(); ++i)
      for (size_t k = 0; k < setup_.chains.size(); ++k)
        for (size_t d = 0; d < setup_.devices.size(); ++d)
          workers_[i].chains[k].lanes[d].share = decision_.workers[i][k].shares[d];

    const double seconds = (at - last_at_) * 1e-9;
    last_at_ = at;
    beside_ += 0.3 * (std::min(4 * (done_ > 0 ? done_on_devices_ / done_ : 0), 1.0) - beside_);
    seen.at_s = at * 1e-9;
    seen.share = done_ > 0 ? done_on_devices_ / done_ : 0;
    seen.p99_us = all.quantile(0.99) * 1e-3;
    seen.worker_cycles = busy / seconds;
    seen.why = decision_.why;
    result_.steps.push_back(std::move(seen));
    done_ = done_on_devices_ = 0;
  }

  /// The mean rate of the steps [i, i + n).
  double mean(size_t i, size_t n) const {
    double sum = 0;
    for (size_t j = i; j < i + n; ++j) sum += result_.steps[j].mpps;
    return sum / static_cast<double>(n);
  }

  void judge(size_t number, double end_s) {
    const Machine& m = phases_[number].machine;
    SimulatedPhase phase;
    phase.at_s = phases_[number].at_s;
    phase.optimum_mpps = m.optimum() * 1e-6;
    size_t first = 0, end = 0;
    for (size_t i = 0; i < result_.steps.size(); ++i) {
      if (result_.steps[i].at_s <= phase.at_s + 1e-9) first = i + 1;
      if (result_.steps[i].at_s <= end_s + 1e-9) end = i + 1;
    }
    if (end <= first) return;
    const auto window = [&](double ms) {
      return std::clamp<size_t>(static_cast<size_t>(std::lround(ms / m.step_ms)), 1, end - first);
    };
    const auto since = [&](double part) {
      const size_t n = window(30);
      double found = -1;
      for (size_t i = end - n + 1; i-- > first;) {
        if (mean(i, n) < part * phase.optimum_mpps) break;
        found = (static_cast<double>(i - first)) * m.step_ms;
      }
      return found;
    };
    phase.at_95_ms = since(0.95);
    phase.at_98_ms = since(0.98);
    size_t settled = first + window(100);
    if (settled + 2 > end) settled = first + (end - first) / 2;
    phase.mpps = mean(settled, end - settled);
    const size_t n = std::min(window(50), end - settled);
    double lowest = 1e30, highest = 0;
    for (size_t i = settled; i + n <= end; ++i) {
      // What was left over from before makes the rate higher than what arrives for some time.
      const double rate = std::min(mean(i, n), phase.optimum_mpps);
      lowest = std::min(lowest, rate);
      highest = std::max(highest, rate);
    }
    phase.cycling = phase.optimum_mpps > 0 ? (highest - lowest) / phase.optimum_mpps : 0;
    for (const Machine::Chain& chain : m.chains)
      if (chain.p99_us > 0) phase.bound_us = phase.bound_us > 0 ? std::min(phase.bound_us, chain.p99_us) : chain.p99_us;
    std::vector<double> p99;
    double over = 0;
    for (size_t i = settled; i < end; ++i) {
      const SimulatedStep& s = result_.steps[i];
      p99.push_back(s.p99_us);
      over += phase.bound_us > 0 && s.p99_us > phase.bound_us;
      phase.share += s.share;
      phase.worker_cycles += s.worker_cycles;
    }
    const double count = static_cast<double>(end - settled);
    phase.share /= count;
    phase.worker_cycles /= count;
    phase.over_bound = over / count;
    std::nth_element(p99.begin(), p99.begin() + static_cast<std::ptrdiff_t>(p99.size() / 2), p99.end());
    phase.p99_us = p99[p99.size() / 2];
    phase.why = result_.steps[end - 1].why;
    phase.stated_mpps = decision_.optimum_mpps;
    result_.phases.push_back(std::move(phase));
  }

  const std::vector<Phase>& phases_;
  size_t phase_ = 0;
  const Machine* machine_;
  Balancer& balancer_;
  Dice dice_;
  std::string trace_as_;
  BalanceSetup setup_;
  BalanceDecision decision_;
  uint64_t number_ = 0;
  std::vector<WorkerState> workers_;
  std::vector<double> shares_;                 ///< of follow()
  std::vector<Followed> seen_;                 ///< likewise
  std::vector<double> free_;                   ///< by device: when it has done what was submitted
  std::vector<std::array<double, 2>> leaves_;  ///< by device and class of chains: when the resident kernel leaves
  std::vector<WorkerSample> late_;
  double done_ = 0, done_on_devices_ = 0, last_at_ = 0, spent_us_ = 0;
  double beside_ = 0;  ///< how much what goes to devices makes the CPU dearer, of the most that it does
  Simulated result_;
};

}  // namespace

Simulated simulate(const std::vector<Phase>& phases, Balancer& balancer, double seconds, uint64_t seed,
                   const std::string& trace_as) {
  return Simulation(phases, balancer, seed, trace_as).run(seconds);
}

}  // namespace headrace::balance
