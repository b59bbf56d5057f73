#pragma once
/// \file
/// The default balancer: it measures what a packet costs a worker on each side, uses a device where that saves cycles
/// and a worker needs them, and leaves the fine adjustment to the workers (follow_share). docs/balancing.md explains it.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/balancer.hh"
#include "offload/balance/BatchCost.hh"
#include "offload/balance/Cost.hh"
#include "offload/balance/DeviceTimes.hh"
#include "offload/balance/JobOverhead.hh"
#include "offload/balance/JobTimes.hh"
#include "offload/balance/MoveJudge.hh"
#include "offload/balance/Pause.hh"
#include "offload/balance/TotalJudge.hh"
#include "offload/balance/assignment.hh"
#include "offload/balance/formulas.hh"

namespace headrace::balance {

class Model : public Balancer {
 public:
  void start() override;
  BalanceDecision step(const BalanceSample& sample) override;
  std::string learnt() const override;
  void learn(std::string_view text) override;

 private:
  static constexpr double kMs = 1e6;  // ns

  /// One chain of one worker on one device.
  struct LaneState {
    Cost cost;
    double costed = 0;  ///< packets per job, of those whose cost is known
    double share = 0;
    double full = 0;             ///< part of the packets for the device that found no place
    bool full_places = false;    ///< all places were taken, by large jobs, and more often than for moments
    double starved = 0;          ///< part of the looks that found no job
    double asked = 0, paid = 0;  ///< packets and cycles of a probe that has not come back yet
    double per_second = 0;
    double job = 0;       ///< packets of one, in the last sample with any
    bool open = true;     ///< there is a lane
    bool queued = false;  ///< its jobs wait for others
    bool waits = false;   ///< they take longer than a job that waits for no other
    double had = 0;       ///< the share at the end of the last sample
    bool scarce = false;  ///< a bound on delay leaves it fewer places than the device could use
    double owed = 0;      ///< packets that went there since some came back
    int silent = 0;       ///< samples in a row in which nothing came back though packets went there
  };

  struct ChainState {
    Cost cpu;
    BatchCost batches;                     ///< on the CPU
    Cost in_a_row;                         ///< in large batches, when the worker last had as much to do as it could
    Cost probes, first_probes;             ///< as few packets have shown since then, and the first of these
    double part = 0;                       ///< of the worker's packets
    double probed_ns = -1e18;              ///< when a probe of the CPU was sent
    double asked = 0, paid = 0;            ///< packets and cycles of a probe of the CPU that has not come back yet
    double probed_after_ns = kCpuProbeNs;  ///< time between two probes of the CPU
    bool on_device = false;
    double began_ns = 0;   ///< when it began to use devices
    bool follows = false;  ///< the worker finds out its share itself, since the last decision
    std::vector<LaneState> lanes;
    double extra_ns = 0;  ///< p99 seen less p99 foretold, as is usual
    Usual extra;          ///< the same, of the last samples
    Usual delays;         ///< p99 of the last samples
    double foretold = 0;
    int job = 0, places = 0;    ///< that it has on devices, because of a bound
    size_t device = 0;          ///< the one that these are for
    bool tries = false;         ///< whether larger jobs hold the bound, for workers of like load
    double most_share = 1;      ///< of its packets: what finds places
    double heaviest = 0;        ///< part of its packets in one bucket of flows; 0: not known
    double undivided = -1;      ///< the share of the only device, where flows allow no other; -1: they do
    Pause looks_at_flows{1e9};  ///< until it is divided again to see whether that is still so
    double resized_ns = -1e18;  ///< when it last got jobs of another size
    /// Jobs of one size.
    struct Size {
      double held_ns = -1e18;  ///< when their packets last were within the bound
      double held_at = 0;      ///< packets a second then
      Pause pause;             ///< they were not, and smaller jobs were
      double dear_at = 0;      ///< packets a second of a worker that such jobs kept so busy that packets were late
      Pause dear;              ///< they did
    };
    static constexpr size_t kSizes = 36;  // two for each doubling
    std::array<Size, kSizes> sizes;
    Size& size(int job) { return sizes[size_index(job)]; }
    const Size& size(int job) const { return sizes[size_index(job)]; }
    static size_t size_index(int job) {
      const unsigned n = static_cast<unsigned>(job);
      const size_t half = (n & (std::bit_floor(n) >> 1)) != 0;
      return std::min(2 * static_cast<size_t>(std::bit_width(n)) + half, kSizes - 1);
    }
    int over = 0;         ///< samples in a row with p99 over the bound
    bool late = false;    ///< p99 is over the bound, and was for some time
    bool broken = false;  ///< the CPU breaks the bound, too
    Pause bound_pause;
    double p99_ns = 0;  ///< as is usual
  };

