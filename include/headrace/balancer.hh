#pragma once
/// \file
/// What decides, while packets flow, where chains run: the interface of balancers.
///
/// A balancer is a state and a function. Every few milliseconds `step` gets what the workers measured, and says for
/// each worker and chain which part of the packets goes to which device, and in what jobs:
///
///     struct Halves : Balancer {
///       BalanceDecision step(const BalanceSample&) override {
///         BalanceDecision d = everything_on_cpu();
///         for (auto& worker : d.workers)
///           for (ChainDecision& chain : worker) chain.shares.at(0) = 0.5;
///         return d;
///       }
///     };
///     HEADRACE_BALANCER(Halves, "half of the packets to the first device")
///
/// `step` must depend on nothing but its arguments and the object: no clock, no random numbers, no files. So a trace of
/// samples replays to the same decisions, and a simulated machine can stand in for a real one (`headrace balance`).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// What the balancer must know before the first step. Positions in these lists are the numbers of workers, chains and
/// devices everywhere below.
struct BalanceSetup {
  struct Chain {
    std::string name;      ///< its first elements, for people
    bool balanced = true;  ///< false: a user chose the side; decisions about it are ignored
    bool payload = false;  ///< it reads or rewrites payloads, which the device reads over the link
    int bytes_there = 0;   ///< of a row that travels to the device
    int bytes_back = 0;    ///< of a row that travels back
    int most_job = 1024;   ///< the most packets of a job; decisions beyond it are cut off
    int job_bytes = 0;    ///< a job of 64 packets or more is full with so many bytes of packets; 0: bytes do not matter
    int most_places = 8;  ///< the most jobs that a worker may have on a device; likewise
    int most_wait_us = 20;  ///< the most time that a packet may wait for others; likewise
    double p99_us = 0;      ///< the user's bound on the time in the router; 0: none
  };
  struct Device {
    std::string name;
    int node = -1;         ///< NUMA node, -1: unknown
    bool resident = true;  ///< it has a kernel that stays and polls for jobs
    bool stream = false;   ///< it takes jobs by a copy and a launch each
    /// The resident kernel leaves when it has had no job for so long, in microseconds, and the next job has to start it
    /// again. There is one for all chains that read or rewrite payloads, and one for all others. 0: it never leaves.
    int resident_idle_us = 0;
  };
  int workers = 1;
  double cycles_per_second = 1e9;  ///< of the time stamp counter, in which samples count
  std::vector<Chain> chains;
  std::vector<Device> devices;
  std::vector<int> first_device;  ///< by worker: the device that is nearest to it. Empty if there are none
};

/// Sums over batches of n packets that took t cycles each. A batch costs something however small it is: of a worker that
/// has time left batches are small, and a packet is dearer than it would be if more came. How much dearer follows from
/// batches of different sizes.
struct BatchSums {
  uint64_t batches = 0;
  uint64_t packets = 0;   ///< sum of n
  uint64_t squares = 0;   ///< sum of n n
  uint64_t cycles = 0;    ///< sum of t
  uint64_t products = 0;  ///< sum of n t

  void add(uint64_t n, uint64_t t) {
    batches += 1;
    packets += n;
    squares += n * n;
    cycles += t;
    products += n * t;
  }
};

/// One side's work for one chain on one worker.
struct SideSample {
  uint64_t packets = 0;  ///< that this side finished
  uint64_t timed = 0;    ///< of these, those whose cost was measured
  /// What the timed packets cost the worker, from their arrival at the chain to the end of their way: on a device
  /// packing, submitting, polling, releasing, and what packets meet behind the chain. Work for other chains that they
  /// meet on their way is charged to those.
  uint64_t cycles = 0;
};

struct DeviceSample : SideSample {
  uint64_t jobs = 0;           ///< released
  uint64_t job_ns = 0;         ///< the sum of their times from submission to release
  uint64_t stream_jobs = 0;    ///< of the jobs, those that came by a copy and a launch each
  uint64_t stream_job_ns = 0;  ///< of the times, those of these jobs
  uint64_t full = 0;           ///< packets for this device that found no place
  uint64_t polls = 0;          ///< times that the worker looked for finished jobs
  uint64_t starved = 0;        ///< of these, times that the device had no job of this worker and chain
  double share = 0;            ///< the part of the packets that goes there at the end of the sample
  bool well = true;            ///< false: it takes no jobs, as it hangs, has failed, or all its places are late
  bool lane = true;            ///< false: there is none to it from this worker, but perhaps from others
};

struct ChainSample {
  uint64_t arrived = 0;  ///< packets
  uint64_t bytes = 0;    ///< of these packets
  SideSample cpu;
  BatchSums cpu_batches;  ///< of the timed packets of `cpu`
  std::vector<DeviceSample> devices;
  /// How long packets were in the router: from the last time that their source looked and did not see them until they
  /// left the chain. Of `delays` packets; quantiles in nanoseconds.
  uint64_t delays = 0, delay_p50_ns = 0, delay_p99_ns = 0;
  /// The part of the packets that is in one bucket, that with most of them: a flow has one bucket, and a bucket one side.
  /// 0: not known, because all go to one side.
  double heaviest = 0;
};

