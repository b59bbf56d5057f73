// The default balancer: it measures what a packet costs a worker on each side, uses a device where that saves cycles
// and a worker needs them, and leaves the fine adjustment to the workers (follow_share). docs/balancing.md explains it.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "headrace/balancer.hh"
#include "offload/balance/DeviceTimes.hh"
#include "offload/balance/assignment.hh"
#include "offload/balance/formulas.hh"

namespace headrace {

namespace {

using balance::DeviceTimes;
using balance::ratio;

constexpr double kMs = 1e6;  // ns

/// Cycles per packet: a mean in which each sample counts 0.7 times as much as the one behind it. Two samples in a row
/// that lie far off begin it anew.
class Cost {
 public:
  void add(double cycles, double packets, double at_ns) {
    if (!(packets > 0) || !(cycles >= 0)) return;
    constexpr double kKeep = 0.7, kFar = 0.25;
    const double here = cycles / packets;
    far_ = known() && std::abs(here - mean()) > kFar * mean() ? far_ + 1 : 0;
    const double keep = far_ >= 2 ? 0 : kKeep;
    if (far_ >= 2) far_ = 0;
    cycles_ = cycles_ * keep + cycles;
    packets_ = packets_ * keep + packets;
    at_ns_ = at_ns;
  }
  bool known() const { return packets_ > 0; }
  double mean() const { return packets_ > 0 ? cycles_ / packets_ : 0; }
  double at_ns() const { return at_ns_; }
  /// The last sample was far off.
  bool suspect() const { return far_ > 0; }

 private:
  double cycles_ = 0, packets_ = 0, at_ns_ = 0;
  int far_ = 0;
};

/// A time to stay away, which doubles each time up to a limit, and shrinks after a good time.
class Pause {
 public:
  void begin(double now) {
    if (now < until_) return;
    if (now > until_ + 4 * length_) length_ = kLeast;
    until_ = now + length_;
    length_ = std::min(2 * length_, kMost);
  }
  bool over(double now) const { return now >= until_; }

 private:
  static constexpr double kLeast = 100 * kMs, kMost = 10e9;
  double until_ = 0, length_ = kLeast;
};

/// One chain of one worker on one device.
struct LaneState {
  Cost cost;
  double share = 0;
  double full = 0;     ///< part of the packets for the device that found no place
  double starved = 0;  ///< part of the looks that found no job
  double paid = 0;     ///< for a probe that did not come back yet
  double per_second = 0;
  double job = 0;  ///< packets of one, in the last sample with any
  int silent = 0;  ///< samples in a row in which nothing came back though packets went there
};

struct ChainState {
  Cost cpu;
  double part = 0;  ///< of the worker's packets
  bool on_device = false;
  std::vector<LaneState> lanes;
  double margin = 1;  ///< p99 seen by p99 foretold
  double foretold = 0;
  double most_share = 1;  ///< beyond which the device's queue would break the bound
  int over = 0;           ///< samples in a row with p99 over the bound
  bool late = false;      ///< p99 is over the bound, and was for some time
  bool broken = false;    ///< the CPU breaks the bound, too
  Pause bound_pause;
  double p99_ns = 0;
};

struct WorkerState {
  Cost outside;
  double per_second = 0;        ///< packets that it receives
  double load = 0;              ///< if all ran on the CPU; 1 is all that it can do
  double sampled_ns = 0;        ///< when its last sample came
  double saturated_ns = -1e18;  ///< when it was saturated last
  bool known = false, saturated = false, on_devices = false;
  size_t group = 0;  ///< in the plan
  uint64_t decision = 0;
  double tokens = 0;  ///< cycles that it may spend on probes
  double stretch_ns = 0;
  std::vector<ChainState> chains;
};

/// One chain on one device, over all workers.
struct PairState {
  Cost cost;
  double packets_per_job = 0;
  double job_ns = 0;
  double largest = 0;   ///< packets per job, of the largest that was measured
  bool in_use = false;  ///< some worker sends packets there
  double probed_ns = -1e18;
  double interval_ns = 50 * kMs;  ///< between probes
  double cpu_when_probed = 0;
};

struct DeviceState {
  bool well = true;
  Pause pause;
  DeviceTimes times;
  double capacity = 0;      ///< packets a second, as seen when it was busy; 0: never yet
  double bound_ns = -1e18;  ///< when it was last seen busy
};

class Model : public Balancer {
 public:
  void start() override {
    const size_t chains = setup().chains.size(), devices = setup().devices.size();
    ChainState chain;
    chain.lanes.resize(devices);
    WorkerState worker;
    worker.chains.assign(chains, chain);
    worker.tokens = bank();
    workers_.assign(static_cast<size_t>(std::max(setup().workers, 0)), worker);
    pairs_.assign(chains, std::vector<PairState>(devices));
    cpu_.assign(chains, Cost());
    changed_ns_.assign(chains, -1e18);
    DeviceState device;
    device.times = DeviceTimes(chains);
    devices_.assign(devices, device);
    plan_ = {};
    shared_.assign(devices, false);
  }