  struct WorkerState {
    Cost outside;
    BatchCost bursts;             ///< outside of chains
    double per_second = 0;        ///< packets that it receives
    double last = 0, before = 0;  ///< the same, in the last sample and in the one before it
    double load = 0;              ///< if all ran on the CPU; 1 is all that it can do
    double sampled_ns = 0;        ///< when its last sample came
    double sample_s = 0;          ///< how long it was
    double saturated_ns = -1e18;  ///< when it was saturated last
    double full_ns = -1e18;       ///< the same, with jobs on devices
    bool known = false, saturated = false, on_devices = false;
    size_t group = 0;  ///< in the plan
    uint64_t decision = 0;
    double burst = 0;        ///< packets of one
    double tokens = 0;       ///< cycles that it may spend on probes
    double lately = 0;       ///< cycles that probes cost of late: those of long ago count little
    size_t next = 0;         ///< the probe that is next, because it had to wait for those (probe_of())
    double next_ns = -1e18;  ///< when it last had to
    double stretch_ns = 0;
    MoveJudge judge;
    std::vector<ChainState> chains;
  };

  /// The packets of one chain, over all workers. What was seen long ago counts little.
  struct Lengths {
    double packets = 0, bytes = 0;
    int most_job = 0;
  };

  /// One chain on one device, over all workers.
  struct PairState {
    Cost cost;
    double packets_per_job = 0;
    double job_ns = 0;
    double costed = 0;     ///< packets per job, of those whose cost is known
    double largest = 0;    ///< packets per job, of the largest that was measured
    double usual = 0;      ///< the same, of the last half a second or so
    double least_ns = 0;   ///< the shortest time of such jobs
    double own_ns = 0;     ///< that a packet of a job which waited for no other kept the device, at most
    double own_job = 0;    ///< packets of that job
    JobTimes times;        ///< of jobs that waited for no others
    double stream_ns = 0;  ///< that a job by stream takes. All else here is of the resident kernel, where there is one
    bool in_use = false;   ///< some worker sends packets there
    double probed_ns = -1e18;
    double interval_ns = 50 * kMs;  ///< between probes
    Pause long_probes;              ///< until it is tried again whether it is cheaper in several jobs in a row
    double long_probe_ns = -1e18;   ///< when that was tried
    double cpu_when_probed = 0;
  };

  /// The resident kernel of one class of chains on a device.
  struct KernelState {
    double jobs = 0;          ///< of its chains that came back since the last step, by stream or not
    double between = kOften;  ///< jobs that come in the time after which it leaves
    bool used = false;        ///< its chains have shares of the device
    bool rare = false;        ///< it would leave between jobs
  };

  struct DeviceState {
    std::array<KernelState, 2> kernels;  ///< for chains on headers, and for those on payloads
    bool well = true, in_use = false;
    Pause pause;
    DeviceTimes times;
    JobOverhead overhead;
    int few = 0;                ///< steps in which packets came back, but hardly any
    double ramp = 2;            ///< before it was ever busy: so many times what probes have shown is given to it
    double capacity = 0;        ///< packets a second, as seen when it was busy; 0: never yet
    double full_capacity = 0;   ///< likewise, but of times only in which it was full, and not just workers' places
    double full_ns = -1e18;     ///< when that was seen last
    double bound_ns = -1e18;    ///< when it was last seen busy
    double with_places_of = 0;  ///< workers whose places were all that was seen to be full; 0: the device was
    double late_ns = -1e18;     ///< when its jobs last waited so long for others that packets were late
    double less_ns = -1e18;     ///< when that showed that it does less than was believed
    Pause grows{200 * kMs};     ///< until it is believed to do more than it was seen to, again
    double moved_ns = -1e18;    ///< when workers' shares of it last changed much
    double drained_ns = 0;      ///< when the jobs are back that were under way at the last change; 0: they are
    int forgotten = 0;          ///< `times.forgotten()` that was acted upon
    bool end_known = false;     ///< `times` know where the last samples ended, and of all workers that use it
  };