/// What one worker did since its last sample. A decision was in force all the time: a sample ends where a decision
/// does.
struct WorkerSample {
  int worker = 0;
  uint64_t decision = 0;     ///< its number
  int64_t ns = 0;            ///< length of the sample; 0: nothing is known
  uint64_t cycles = 0;       ///< the same, in cycles
  uint64_t busy = 0;         ///< cycles of these with packets
  uint64_t waiting = 0;      ///< cycles without, while packets were on devices
  uint64_t bursts = 0;       ///< times that a source received packets
  uint64_t full_bursts = 0;  ///< of these, times that it received as many as it may
  int64_t stretch_ns = 0;    ///< the longest time between two looks for finished jobs
  BatchSums outside;         ///< of sources' runs: packets that arrived at chains, cycles outside of chains
  std::vector<ChainSample> chains;
};

/// All that is known at one time. A worker may be missing (it sleeps, or it was late); samples of decisions before the
/// last one may come.
struct BalanceSample {
  int64_t at_ns = 0;  ///< monotonic
  std::vector<WorkerSample> workers;
};

/// For one chain on one worker.
struct ChainDecision {
  /// By device: the part of the packets that it gets, by flows. The CPU gets the rest.
  std::vector<double> shares;
  /// The worker may move the shares by itself until the next decision: see follow_share(). What a share grows by is
  /// taken from the CPU's, never from another device's.
  bool follow = false;
  int job = 1024;        ///< packets of a job
  int max_wait_us = 20;  ///< a job is submitted when its first packet has waited this long
  int places = 8;        ///< jobs on one device
  int slice = 256;       ///< after so many packets on the CPU the worker looks for finished jobs
  /// Jobs go to devices by a copy and a launch each, where the device takes such; otherwise to its resident kernel.
  bool stream = false;
  /// The CPU, or a device, gets this many packets now, whatever the shares are: to learn what they cost there. Not more
  /// often than with each decision. `probe_device` -1: the CPU.
  int probe = 0;
  int probe_device = -1;
};

struct BalanceDecision {
  std::vector<std::vector<ChainDecision>> workers;  ///< by worker and chain
  std::string why;                                  ///< for people: what binds, and the reason of the last change
  double optimum_mpps = 0;  ///< of all workers by the balancer's model; 0: it has none, or does not know yet
};

/// A little more than the device takes is better than a little less, as packets without a place go to the CPU: the part
/// of them that is wanted.
inline constexpr double kFullWanted = 0.02;

/// How a worker moves the share of a device between decisions (ChainDecision::follow): less where packets find no
/// place, more where the device has nothing to do.
/// \param full the part of the packets for the device that found no place
/// \param starved the part of the looks that found no job there
/// \param ms since the last call
inline double follow_share(double share, double full, double starved, double ms) {
  constexpr double kPerMs = 0.25;
  const double step = kPerMs * std::min(ms, 4.0) * (starved - std::max(full - kFullWanted, -kFullWanted));
  return std::clamp(share + step * std::max(share, 0.02), 0.0, 1.0);
}

class Balancer {
 public:
  virtual ~Balancer() = default;
  Balancer() = default;
  Balancer(const Balancer&) = delete;
  Balancer& operator=(const Balancer&) = delete;

  /// What stands behind `=` in `--balancer NAME=ARGUMENT`; empty without `=`. Called at most once, before start().
  /// False: it is not understood.
  virtual bool configure(std::string_view argument) { return argument.empty(); }
  /// Called once, before the first step. Override it to look at the setup.
  virtual void start() {}
  /// A decision for the time until the next step. It need not be quick: workers go on meanwhile.
  virtual BalanceDecision step(const BalanceSample& sample) = 0;
  /// What it has learnt, for the balancer of a configuration that takes over, as text; and that text, before the first
  /// step, unless it is empty. Chains may be other ones: they have names.
  virtual std::string learnt() const { return {}; }
  virtual void learn(std::string_view) {}

  const BalanceSetup& setup() const { return setup_; }
  void set_setup(BalanceSetup setup) {
    setup_ = std::move(setup);
    start();
  }
  /// A decision that sends nothing to devices.
  BalanceDecision everything_on_cpu() const;

 private:
  BalanceSetup setup_;
};

/// What the registry knows of a balancer.
struct BalancerInfo {
  const char* name;
  const char* about;
  std::unique_ptr<Balancer> (*make)();
};
/// Adds a balancer to those that `--balancer` knows. False if there is one by this name.
bool register_balancer(const BalancerInfo& info);
/// The names of those that register_balancer() did not add, since the last call.
std::vector<std::string> take_refused_balancers();
/// Null if there is none.
const BalancerInfo* find_balancer(std::string_view name);
/// Sorted by name.
std::vector<BalancerInfo> all_balancers();
/// The balancer that a text like `Model` or `Fixed=0.4` describes. Null, with a reason in `error` that names those
/// that there are, if there is none.
std::unique_ptr<Balancer> make_balancer(std::string_view text, std::string& error);

/// Put it behind the class, in a source file.
#define HEADRACE_BALANCER(Name, about)                                                           \
  [[maybe_unused]] static const bool registered_balancer_##Name = ::headrace::register_balancer( \
      {#Name, about, []() -> std::unique_ptr<::headrace::Balancer> { return std::make_unique<Name>(); }});

inline BalanceDecision Balancer::everything_on_cpu() const {
  BalanceDecision d;
  std::vector<ChainDecision> chains;
  for (const BalanceSetup::Chain& chain : setup_.chains) {
    ChainDecision& c = chains.emplace_back();
    c.shares.assign(setup_.devices.size(), 0.0);
    c.job = chain.most_job;
    c.max_wait_us = chain.most_wait_us;
    c.places = chain.most_places;
  }
  d.workers.assign(static_cast<size_t>(std::max(setup_.workers, 0)), chains);
  return d;
}

}  // namespace headrace