  BalanceDecision step(const BalanceSample& sample) override {
    const double now = static_cast<double>(sample.at_ns);
    const double passed = started_ ? std::clamp(now - now_, 0.0, 1e9) : 10 * kMs;
    now_ = started_ ? std::max(now, now_) : now;
    started_ = true;
    for (WorkerState& w : workers_) w.tokens = std::min(w.tokens + kProbePart * hz() * passed * 1e-9, bank());
    for (const WorkerSample& w : sample.workers) take(w);
    for (size_t d = 0; d < devices_.size(); ++d) look_at_device(d);

    BalanceDecision decision = everything_on_cpu();
    make_plan();
    for (size_t w = 0; w < workers_.size(); ++w)
      if (workers_[w].known) decide(w, decision.workers[w]);
    if (!devices_.empty()) probe(decision, passed);
    // For people, who do not see it change: the dearest part of a step.
    if (step_ == 0) optimum_ = optimum();
    step_ = (step_ + 1) % 8;
    decision.optimum_mpps = optimum_ * 1e-6;
    decision.why = why();
    return decision;
  }

  std::string learnt() const override {
    nlohmann::ordered_json chains = nlohmann::ordered_json::array();
    for (size_t k = 0; k < pairs_.size(); ++k) {
      nlohmann::ordered_json devices = nlohmann::ordered_json::array();
      for (size_t d = 0; d < devices_.size(); ++d)
        if (pairs_[k][d].cost.known())
          devices.push_back({{"name", setup().devices[d].name},
                             {"cycles", pairs_[k][d].cost.mean()},
                             {"job", pairs_[k][d].packets_per_job},
                             {"job_ns", pairs_[k][d].job_ns}});
      chains.push_back({{"name", setup().chains[k].name}, {"cpu", cpu_[k].mean()}, {"devices", devices}});
    }
    return chains.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  void learn(std::string_view text) override {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array()) return;
    // A value that is not there or is none teaches nothing.
    const auto number = [](const nlohmann::json& j, const char* name) {
      const auto found = j.find(name);
      const double v = found != j.end() && found->is_number() ? found->get<double>() : 0;
      return v > 0 && v < 1e12 ? v : 0;
    };
    for (size_t i = 0; i < json.size(); ++i)
      for (const size_t k : places_of(json[i], i, setup().chains)) {
        if (const double c = number(json[i], "cpu"); c > 0) cpu_[k].add(c, 1, 0);
        const auto devices = json[i].find("devices");
        if (devices == json[i].end() || !devices->is_array()) continue;
        for (size_t j = 0; j < devices->size(); ++j)
          for (const size_t d : places_of((*devices)[j], j, setup().devices)) {
            PairState& pair = pairs_[k][d];
            if (const double c = number((*devices)[j], "cycles"); c > 0) pair.cost.add(c, 1, 0);
            pair.packets_per_job = pair.largest = number((*devices)[j], "job");
            pair.job_ns = number((*devices)[j], "job_ns");
          }
      }
  }

 private:
  /// Where in `list` the thing is that `json` names: at the same place, or wherever one has its name.
  template <typename T>
  static std::vector<size_t> places_of(const nlohmann::json& json, size_t place, const std::vector<T>& list) {
    std::vector<size_t> found;
    const auto name = json.is_object() ? json.find("name") : json.end();
    if (!json.is_object() || name == json.end() || !name->is_string()) return found;
    const std::string text = name->get<std::string>();
    if (place < list.size() && list[place].name == text) return {place};
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name == text) found.push_back(i);
    return found;
  }

  static constexpr double kProbePart = 0.003;  // of the worker's cycles
  static constexpr double kUnknownCost = 50;   // times that of the CPU, for a packet; but with its job no more than
  static constexpr double kUnknownJob = 3e4;   // cycles
  static constexpr double kUse = 0.92, kLeave = 0.75;
  static constexpr double kCurious = 0.5;              // a load from which on it is good to know what devices cost
  static constexpr double kBusy = 0.95;                // the part of a device's time that chains with a bound use
  static constexpr double kGain = 0.97, kLoss = 1.03;  // d by c, to begin and to end
  static constexpr int kLeastJob = 16;
  static constexpr size_t kManyPairs = 128;  // of groups, chains and devices
  static constexpr double kFarther = 1.02;   // a device that is not nearest, or new, must be better by this
  // The part of a device's time to use: where other devices take the rest, where another chain does, where the CPU does.
  static constexpr double kRoom = 0.97, kShared = 0.98, kFilled = 1.02;