  static constexpr double kProbePart = 0.003;       // of the worker's cycles
  static constexpr double kLengthsLast = 10 * kMs;  // in which lengths of packets count
  static constexpr double kLately = 30 * kMs;       // in which probes that come together show in the rate
  static constexpr double kProbesLately = 0.01;     // of the worker's cycles
  static constexpr double kProbesSettled = 0.005;   // the same of many, where nothing has changed for some time
  static constexpr double kSettled = 100 * kMs;
  static constexpr double kDearProbe = 0.9;      // of those: it comes alone
  static constexpr double kProbeNs = 0.2 * kMs;  // of the time of a device that others use
  static constexpr double kUnknownCost = 50;     // times that of the CPU, for a packet; but with its job no more than
  static constexpr double kUnknownJob = 3e4;     // cycles
  static constexpr double kProbeBackNs = 10 * kMs;  // two steps
  static constexpr double kCpuProbeNs = 40 * kMs, kRareCpuProbeNs = 2560 * kMs;
  static constexpr int kProbeJobs = kMostProbeJobs;
  static constexpr double kColdCost = 4;  // times that of the CPU: what is measured of a single job may be
  static constexpr double kSmallProbeOfCpu = 8, kProbeOfCpu = 32, kLargeProbeOfCpu = 256;  // packets
  static constexpr double kProbeCycles = 16e3;  // of a probe of the CPU: one of a dear chain has fewer packets
  static constexpr double kNear = 0.25;         // costs that differ by less must be known well
  static constexpr double kCheaper = 0.75;      // times a cost is another
  static constexpr int kWellKnown = 8;          // samples
  static constexpr int kFirstProbes = 3;
  static constexpr double kColdProbe = 1.25;  // times what it cost in a row
  static constexpr double kInARow = 0.1;      // of a chain's packets: more than probes
  static constexpr double kUse = 0.92, kLeave = 0.75;
  static constexpr double kMostUsed = 0.98;            // of the cycles of workers that take all that comes
  static constexpr double kCurious = 0.5;              // a load from which on it is good to know what devices cost
  static constexpr double kGain = 0.97, kLoss = 1.03;  // d by c, to begin and to end
  static constexpr int kLeastJob = 16;
  static constexpr int kFewJobs = 4;
  static constexpr int kTooLittle = 3;              // steps with hardly any packets for a device
  static constexpr double kLarge = 0.5;             // of the packets that a job may have
  static constexpr double kMostAtOnce = 0.25;       // of a time, where more workers have more places
  static constexpr double kLarger = 1.2;            // times as large: a job that says more than others
  static constexpr double kWaits = 1.25;            // times the shortest time: jobs that take longer wait for others
  static constexpr double kAlmostAll = 0.99;        // of a chain's packets
  static constexpr double kManyWithoutPlace = 0.1;  // of a chain's packets for a device
  static constexpr double kFell = 0.8;              // of what workers did in the sample before
  static constexpr double kCarried = 0.95;          // of the packets: not less than this is less
  static constexpr double kStay = 20 * kMs;         // with a size of jobs
  static constexpr double kTried = 50 * kMs;        // in which another one sees whether larger jobs hold the bound
  static constexpr double kLittleOver = 1.25;       // times the bound
  static constexpr double kLess = 0.99;             // times what a device was believed to do
  static constexpr double kAmple = 1.15;            // places for so many times what arrives
  static constexpr double kFindsPlaces = 0.9;  // of what places let through: where they are few, no more goes there
  static constexpr double kForTheRest = 0.85;  // of a worker's cycles
  static constexpr double kBelowFull = 0.96;   // of what a device can do, where jobs must not wait
  static constexpr double kAlmostBusy = 0.99;  // of a worker's cycles: the share stays as it is
  static constexpr double kMoreComes = 1.25;   // times what a full worker receives
  static constexpr double kFullBefore = 300 * kMs;          // a worker that has been full may be so again
  static constexpr double kHolds = 2000 * kMs;              // jobs that held a bound do so again for this long
  static constexpr double kOtherLoad = 0.2;                 // but not with more or fewer packets by this part
  static constexpr double kHeld = 0.9, kRoom = 0.8;         // of the bound, to stay on a device and to begin
  static constexpr double kMoved = 0.1;                     // shares that changed by more are others
  static constexpr double kNearlyFull = 0.9, kFull = 0.92;  // of a device's time
  static constexpr double kMuch = 0.005;                    // of the packets: more than the plan has
  static constexpr double kPartOfJob = 0.29;                // the standard deviation of where in a job a sample ends
  static constexpr double kDivisible = 0.5;                 // of a chain's packets in one bucket
  static constexpr double kAtAnEnd = 0.05;                  // a share so near to nothing or all is that, then
  static constexpr size_t kManyPairs = 128;                 // of groups, chains and devices
  static constexpr double kWorthTrying = 1.02;              // a plan that may be better must be so by this
  static constexpr double kLittleOfDevice = 0.02, kMuchOfDevice = 0.1;  // of its time
  static constexpr double kWorthTryingLate = 1.03;                      // where nothing has changed for some time
  static constexpr double kFarther = 1.02;  // a device that is not nearest, or new, must be better by this
  static constexpr double kStays = 0.985;   // of its cost counts for workers that have most of their packets there
  static constexpr double kOften = 2;       // jobs in the time after which a resident kernel leaves: it is worth while
  static constexpr double kRare = 0.5, kNotRare = 1;  // so few are rare, to begin and to end
  static constexpr double kLongestJob = 100 * kMs;    // to wait for
  static constexpr double kIdles = 10;                // of these times: how long it takes to know
  static constexpr double kMostOfBound = 0.5;         // for a job by stream

  /// What one chain or device gets, others could have.
  bool has_choice() const { return pairs_.size() > 1 || devices_.size() > 1; }
  /// Neither costs nor devices have become other ones for some time.
  bool is_settled() const {
    return std::all_of(changed_ns_.begin(), changed_ns_.end(), [this](double ns) { return now_ - ns > kSettled; }) &&
           std::all_of(devices_.begin(), devices_.end(),
                       [](const DeviceState& d) { return !d.times.known() || d.times.is_settled(); });
  }
  double hz() const { return std::clamp(setup().cycles_per_second, 1e3, 1e12); }
  double bank() const { return kProbePart * hz() * 0.5; }

  // --- Samples ------------------------------------------------------------------------------------------------------

  void take(const WorkerSample& s);

  /// What the packets of the sample cost in all chains. `backlogged`: its bursts were full.
  double take_chains(const WorkerSample& s, WorkerState& w, bool old, double seconds, bool backlogged);
  /// Of jobs of `job` packets each, of the kind that `pair` is about.
  /// \param cycles of the timed packets
  void take_cost(PairState& pair, const DeviceSample& v, double cycles, double job);
  void take_times(size_t k, size_t d, WorkerState& w, const DeviceSample& v, double job, int64_t stretch_ns);
  /// The longest that jobs of chain `k` may have to wait on the device for those of all workers, as far as is known. Not
  /// more than a tenth of a second: what takes longer is no help.
  double longest_queue_s(size_t k, size_t d) const;
  void see_delay(size_t k, WorkerState& w, double p99);
  /// Notes whether jobs of the present size hold the bound.
  void judge_size(size_t k, WorkerState& w, double p99);

  /// Learns from what came back from the device how much of its time packets take.
  void look_at_device(size_t d);
  /// A packet's time on the device that the plan counts with; 0: it has no limit that is known.
  double planned_s(size_t k, size_t d) const;