  double hz() const { return std::clamp(setup().cycles_per_second, 1e3, 1e12); }
  double bank() const { return kProbePart * hz() * 0.5; }

  // --- Samples ------------------------------------------------------------------------------------------------------

  void take(const WorkerSample& s) {
    if (s.worker < 0 || static_cast<size_t>(s.worker) >= workers_.size() || s.ns <= 0 || s.cycles == 0) return;
    WorkerState& w = workers_[static_cast<size_t>(s.worker)];
    // Costs are worth knowing however old they are; the rest is about the decision of its time.
    const bool old = s.decision < w.decision;
    w.decision = std::max(w.decision, s.decision);
    const double seconds = static_cast<double>(s.ns) * 1e-9;
    const double chains_cycles = take_chains(s, w, old, seconds);
    double arrived = 0;
    const size_t chains = std::min(s.chains.size(), w.chains.size());
    for (size_t k = 0; k < chains; ++k) arrived += static_cast<double>(s.chains[k].arrived);
    const double busy = std::min(static_cast<double>(s.busy), static_cast<double>(s.cycles));
    if (arrived > 0) w.outside.add(std::max(busy - chains_cycles, 0.0), arrived, now_);
    if (old) return;
    for (size_t k = 0; k < chains && arrived > 0; ++k) {
      const double part = static_cast<double>(s.chains[k].arrived) / arrived;
      w.chains[k].part = w.known ? 0.5 * (w.chains[k].part + part) : part;
    }
    const double per_second = arrived / seconds;
    w.per_second = w.known ? 0.5 * (w.per_second + per_second) : per_second;
    w.stretch_ns = 0.8 * w.stretch_ns + 0.2 * std::clamp(static_cast<double>(s.stretch_ns), 0.0, 10 * kMs);
    w.saturated = ratio(s.full_bursts, s.bursts) > 0.5 && busy > 0.9 * static_cast<double>(s.cycles);
    if (w.saturated) w.saturated_ns = now_;
    w.load = w.per_second * cpu_cost(w) / hz();
    if (w.saturated) w.load = std::max(w.load, 1.0);
    w.known |= arrived > 0;
    w.sampled_ns = now_;
  }

  /// What the packets of the sample cost in all chains.
  double take_chains(const WorkerSample& s, WorkerState& w, bool old, double seconds) {
    double all = 0;
    for (size_t k = 0; k < std::min(s.chains.size(), w.chains.size()); ++k) {
      const ChainSample& c = s.chains[k];
      ChainState& chain = w.chains[k];
      if (c.cpu.timed != 0) {
        const double cycles = static_cast<double>(c.cpu.cycles), timed = static_cast<double>(c.cpu.timed);
        chain.cpu.add(cycles, timed, now_);
        if (chain.cpu.suspect()) changed_ns_[k] = now_;
        cpu_[k].add(cycles, timed, now_);
        all += cycles / timed * static_cast<double>(c.cpu.packets);
      }
      const double p99 = static_cast<double>(c.delay_p99_ns);
      if (!old && c.delays >= 100) see_delay(k, chain, p99);
      double wanted = 0;
      for (size_t d = 0; d < std::min(c.devices.size(), chain.lanes.size()); ++d) {
        const DeviceSample& v = c.devices[d];
        LaneState& lane = chain.lanes[d];
        PairState& pair = pairs_[k][d];
        const double packets = static_cast<double>(v.packets);
        if (v.timed != 0) {
          const double cycles = static_cast<double>(v.cycles), timed = static_cast<double>(v.timed);
          lane.cost.add(cycles, timed, now_);
          if (lane.cost.suspect() && lane.share > 0.01) changed_ns_[k] = now_;
          pair.cost.add(cycles, timed, now_);
          // What was paid beyond the true cost comes back.
          const double extra = std::max(cycles - timed * cpu_cost_of(w, k), 0.0);
          w.tokens = std::min(w.tokens + std::max(lane.paid - extra, 0.0), bank());
          lane.paid = 0;
          all += cycles / timed * packets;
        }
        if (v.jobs != 0) {
          const double jobs = static_cast<double>(v.jobs);
          lane.job = packets / jobs;
          const double n = lane.job, t = static_cast<double>(v.job_ns) / jobs;
          pair.packets_per_job = pair.job_ns > 0 ? 0.7 * pair.packets_per_job + 0.3 * n : n;
          pair.job_ns = pair.job_ns > 0 ? 0.7 * pair.job_ns + 0.3 * t : t;
          pair.largest = std::max(pair.largest, n);
        }
        devices_[d].well &= v.well;
        if (!v.well) devices_[d].pause.begin(now_);
        if (old) continue;
        const double share = std::isfinite(v.share) ? std::clamp(v.share, 0.0, 1.0) : 0;
        lane.share = std::min(share, 1 - std::min(wanted, 1.0));
        wanted += lane.share;
        const double full = static_cast<double>(v.full);
        lane.full = packets + full > 0 ? full / (packets + full) : 0;
        lane.starved = ratio(v.starved, v.polls);
        lane.per_second = packets / seconds;
        lane.silent = packets == 0 && lane.share > 0.05 && c.arrived > 1000 ? lane.silent + 1 : 0;
        if (lane.silent >= 3) devices_[d].pause.begin(now_);
        // Places that were all taken for a moment, while the device had nothing to do at others, are no sign.
        // With a bound there are few places.
        const double few = setup().chains[k].p99_us > 0 ? 0.01 : 0.001;
        if (lane.full > few && lane.share > 0.01 && lane.starved < 0.3) devices_[d].bound_ns = now_;
      }
    }
    return all;
  }

  void see_delay(size_t k, ChainState& chain, double p99) {
    const double bound = setup().chains[k].p99_us * 1e3;
    if (bound <= 0) return;
    chain.p99_ns = p99;
    chain.over = p99 > bound ? chain.over + 1 : 0;
    chain.late = p99 > bound && (chain.late || chain.over >= 3);
    double share = 0;
    for (const LaneState& lane : chain.lanes) share += lane.share;
    if (chain.foretold <= 0 || share < 0.05) return;
    // Too long at once, too short slowly.
    const double seen = std::clamp(p99 / chain.foretold, 0.3, 8.0);
    chain.margin += (seen > chain.margin ? 0.5 : 0.05) * (seen - chain.margin);
  }

  /// Learns from what came back from the device how much of its time packets take.
  void look_at_device(size_t d) {
    DeviceState& device = devices_[d];
    // Of a worker whose sample is late, the last rates are the best guess.
    std::vector<double> rates(pairs_.size(), 0.0);
    double all = 0, idle = 1, starved = 0, most_full = 0;
    for (const WorkerState& w : workers_) {
      if (now_ - w.sampled_ns > 50 * kMs) continue;
      for (size_t k = 0; k < pairs_.size(); ++k) {
        const LaneState& lane = w.chains[k].lanes[d];
        rates[k] += lane.per_second;
        all += lane.per_second;
        if (lane.per_second > 0) idle *= lane.starved;  // as if they took turns by chance
        starved += lane.per_second * lane.starved;
        most_full = std::max(most_full, lane.share > 0.01 ? lane.full : 0);
      }
    }
    const bool full = device.bound_ns >= now_ && all > 0;
    if (full) device.capacity = device.capacity > 0 ? 0.8 * device.capacity + 0.2 * all : all;
    if (full) {
      device.times.busy(rates, 1, true, most_full > 0.1);
    } else if (device.times.known() && all > 0) {
      // Not more than the time in which it had something to do.
      const double most = std::clamp(1.0 - idle, 0.1, 1.0), used = device.times.used(rates);
      if (used > most) device.times.busy(rates, most, false);
      // What is never tried is never learnt.
      if (used > 0.92 && (used <= most || pairs_.size() == 1)) device.times.calm(starved > 0.4 * all);
    }
    if (now_ - device.bound_ns > 200 * kMs) device.capacity *= 1.001;
    for (size_t k = 0; k < pairs_.size(); ++k) {
      const PairState& pair = pairs_[k][d];
      if (rates[k] <= 0) device.times.hope(k, 0.01);
      // A job took its packets' time at least.
      if (pair.job_ns > 0 && pair.packets_per_job > 0)
        device.times.at_most(k, 1.1e-9 * pair.job_ns / pair.packets_per_job);
    }
    bool well = true;
    std::swap(well, device.well);
    if (!well) device.bound_ns = -1e18;
  }

  // --- Costs --------------------------------------------------------------------------------------------------------