  // --- Costs --------------------------------------------------------------------------------------------------------

  /// c. Where there is a choice, probes are small and find caches cold: what they tell is by how much packets have become
  /// dearer since the chain last ran in a row.
  double cpu_cost_of(const WorkerState& w, size_t k) const {
    const ChainState& chain = w.chains[k];
    const double seen = chain.cpu.known() ? chain.cpu.mean() : cpu_[k].mean();
    const bool cold = has_choice() && chain.in_a_row.known() && chain.first_probes.samples() >= kFirstProbes &&
                      chain.first_probes.mean() > kColdProbe * chain.in_a_row.mean();
    if (!cold) return seen;
    return std::min(seen, chain.in_a_row.mean() * chain.probes.mean() / chain.first_probes.mean());
  }
  /// o of a packet in a burst as large as those of a worker with much to do.
  double outside_in_full(const WorkerState& w) const { return w.bursts.in_full(w.outside.mean()); }
  /// c, likewise. Probes find caches cold: they tell that it is less than it was when it ran in a row, but not that it is
  /// more. If it is, the CPU does not suffice, and then it runs in a row.
  double cpu_cost_in_full(const WorkerState& w, size_t k) const {
    const ChainState& chain = w.chains[k];
    const double cost = chain.batches.in_full(cpu_cost_of(w, k));
    return chain.in_a_row.known() ? std::min(cost, chain.in_a_row.mean()) : cost;
  }
  /// o + c over the worker's mixture of chains, likewise: what tells how much of all that it could do a worker does.
  double cpu_cost_in_full(const WorkerState& w) const;
  /// What the device costs this worker, or others if it does not know. 0: nobody knows.
  double device_cost_of(const WorkerState& w, size_t k, size_t d) const;
  /// Packets of a job if all of chain `k` go to one device.
  double full_job(const WorkerState& w, size_t k) const;
  /// Whether the measured cost is that of jobs as large as they will be.
  bool is_conclusive(size_t k, size_t d) const;

  // --- Decisions ----------------------------------------------------------------------------------------------------

  /// It was not full for some time, with jobs on devices. Larger ones help one that is.
  bool has_time(const WorkerState& w) const { return now_ - w.full_ns > kFullBefore; }
  /// It has no lane to the device, or this was tried and lowered the rate of this worker, or of all.
  bool refuses(const WorkerState& w, size_t d) const {
    return lacks(w, d) || w.judge.refuses(d, now_) || judge_.refuses(now_);
  }
  /// It has no lane to the device, whatever others have.
  bool lacks(const WorkerState& w, size_t d) const {
    return std::none_of(w.chains.begin(), w.chains.end(), [d](const ChainState& chain) { return chain.lanes[d].open; });
  }
  void judge_total(double passed);
  /// A worker that takes all that comes needs no more.
  bool is_hungry(const WorkerState& w) const { return now_ - w.saturated_ns < 30 * kMs; }

  /// What workers of one group have in common.
  struct Kind {
    size_t nearest = 0;  ///< device
    size_t mostly = 0;   ///< most_used()
    bool hungry = false;
    std::vector<bool> refused;  ///< by device
    bool operator==(const Kind&) const = default;
  };

  /// The device that has more than half of the worker's packets, behind the last if none has. With one device nobody asks.
  size_t most_used(const WorkerState& w) const;

  /// What each worker and chain should have of each device, by all that is known.
  void make_plan();
  void add(const WorkerState& w, WorkerGroup& group, double weight) const;

  /// Makes means of sums, and leaves out devices that are no help.
  void finish(WorkerGroup& group, const Kind& kind) const;

  /// Of many devices the best two, so that a step stays quick; of those that are alike the next ones to the nearest.
  void keep_few(WorkerGroup& group, size_t nearest) const;
  void solve(const std::vector<WorkerGroup>& groups);

  /// Which devices the plan gives to several chains.
  void find_shared();