  double cpu_cost_of(const WorkerState& w, size_t k) const {
    return w.chains[k].cpu.known() ? w.chains[k].cpu.mean() : cpu_[k].mean();
  }
  /// o + c over the worker's mixture of chains.
  double cpu_cost(const WorkerState& w) const {
    double cost = w.outside.mean();
    for (size_t k = 0; k < w.chains.size(); ++k) cost += w.chains[k].part * cpu_cost_of(w, k);
    return cost;
  }
  /// What the device costs this worker, or others if it does not know. 0: nobody knows.
  double device_cost_of(const WorkerState& w, size_t k, size_t d) const {
    const Cost &mine = w.chains[k].lanes[d].cost, &all = pairs_[k][d].cost;
    // Its own small jobs say less than large ones of others.
    const bool alike = w.chains[k].lanes[d].job >= 0.5 * std::min(pairs_[k][d].largest, 256.0);
    return mine.known() && alike && mine.at_ns() > all.at_ns() - 100 * kMs ? mine.mean() : all.mean();
  }
  /// Whether the measured cost is that of jobs as large as they will be.
  bool is_conclusive(size_t k, size_t d) const {
    return pairs_[k][d].largest >= 0.5 * std::min(setup().chains[k].most_job, 1024);
  }

  // --- Decisions ----------------------------------------------------------------------------------------------------

  /// A worker that takes all that comes needs no more.
  bool is_hungry(const WorkerState& w) const { return now_ - w.saturated_ns < 30 * kMs; }

  /// What each worker and chain should have of each device, by all that is known.
  void make_plan() {
    const size_t chains = pairs_.size();
    for (auto& by_device : pairs_)
      for (PairState& p : by_device) p.in_use = false;
    std::vector<balance::WorkerGroup> groups;
    std::vector<std::pair<size_t, bool>> kinds;  // the nearest device, and whether it is hungry
    double hungry = 0;
    for (size_t i = 0; i < workers_.size(); ++i) {
      WorkerState& w = workers_[i];
      if (w.load > kUse) w.on_devices = true;
      if (w.load < kLeave) w.on_devices = false;
      for (size_t k = 0; k < chains; ++k)
        for (size_t d = 0; d < devices_.size(); ++d) pairs_[k][d].in_use |= w.chains[k].lanes[d].share > 0.02;
      if (!w.known || !w.on_devices) continue;
      const std::pair kind(balance::first_device(setup(), i), is_hungry(w));
      w.group = static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
      if (w.group == groups.size()) {
        kinds.push_back(kind);
        balance::WorkerGroup& group = groups.emplace_back();
        group.weight = 0;
        group.chains.resize(chains);
        for (auto& c : group.chains) c.device.assign(devices_.size(), 0.0);
      }
      add(w, groups[w.group], kind.second ? 1 : w.per_second);
      hungry += kind.second;
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      finish(groups[g], kinds[g].first);
      if (groups.size() * chains * devices_.size() > kManyPairs) keep_few(groups[g], kinds[g].first);
      if (kinds[g].second) {
        groups[g].weight /= hungry;
      } else {
        // Some of its cycles are left, or it would be hungry.
        groups[g].arrivals = std::max(1.02 * groups[g].weight, 1.0);
        if (hungry > 0) groups[g].cycles *= kUse;
      }
    }
    solve(groups);
  }

  void add(const WorkerState& w, balance::WorkerGroup& group, double weight) const {
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

  /// Makes means of sums, and leaves out devices that are no help.
  void finish(balance::WorkerGroup& group, size_t nearest) const {
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
        if (!setup().chains[k].balanced || !devices_[d].pause.over(now_) || !helps) {
          cost = 1e18;
          continue;
        }
        // Devices of one kind cost nearly the same: the nearest comes first, and who has packets keeps them.
        cost *= (d == nearest ? 1 : kFarther) * (in_use ? 1 : kFarther);
        cost = std::min(cost, 0.999 * chain.cpu);
      }
    }
  }