  /// While one mixture of chains uses a device, only the sum of their times shows. If another mixture could be better by
  /// all that is known, it is tried, and shows what it takes.
  void explore(const std::vector<WorkerGroup>& groups, std::vector<std::vector<double>>& device_s);
  /// How far to go from the plan to the supposed one, 0 to 1, so that a try costs little if it is wrong.
  double how_far(const std::vector<WorkerGroup>& groups, const Assignment& supposed) const;
  void decide(size_t number, std::vector<ChainDecision>& decisions);

  /// The devices that the plan has for it, the one that costs least cycles first.
  std::vector<size_t> planned(const WorkerState& w, size_t k) const;
  void set_shares(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision);

  /// Sets ChainState::undivided. A bucket of flows is on one side at a time: if one has most of a chain's packets, the share
  /// that is planned may lie between what its packets are and what all others are. The better of both is taken.
  /// \param share planned
  void look_at_flows(WorkerState& w, size_t k, size_t d, double share);

  /// The longest stretch on the CPU that leaves the device something to do.
  int slice(const WorkerState& w, size_t k, const ChainDecision& decision) const;

  /// The workers that have a share of a device, and this one.
  int users_of(const WorkerState& w, size_t d) const;
  /// The packets a second that a device does for one of the workers that use it; 0: not known.
  double capacity_for(const WorkerState& w, size_t d) const;

  // --- Bounds on delay ----------------------------------------------------------------------------------------------