  /// Of many devices the best two, so that a step stays quick; of those that are alike the next ones to the nearest.
  void keep_few(balance::WorkerGroup& group, size_t nearest) const {
    std::vector<size_t> order(devices_.size());
    for (auto& chain : group.chains) {
      for (size_t i = 0; i < order.size(); ++i) order[i] = (nearest + i) % order.size();
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::floor(chain.device[a] / (0.1 * chain.cpu + 1)) <
               std::floor(chain.device[b] / (0.1 * chain.cpu + 1));
      });
      for (size_t i = 2; i < order.size(); ++i) chain.device[order[i]] = 1e18;
    }
  }

  void solve(const std::vector<balance::WorkerGroup>& groups) {
    const size_t chains = pairs_.size();
    std::vector<std::vector<double>> device_s(chains, std::vector<double>(devices_.size(), 0.0));
    for (size_t k = 0; k < chains; ++k)
      for (size_t d = 0; d < devices_.size(); ++d) device_s[k][d] = devices_[d].times.seconds(k);
    std::vector<double> time(devices_.size(), kRoom);
    plan_ = balance::assign(groups, device_s, time);
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
    if (!spills) {
      shared_.assign(devices_.size(), false);
      return;
    }
    // Devices limit it: they are used up.
    shared_.resize(devices_.size(), false);
    for (int round = 0; round < 2; ++round) {
      for (size_t d = 0; d < devices_.size(); ++d) time[d] = shared_[d] ? kShared : kFilled;
      plan_ = balance::assign(groups, device_s, time);
      bool other = false;
      for (size_t d = 0; d < devices_.size(); ++d) {
        int users = 0;
        for (size_t k = 0; k < chains; ++k) {
          double share = 0;
          for (size_t g = 0; g < groups.size(); ++g) share += plan_.shares[g][k][d];
          users += share > 0.001;
        }
        other |= shared_[d] != (users > 1);
        shared_[d] = users > 1;
      }
      if (!other) break;
    }
  }

  void decide(size_t number, std::vector<ChainDecision>& decisions) {
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
  }

  /// The devices that the plan has for it, the one that costs least cycles first.
  std::vector<size_t> planned(const WorkerState& w, size_t k) const {
    std::vector<size_t> found;
    for (size_t d = 0; d < devices_.size(); ++d)
      if (plan_.shares[w.group][k][d] > 1e-3) found.push_back(d);
    std::stable_sort(found.begin(), found.end(),
                     [&](size_t a, size_t b) { return device_cost_of(w, k, a) < device_cost_of(w, k, b); });
    return found;
  }

  void set_shares(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision) {
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
    if (decision.follow && near && seen <= 1 && sum < 0.999)
      for (const size_t d : devices) decision.shares[d] = chain.lanes[d].share;
    if (setup().chains[k].p99_us > 0 && chain.most_share < 1) {
      decision.follow = false;
      double left = chain.most_share;
      for (const size_t d : devices) {
        decision.shares[d] = std::min(decision.shares[d], left);
        left -= decision.shares[d];
      }
    }
    for (const size_t d : devices) chain.lanes[d].share = decision.shares[d];
  }

  /// The longest stretch on the CPU that leaves the device something to do.
  int slice(const WorkerState& w, size_t k, const ChainDecision& decision) const {
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

  /// The packets a second that a device does for one of the workers that use it; 0: not known.
  double capacity_for(const WorkerState& w, size_t d) const {
    int users = 0;
    for (const WorkerState& other : workers_) {
      double share = 0;
      for (const ChainState& chain : other.chains) share += chain.lanes[d].share;
      users += share > 0 || &other == &w;
    }
    return devices_[d].capacity / users;
  }

  /// The largest job whose packets stay below the bound. False if none does.
  bool fit_bound(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision) {
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
    balance::DevicePath path;
    path.arrivals = w.per_second * state.part;
    // A device that is busy all the time makes packets wait for all places. It is left some time, if its limit is known.
    state.most_share = 1;
    if (const double room = kBusy * capacity_for(w, devices[0]); room > 0 && path.arrivals > room) {
      state.most_share = room / path.arrivals;
      path.arrivals = room;
    }
    path.stretch_ns = w.stretch_ns;
    path.max_wait_ns = std::min<double>(chain.most_wait_us * 1e3, bound / 4);
    decision.max_wait_us = static_cast<int>(path.max_wait_ns * 1e-3);
    for (path.job = chain.most_job;; path.job = std::max(path.job / 2, 1)) {
      const double n = std::max(pair.packets_per_job, 1.0);
      path.job_ns = pair.job_ns * (0.4 + 0.6 * std::min(path.job / n, 4.0));
      // As many as the packets that come while one is under way, and one to fill.
      const double under_way = path.arrivals * 1e-9 * (path.job_ns + path.stretch_ns) / path.job;
      path.places = static_cast<int>(std::min<double>(chain.most_places, 2 + under_way));
      state.foretold = balance::foretold_p99_ns(path);
      if (state.foretold * state.margin < (state.on_device ? 1.0 : 0.9) * bound) break;
      if (path.job <= kLeastJob) break;
    }
    // One more where there is room for it: places that are all taken look like a device that is.
    balance::DevicePath more = path;
    more.places = std::min(path.places + 1, chain.most_places);
    if (const double foretold = balance::foretold_p99_ns(more); foretold * state.margin < 0.6 * bound) {
      path = more;
      state.foretold = foretold;
    }
    decision.job = path.job;
    decision.places = path.places;
    return state.foretold * state.margin < bound || state.broken;
  }

  // --- Probes -------------------------------------------------------------------------------------------------------

  void probe(BalanceDecision& decision, double passed) {
    for (size_t k = 0; k < pairs_.size(); ++k) {
      if (!setup().chains[k].balanced) continue;
      for (size_t d = 0; d < devices_.size(); ++d) probe_device(k, d, decision, passed);
      for (size_t w = 0; w < workers_.size(); ++w) probe_cpu(w, k, decision, passed);
    }
  }

  /// With a bound probes are fewer than the packets that may be late.
  int harmless(const WorkerState& w, size_t k, double passed, double packets) const {
    const BalanceSetup::Chain& chain = setup().chains[k];
    packets = std::min<double>(packets, chain.most_job);
    if (chain.p99_us > 0) packets = std::min(packets, 0.003 * w.per_second * w.chains[k].part * passed * 1e-9);
    return static_cast<int>(std::max(packets, 0.0));
  }

  void probe_device(size_t k, size_t d, BalanceDecision& decision, double passed) {
    PairState& pair = pairs_[k][d];
    if (!devices_[d].pause.over(now_)) return;
    // The worker that profits most, and can pay.
    size_t chosen = workers_.size();
    for (size_t w = 0; w < workers_.size(); ++w) {
      const WorkerState& state = workers_[w];
      if (!state.known || state.load < kCurious || !(state.chains[k].part > 0) || decision.workers[w][k].probe != 0)
        continue;
      if (state.chains[k].lanes[d].share > 0.01) return;  // it is measured as it is
      if (chosen == workers_.size() || state.tokens > workers_[chosen].tokens) chosen = w;
    }
    if (chosen == workers_.size()) return;
    WorkerState& w = workers_[chosen];
    const double c = cpu_cost_of(w, k);
    if (c <= 0) return;
    const bool known = pair.cost.known();
    // Where there is a choice, it must be known how good each device is.
    const bool choice = devices_.size() > 1 || pairs_.size() > 1;
    const bool settled = known && (is_conclusive(k, d) || (!choice && pair.cost.mean() < kGain * c));
    // What changed on the CPU may have changed on the device.
    if (std::abs(c - pair.cpu_when_probed) > 0.1 * c) pair.interval_ns = 30 * kMs;
    const double most = w.load > kUse ? 50 * kMs : w.load > 0.85 ? 200 * kMs : 2000 * kMs;
    const double wait = pair.probed_ns < changed_ns_[k] ? 0 : settled ? std::min(pair.interval_ns, most) : 15 * kMs;
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
    // Where the costs are near each other, only a whole job tells which is less.
    const bool close = known && pair.cost.mean() < 2 * c;
    const double enough = settled && !close ? std::min(setup().chains[k].most_job, 128) : setup().chains[k].most_job;
    if (n < (settled ? enough : 1) && w.tokens < 0.99 * bank()) return;
    const int packets = harmless(w, k, passed, std::min(std::max(n, 1.0), enough));
    if (packets <= 0) return;
    decision.workers[chosen][k].probe = packets;
    decision.workers[chosen][k].probe_device = static_cast<int>(d);
    w.tokens -= packets * each;
    w.chains[k].lanes[d].paid = packets * each;
    pair.probed_ns = now_;
    pair.cpu_when_probed = c;
    pair.interval_ns = std::min(pair.interval_ns * 2, most);
  }

  void probe_cpu(size_t number, size_t k, BalanceDecision& decision, double passed) {
    WorkerState& w = workers_[number];
    ChainState& chain = w.chains[k];
    if (!chain.on_device || decision.workers[number][k].probe != 0 ||
        now_ - chain.cpu.at_ns() < (changed_ns_[k] >= now_ ? 5 * kMs : 40 * kMs))
      return;
    const double c = std::max(cpu_cost_of(w, k), 1.0);
    const int packets = harmless(w, k, passed, std::min(32.0, w.tokens / c));
    if (packets <= 0) return;
    decision.workers[number][k].probe = packets;
    w.tokens -= packets * c;
  }

  // --- For people ---------------------------------------------------------------------------------------------------

  /// R* of all workers, packets a second, if more arrived than they can do.
  double optimum() const {
    balance::Shop shop;
    shop.devices = devices_.size();
    for (const WorkerState& w : workers_) {
      if (!w.known) continue;
      balance::Shop::Worker& worker = shop.workers.emplace_back();
      worker.cycles = hz();
      worker.outside = std::max(w.outside.mean(), 1.0);
      worker.arrivals = 1e12;
      for (size_t k = 0; k < w.chains.size(); ++k) {
        balance::Shop::Use& use = worker.chains.emplace_back();
        use.packets = w.chains[k].part;
        use.cpu = cpu_cost_of(w, k);
        for (size_t d = 0; d < devices_.size(); ++d) {
          const double cost = device_cost_of(w, k, d);
          use.device.push_back(cost > 0 && devices_[d].pause.over(now_) ? cost : use.cpu);
          use.device_ns.push_back(device_ns(k, d));
        }
      }
    }
    double sum = 0;
    for (const double rate : balance::greedy_rates(shop)) sum += rate;
    return std::isfinite(sum) ? std::min(sum, 1e15) : 0;
  }

  /// A packet's part of the time of a device that is known to be its limit.
  double device_ns(size_t k, size_t d) const {
    if (now_ - devices_[d].bound_ns > 1e9) return 0;
    return 1e9 * devices_[d].times.seconds(k);
  }

  std::string why() const {
    const WorkerState* hottest = nullptr;
    size_t number = 0;
    for (size_t w = 0; w < workers_.size(); ++w)
      if (workers_[w].known && (!hottest || workers_[w].load > hottest->load)) {
        hottest = &workers_[w];
        number = w;
      }
    if (!hottest) return "no traffic yet";
    std::string text;
    // The chain with most packets speaks for all.
    size_t k = 0;
    for (size_t i = 1; i < hottest->chains.size(); ++i)
      if (hottest->chains[i].part > hottest->chains[k].part) k = i;
    if (k >= hottest->chains.size()) return "no chains";
    const ChainState& chain = hottest->chains[k];
    const double c = cpu_cost_of(*hottest, k);
    double share = 0;
    bool full = false, any_pause = false;
    double d = 0;
    for (size_t i = 0; i < devices_.size(); ++i) {
      share += chain.lanes[i].share;
      full |= chain.lanes[i].share > 0 && now_ - devices_[i].bound_ns < 100 * kMs;
      any_pause |= !devices_[i].pause.over(now_);
      const double cost = device_cost_of(*hottest, k, i);
      if (cost > 0 && (d == 0 || cost < d)) d = cost;
    }
    if (devices_.empty()) {
      text = fmt::format("no device (load {:.2f})", hottest->load);
    } else if (chain.on_device) {
      text = full && share < 0.985 ? fmt::format("device binds at {:.2f}", share)
             : hottest->saturated
                 ? fmt::format("worker binds (c {:.0f}, d {:.0f})", c, d)
                 : fmt::format("device saves cycles (d {:.0f} < c {:.0f}, load {:.2f})", d, c, hottest->load);
    } else if (!hottest->on_devices) {
      text = fmt::format("CPU suffices (load {:.2f})", hottest->load);
    } else if (any_pause) {
      text = "device is not well or too slow: CPU";
    } else if (d <= 0) {
      text = "learning what the device costs";
    } else if (d >= c * kGain) {
      text = fmt::format("device costs more cycles (d {:.0f} >= c {:.0f})", d, c);
    } else if (setup().chains[k].p99_us <= 0) {
      text = fmt::format("device is left to other chains (d {:.0f} < c {:.0f})", d, c);
    } else {
      text = fmt::format("device would break the bound (p99 {:.0f} us foretold)", chain.foretold * chain.margin * 1e-3);
    }
    for (size_t i = 0; i < setup().chains.size(); ++i) {
      const double bound = setup().chains[i].p99_us;
      if (hottest->chains[i].late) {
        text += fmt::format("; p99 bound {} us out of reach (seen {:.0f})", bound, hottest->chains[i].p99_ns * 1e-3);
        break;
      }
    }
    if (workers_.size() > 1 && hottest->load > kLeave) text += fmt::format(" on worker {}", number);
    return text;
  }

  std::vector<WorkerState> workers_;
  std::vector<std::vector<PairState>> pairs_;  // by chain and device
  std::vector<Cost> cpu_;                      // by chain
  std::vector<double> changed_ns_;             // by chain: when a cost was last far from what was known
  std::vector<DeviceState> devices_;
  balance::Assignment plan_;  // by group of workers
  std::vector<bool> shared_;  // by device: chains compete for it
  double now_ = 0, optimum_ = 0;
  int step_ = 0;
  bool started_ = false;
};
HEADRACE_BALANCER(Model, "the default: measures what each side costs, and computes the best")

}  // namespace

}  // namespace headrace