  /// The next smaller size of jobs: powers of two, and those in the middle between them.
  static int smaller(int job) {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(job)));
    if (job > power + power / 2) return power + power / 2;
    return job > power ? power : std::max(power * 3 / 4, 1);
  }
  /// The chain's packets come as often to both workers, and go to the same device.
  static bool alike(const WorkerState& a, const WorkerState& b, size_t k) {
    const double mine = a.per_second * a.chains[k].part;
    return a.chains[k].device == b.chains[k].device &&
           std::abs(b.per_second * b.chains[k].part - mine) < kOtherLoad * mine;
  }
  /// Jobs of this size do not hold the bound, and would not on workers that are alike.
  void avoid(const WorkerState& w, size_t k, int job);
  /// It has more to do than it can, and had with jobs of the present size.
  bool is_full(const WorkerState& w, size_t k) const;
  /// The smallest jobs to think of. What a full worker sends in small jobs costs it more, so that packets are late though
  /// no foretold time says so: larger ones are tried, as long as they could hold the bound.
  /// \param path with arrivals, stretch and longest wait \param limit nanoseconds
  int smallest_job(const WorkerState& w, size_t k, DevicePath path, double limit) const;
  /// Its packets were late because it had too much to do, and it has just been given less.
  bool gets_less(size_t d) const { return now_ - devices_[d].less_ns < 2 * kStay; }
  /// Whether to send larger jobs. Where they may break the bound, one of the workers that are alike tries, and the others
  /// wait for what it sees.
  bool may_use(const WorkerState& w, size_t k, int job) const;
  /// Its packets wait because all places are taken, though the device could do more.
  bool is_scarce(const WorkerState& w, size_t k) const;
  /// The part of what arrives for the device that places let through. More than that, if it is more than 1.
  double finds_places(const WorkerState& w, size_t k, const DevicePath& path) const;
  /// What a worker may give to a full device so that its jobs do not wait for others there, if the worker has time for the
  /// rest; else 1. \param share what is planned
  double below_full(const WorkerState& w, size_t k, double share) const;
  /// The share to give to a device then: what waits for places is late, so the CPU gets some more than does not find any.
  /// \param finds_places as finds_places() says
  static double share_of(double finds_places) { return kFindsPlaces * std::min(finds_places, 1.0); }
  /// It does all that arrives with `part` of what the plan has for devices, and the rest on the CPU.
  bool has_time_for_rest(const WorkerState& w, size_t k, double part, double cycles = kForTheRest) const;
  /// All that arrives gets through with such jobs.
  bool carries_all(const WorkerState& w, size_t k, const DevicePath& path) const;

  /// How long packets are decides how many fill a job.
  void look_at_lengths(double passed);
  /// The packets of the largest job that a chain may have, of packets as long as they are: a power of two where that
  /// depends on their length, so that it seldom changes.
  int most_job(size_t k) const { return lengths_[k].most_job; }
  /// The largest job whose packets stay below the bound. False if none does.
  bool fit_bound(WorkerState& w, size_t k, const std::vector<size_t>& devices, ChainDecision& decision);

  // --- Kinds of jobs ------------------------------------------------------------------------------------------------

  /// Says which chains' jobs go by stream.
  void choose_runs(BalanceDecision& decision, double passed);
  /// Which chains have so few jobs on a device that its resident kernel would leave between them.
  void find_rare(size_t d, const BalanceDecision& decision, double passed);
  bool goes_by_stream(size_t k, const ChainDecision& decision) const;
  /// The samples of chain `k` on device `d` with jobs by stream say nothing about those of its resident kernel.
  bool is_resident(const DeviceSample& s, size_t d) const { return s.stream_jobs == 0 || !setup().devices[d].resident; }

  // --- Probes -------------------------------------------------------------------------------------------------------

  void probe(BalanceDecision& decision, double passed);

  /// With a bound probes are fewer than the packets that may be late.
  int harmless(const WorkerState& w, size_t k, double passed, double packets) const;
  /// A number for the probes of a chain on a device, or on the CPU.
  size_t probe_of(size_t k, size_t d) const { return k * (devices_.size() + 1) + d; }
  size_t probe_of_cpu(size_t k) const { return probe_of(k, devices_.size()); }
  /// Pays for a probe that costs the worker so many cycles, if with it those of late still take little of some 30
  /// milliseconds. What it may spend on them in the long run would be several percent, if they came together. One that is
  /// dearer than all may be waits until the others are long ago. Until it has been paid, or is no longer asked for, the
  /// worker pays for no other one: cheap ones that come often would put it off for ever.
  bool pay(WorkerState& w, size_t probe, double cycles) const {
    if (w.next != probe && w.next_ns >= last_) return false;
    const double most = (has_choice() && is_settled() ? kProbesSettled : kProbesLately) * hz() * kLately * 1e-9;
    const bool affords = w.lately + std::min(cycles, kDearProbe * most) <= most;
    w.next = probe;
    w.next_ns = affords ? -1e18 : now_;
    if (affords) w.lately += cycles;
    return affords;
  }
  void probe_device(size_t k, size_t d, BalanceDecision& decision, double passed);
  /// How long a packet keeps the device from others at most, in nanoseconds, as far as is known. The time of its job does
  /// not tell where jobs wait for others, or workers look rarely.
  double most_device_ns(size_t k, size_t d) const;
  void probe_cpu(size_t number, size_t k, BalanceDecision& decision, double passed);

  // --- For people ---------------------------------------------------------------------------------------------------

  /// R* of all workers, packets a second, if more arrived than they can do.
  double optimum() const;

  /// The places that the worker would need so that the device always has one of its jobs, where packets find none and the
  /// device is not full; 0: places do not bind, as far as is known.
  int places_lacked(const WorkerState& w, size_t k, size_t d) const;

  /// A packet's part of the time of a device that is known to be its limit.
  double device_ns(size_t k, size_t d) const;
  std::string why() const;

  std::vector<WorkerState> workers_;
  std::vector<std::vector<PairState>> pairs_;  // by chain and device
  std::vector<Cost> cpu_;                      // by chain
  std::vector<double> changed_ns_;             // by chain: when a cost was last far from what was known
  std::vector<DeviceState> devices_;
  std::vector<double> arrives_;   // by chain: packets a second
  std::vector<Lengths> lengths_;  // by chain
  TotalJudge judge_;              // of all workers
  Assignment plan_;               // by group of workers
  std::vector<bool> shared_;      // by device: chains compete for it
  double now_ = 0, last_ = 0;     ///< this step, and the one before it
  double optimum_ = 0;
  int step_ = 0;
  size_t supposed_ = 0;  // the pair of chain and device whose time was supposed to be less
  bool started_ = false;
  bool any_hungry_ = false;
  double rates_left_ = 1;  ///< of what workers did in the sample before, as far as both samples are there
  bool lacking_ = true;    ///< some worker could do more if devices could
};

}  // namespace headrace::balance
