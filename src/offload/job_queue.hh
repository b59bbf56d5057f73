#pragma once
/// \file
/// The jobs of one worker: packing, order, deadlines, release.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/device/chain_entry.hh"
#include "headrace/flow_hash.hh"
#include "headrace/histogram.hh"
#include "headrace/offload_options.hh"
#include "headrace/rcu.hh"
#include "headrace/single_writer.hh"
#include "headrace/task.hh"
#include "headrace/worker.hh"
#include "offload/balance/follow.hh"
#include "offload/balance/link.hh"
#include "offload/balance/load_meter.hh"
#include "offload/parameters.hh"
#include "offload/plan.hh"
#include "offload/rows.hh"

namespace headrace::offload {

/// A device as workers see it.
struct Device {
  /// kWell: gets jobs and tables. kHung: gets none, because it does not finish what it has. kBack: it has finished, and
  /// gets jobs again when its tables are up to date. kFailed: for good.
  ///
  ///     kWell -> kHung -> kBack -> kWell,  all -> kFailed
  enum class Health : uint8_t { kWell, kHung, kBack, kFailed };

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Parameters> parameters;
  std::atomic<Health> health{Health::kWell};
  std::atomic<int> late{0};  ///< late jobs of all workers that it has not finished
  bool stopped = false;      ///< it will never again write to packets

  bool well() const { return is(Health::kWell); }
  bool came_back() const { return is(Health::kBack); }
  bool failed() const { return is(Health::kFailed); }
  bool is(Health h) const { return health.load(std::memory_order_relaxed) == h; }
  bool move(Health from, Health to) { return health.compare_exchange_strong(from, to); }
  void fail() { health.store(Health::kFailed); }

  /// Its tables; when there are `parameters`. Those of a device that is not well are brought up to date before they are
  /// used again.
  void make_copy_known() {
    copy_.emplace([this] { return health.load() == Health::kWell ? parameters->epoch() : 0; });
  }

 private:
  std::optional<rcu::Copy> copy_;
};

/// What a queue counts. The engine's handlers show the sums over workers.
enum Event : int {
  kJobs,        ///< released
  kJobPackets,  ///< in these jobs
  kCpuPackets,  ///< sent to the CPU
  kFullLane,    ///< of these: because no job was free
  kBehind,      ///< of these: held back behind their bucket's last job
  kResumed,     ///< slots that the host had to finish
  kNoBuffer,    ///< packets to be rewritten for which there was no output buffer: the CPU rewrites them
  kEscaped,     ///< slots for host bodies
  kLateJobs,    ///< jobs past their deadline, run again on the CPU
  kFailedJobs,  ///< jobs of a device that failed, run again on the CPU
  kWaits,       ///< times that packets had to be put aside for want of a free job
  kEvents
};
extern const char* const kEventNames[kEvents];

/// What may be changed about one worker's jobs of one plan while packets flow.
struct Tuning {
  int places = 1;        ///< jobs that may be in flight on a device
  int job = 1;           ///< maximum packets per job
  int max_wait_us = 0;   ///< a job is submitted when its first packet has waited this long
  bool at_quiet = true;  ///< a job is submitted when the worker has found nothing new to receive
  int device = 0;        ///< for packets whose flows have none on another device; the next one if it is not well

  /// Sets `places`, `job`, `maxwait`, `quiet` or `device`; false if there is no such thing or the value is none for it.
  bool set(std::string_view key, std::string_view value);
  std::string text() const;
};

/// Belongs to one worker. All functions are called on its thread, unless they say otherwise.
class JobQueue {
 public:
  static constexpr uint32_t kBuckets = 1024;

  /// \param first_device the device that the worker uses as long as it is well
  /// \param entries those of all plans; their ids are positions here
  /// \param link to the balancer, for entries whose mode is kAuto
  /// \param cycles_per_us of the time stamp counter
  JobQueue(int worker, int first_device, const std::vector<Plan>& plans, std::vector<std::unique_ptr<Device>>& devices,
           const std::vector<ChainEntry*>& entries, const OffloadOptions& options, BalanceLink& link,
           double cycles_per_us);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// Takes packets that arrive at an entry and sends them where its options (which may have changed) say. Never waits:
  /// packets for a device that has no place for them are put aside ("parked").
  /// \returns false if poll() need not be called for these packets
  bool arrive(ChainEntry& entry, Batch& batch);
  /// Releases jobs that are done, sends parked packets on, and submits jobs that have waited long enough. True if there
  /// were any.
  bool poll();
  /// True if no job is open or submitted and no packet is parked or gathered.
  bool idle() const;
  /// The plans for which packets are parked, as bits: see gate_of(). Sources that feed them should rest.
  uint64_t closed_gates() const { return closed_gates_; }
  /// The bit of a plan. All plans from the 64th on share one.
  static uint64_t gate_of(int plan) { return uint64_t{1} << std::min(plan, Task::kChainGates - 1); }
  /// Change it while the worker stands. Values beyond what the lanes were made for are cut off.
  /// In force where no balancer decides.
  Tuning& tuning(int plan) { return of_plan_[static_cast<size_t>(plan)].tuning; }
  /// The device for packets of `plan` whose flows have none on another; -1: the CPU.
  int device_for(int plan) const { return usable_device(of_plan_[static_cast<size_t>(plan)].tuning.device); }
  /// Call on the control thread while the worker stands: the queue may use its lane to the device, if it has one now.
  void use_lane(int device);
  /// Notes the devices that the worker, or a balancer, would use if it had a lane to them.
  void look_for_lanes();
  bool wants_lane(int device) const { return wanted_lanes_[static_cast<size_t>(device)]; }
  bool wants_lanes() const { return wants_lanes_; }
  /// The wanted lanes are there now, or there are none to be had.
  void settle_wanted_lanes();
  /// True if a device still works on jobs that were run again on the CPU; poll() must then be called now and then.
  bool has_late_jobs() const { return quarantined_ > 0; }
  /// Waits until all jobs are done and released.
  void drain();
  /// True if the device may still read tables of `generation` for jobs of this queue. Any thread, while the worker
  /// stands.
  bool uses(const Device& device, int generation);

  /// Any thread.
  uint64_t event(Event e) const { return events_[e]; }
  /// Nanoseconds that jobs of a plan took from doorbell to release, and from the first packet's arrival to release.
  const Histogram& doorbell_latency(int plan) const { return of_plan_[static_cast<size_t>(plan)].doorbell_latency; }
  const Histogram& arrival_latency(int plan) const { return of_plan_[static_cast<size_t>(plan)].arrival_latency; }
  void reset_statistics();
  /// What the worker tells of its time.
  LoadMeter* meter() { return &meter_; }

 private:
  /// State of a job's place. Only open and submitted jobs are in a line. `pinned`: the device may still read the
  /// tables.
  ///
  ///     kFree -> kOpen -> kSubmitted, pinned -> kFree                 done
  ///                                          -> kQuarantine, pinned   late; -> kFree when the device is done with it
  ///                                          -> kQuarantine           the device has failed: for ever
  ///                    -> kSubmitted, not pinned -> kFree             the device was not well: it never got the job
  enum class State : uint8_t { kFree, kOpen, kSubmitted, kQuarantine };
  /// Packets that wait, each with a number, linked by Packet::next().
  struct Held {
    Packet* first = nullptr;
    Packet* last = nullptr;
    size_t size = 0;

    bool empty() const { return first == nullptr; }
    void push_back(Packet* p, uint16_t number) {
      p->set_next(nullptr, number);
      (first ? last->set_next(p, last->tag()) : void(first = p));
      last = p;
      ++size;
    }
    void append(const Held& other) {
      if (other.empty()) return;
      (first ? last->set_next(other.first, last->tag()) : void(first = other.first));
      last = other.last;
      size += other.size;
    }
    /// Moves packets with the number of the first one to `batch`, as many as there are next to each other and have
    /// room; returns their number.
    uint16_t take(Batch& batch) {
      const uint16_t number = first->tag();
      for (; first && !batch.full() && first->tag() == number; first = first->next(), --size) batch.push_back(first);
      return number;
    }
    void kill() {
      while (Packet* p = first) {
        first = p->next();
        p->kill();
      }
    }
  };
  struct Job {
    State state = State::kFree;
    int device = 0;
    int place = 0;  // in the device's lanes: of each kind the same, as it is in one of them at a time
    Run run = Run::kResident;
    Lane* lane = nullptr;  // of this kind
    int plan = 0;
    int size = 0;
    int bytes = 0;  // of its packets, if they count: see OffloadOptions::job_bytes
    int generation = -1;
    bool pinned = false;  // see State
    bool probe = false;   // some of its packets are there to be measured
    bool warms = false;   // or only to warm caches
    uint64_t sequence = 0;
    int64_t first_arrival = 0;
    int max_wait_us = 0;  // from first_arrival on
    int64_t submitted = 0;
    uint8_t* rows = nullptr;
    std::vector<Packet*> packets;
    std::vector<Packet*> outputs;  // for each slot, a buffer for what a device makes of the packet, if one was needed
    std::vector<uint16_t> untouched;  // for each slot, the code that means that nothing was done
    Held behind;                      // packets for the CPU, with their steps
  };
  /// The jobs of one plan on one device, in order of submission.
  struct Line {
    std::vector<Job*> ring;
    size_t head = 0, size = 0;
    Job* open = nullptr;     // the last job, while it fills
    uint64_t released = 0;   // all jobs up to this sequence number are released
    uint64_t untracked = 0;  // the last job whose packets' buckets were not recorded
    uint64_t strayed = 0;    // the last job that may have packets of buckets that are given to others, see settled
    Held parked;             // packets with the ids of their entries; what arrives later goes behind them
    size_t behind = 0;       // packets that wait behind its jobs
    int shunned_for = -1;  // the device that the parked packets could not go to, because of others of their flows here

    bool empty() const { return size == 0; }
    Job* front() const { return ring[head]; }
    Job* at(size_t i) const { return ring[(head + i) % ring.size()]; }
    void push(Job* j) { ring[(head + size++) % ring.size()] = j; }
    void pop() {
      head = (head + 1) % ring.size();
      --size;
    }
  };
  /// Where the last packet of each bucket went. All packets of a bucket that are on devices are in one line. In columns: each
  /// packet that goes to a device has its place in `job` written, and these should be few cache lines.
  struct Buckets {
    std::vector<uint16_t> job = std::vector<uint16_t>(kBuckets);  // the low bits of its sequence number, see last_job()
    std::vector<uint8_t> device = std::vector<uint8_t>(kBuckets);    // of the line
    std::vector<uint32_t> parked = std::vector<uint32_t>(kBuckets);  // packets
  };
  /// What is measured of one side of a plan for the balancer, since the last sample.
  struct Measured {
    uint64_t packets = 0;
    uint64_t timed = 0, cycles = 0;        // on the CPU, or from the end of a job on
    uint64_t packed = 0, pack_cycles = 0;  // from arrival to the end of packing
    uint64_t jobs = 0, job_ns = 0;
    uint64_t stream_jobs = 0, stream_job_ns = 0;  // of these
    uint64_t full = 0, polls = 0, starved = 0;
    uint64_t full_before = 0, polls_before = 0, starved_before = 0, packets_before = 0;  // at the last tick
  };
  /// What the balancer has decided about a plan, and what follows from that.
  struct Balance {
    static constexpr int kMixed = -2, kCpu = -1;

    ChainDecision decision;
    Tuning tuning;                        // as decided
    std::vector<double> shares;           // by device, as the worker has moved them
    std::vector<double> reported, given;  // the same when the last sample was made, and when buckets were given out
    balance::Lean lean;
    std::vector<balance::Followed> followed;  // by device
    int all_to = kCpu;                        // the device that all packets go to, kCpu or kMixed
    int probe = 0;                            // packets that are still to be sent to the decision's probe_device
    int warming = 0;                          // packets of a probe of the CPU that only warm its caches
    int warming_there = 0;                    // likewise of a probe of a device
    std::vector<uint8_t> side;                // by bucket, as in OfPlan::side
    std::vector<uint32_t> weight;             // by bucket: packets, older ones count less
    uint64_t arrived = 0, looked_at = 0, bytes_looked_at = 0;
    Measured cpu;
    BatchSums cpu_batches;
    std::vector<Measured> devices;
    TimesWindow delays;
  };
  /// The sides of buckets where options give them, not a balancer: the first `below` buckets go to a device, the others to the
  /// CPU.
  struct FixedSides {
    std::vector<uint8_t> side;  // by bucket, as in OfPlan::side
    uint32_t below = 0;
    int device = -1;
  };
  /// Packets for the CPU that wait for others: divided batches are small, and small ones cost more. None of their flows
  /// has packets on a device.
  struct Gathered {
    std::unique_ptr<Batch> batch = std::make_unique<Batch>();
    uint16_t step = 0;
    int64_t began = 0;  // when the first ones came; 0: there are none
    int max_wait_us = 0;
    int64_t arrived = 0;    // when packets came last
    uint64_t since = 0;     // see LoadMeter::since(), of the first ones; 0: unknown
    uint64_t released = 0;  // packets, ever
  };
  struct OfPlan {
    explicit OfPlan(const Plan& plan) : rows(plan), takes_packets(plan.takes_packets()) {}
    Line& line(int device) { return lines[static_cast<size_t>(device)]; }
    const Line& line(int device) const { return lines[static_cast<size_t>(device)]; }

    Rows rows;
    bool takes_packets;
    Tuning tuning;
    std::vector<Line> lines;  // by device
    Buckets buckets;
    int all_on = -1;  // the device that all buckets were last on; -1: they differ
    /// Where packets go, by bucket: 0: to the CPU, else to the device of this number, less 1. The balancer's or those of
    /// options, whatever the last packets went by; null: none went by any.
    const uint8_t* side = nullptr;
    FixedSides fixed;
    Gathered gathered;
    /// All packets that are on devices, or parked, are where the sides want their buckets: those of other buckets need
    /// not look whether they may overtake.
    bool settled = false;
    bool parked_strayed = false;        // of those that are parked, some may be of buckets that are given to others
    uint64_t division = 1;              // counts moves of buckets
    std::vector<ChainEntry*> entry_at;  // by step; null where no packets enter
    Histogram doorbell_latency, arrival_latency;
    const ChainEntry* entry = nullptr;  // the first one
    Balance balance;
  };
  /// True if the balancer decides where a plan's packets go.
  static bool is_balanced(const OfPlan& of_plan) {
    return of_plan.entry && of_plan.entry->in_effect().mode == OffloadOptions::Mode::kAuto;
  }
  /// What is in force for a plan: the balancer's word where it decides.
  static const Tuning& tuning_of(const OfPlan& of_plan) {
    return is_balanced(of_plan) ? of_plan.balance.tuning : of_plan.tuning;
  }

  /// \param only the device for those that go to one, whatever is parked: they were, and their buckets may have been given to
  /// the CPU meanwhile; -1: the plan's, or where others of their flows are
  void send(const ChainEntry& entry, Packet** packets, int n, int only = -1);
  /// The same for entries whose mode is kAuto: to the sides that the balancer has given to their buckets.
  void send_balanced(const ChainEntry& entry, Packet** packets, int n, int only);
  /// Sends packets to the sides of their buckets.
  /// \param all_usable whether the devices of all sides are usable; if not, `usable_now_` says which are
  void send_divided(const ChainEntry& entry, Packet** packets, int n, int only, bool all_usable);
  /// Packets for the CPU have been gathered: they wait for more while these are likely to come soon.
  /// \param n the packets that arrived together, of which `came` are for the CPU
  void gather(const ChainEntry& entry, int n, int came);
  /// Runs what was gathered on the CPU.
  void release_gathered(OfPlan& of_plan);
  static void take_gathered(OfPlan& of_plan, Batch& to);
  /// Packets go by these sides from now on.
  void use_sides(OfPlan& of_plan, const std::vector<uint8_t>& side) const;
  /// Likewise: those of the first `below` buckets to `device`, the others to the CPU.
  void use_fixed_sides(OfPlan& of_plan, uint32_t below, int device) const;
  /// True if packets may go to `device` without a look at their buckets: none of their flows is elsewhere, and buckets
  /// say so, for when packets go elsewhere again.
  bool takes_all(OfPlan& of_plan, int device);
  /// Sends packets to the side that the balancer wants to know more of.
  void send_probe(const ChainEntry& entry, Packet** packets, int n);
  bool arrive_balanced(ChainEntry& entry, Batch& batch);
  /// Packets for a device that has no place. Those of flows that are there must wait; of the others, a slice goes to the
  /// CPU, and the rest may find a place by then.
  void overflow(const ChainEntry& entry, int device, Packet** packets, const uint16_t* buckets, int n, uint64_t given);
  /// Packets of one entry, divided among the sides.
  struct Divided {
    Batch* here = nullptr;  // what is in it already stays
    Packet* there[Batch::kCapacity];
    uint16_t buckets_there[Batch::kCapacity];
    uint8_t device_of[Batch::kCapacity];  // only if they differ
    int go = 0;
    int device = -1;     // of all that go; -1: they differ
    uint64_t given = 0;  // the division by which they go where the sides want them, or 0
  };
  /// Divides packets of a plan that is settled.
  /// \tparam kSeveral whether there are several devices
  template <bool kSeveral>
  static void divide(OfPlan& of_plan, Packet** packets, int n, Divided& to);
  /// The same for any plan: packets whose flows have others elsewhere are sent behind them.
  void divide_looking(const ChainEntry& entry, Packet** packets, int n, int only, bool all_usable, Divided& to);
  static bool none_parked(const OfPlan& of_plan);
  /// Buckets move: what was sent before may be elsewhere.
  void unsettle(OfPlan& of_plan) const;
  /// Sets `settled` once what was elsewhere is done.
  void settle(OfPlan& of_plan) const;
  /// The sequence number of the last job of a bucket's line that may have packets of it; that of a released one if there is none.
  /// 2^16 jobs later, a bucket that has no packets in jobs may seem to have some again: a packet then waits for a job in vain.
  static uint64_t last_job(const OfPlan& of_plan, uint16_t bucket);
  /// True if packets of a bucket are on a device.
  static bool in_flight(const OfPlan& of_plan, uint16_t bucket);
  /// The device that a bucket's last packets went to.
  static int device_of(const OfPlan& of_plan, uint16_t bucket) { return of_plan.buckets.device[bucket]; }
  /// A bucket that has no packets on devices is on this one.
  static void move_bucket(OfPlan& of_plan, uint16_t bucket, int device);
  /// Runs packets on the CPU, and looks for finished jobs now and then.
  void process_in_slices(int plan, uint16_t step, Batch& batch);
  /// Moves shares and talks to the balancer, if it is time.
  void tick();
  /// Packets that went both ways leave the buffers in the order in which they came back. Once all stay on the CPU, it
  /// puts them in order. \returns whether it did
  bool tidy(uint64_t now);
  void follow(OfPlan& of_plan, double ms);
  /// Gives buckets to sides as the shares say, moving as few as possible.
  void give_out_buckets(OfPlan& of_plan);
  /// The part of the packets that is in the bucket with most of them; 0: there were too few.
  static double heaviest_part(const Balance& balance);
  void fill_sample(WorkerSample& sample, uint64_t now);
  void start_span(uint64_t now);
  void take(const BalanceLink::Decision& decision);
  void add_delay(OfPlan& of_plan, uint64_t cycles, int n);
  /// Sends a packet of a bucket of which others are parked, or on a device other than `device`, behind these.
  void send_behind(const ChainEntry& entry, Packet* packet, uint16_t bucket, int device);
  /// \param buckets the packets' buckets; null: they are not recorded
  /// \param given the division that has given all of their buckets to this device, 0 if there is none
  void to_device(const ChainEntry& entry, int device, Packet** packets, const uint16_t* buckets, int n,
                 uint64_t given = 0);
  /// \param buckets null: not known yet
  void to_cpu(int plan, uint16_t step, Packet** packets, const uint16_t* buckets, int n);
  /// Runs packets that enter at `step` on the CPU, and measures what they cost; not for the first half of a probe.
  void process(int plan, uint16_t step, Batch& batch);
  void process_warming(int plan, uint16_t step, Batch& batch);
  /// Gets buffers for what a device makes of the slots [first, first + n).
  void provide_outputs(Job& job, int first, int n);
  /// Whether a job is full with so many packets because of their bytes.
  static bool has_enough_bytes(int packets, int bytes, const OffloadOptions& options);
  /// How many of these packets a job takes before its bytes fill it. Counts their bytes.
  static int count_fitting(Job& job, Packet* const* packets, int n, const OffloadOptions& options);
  int append(Job& job, uint16_t step, Packet** packets, const uint16_t* buckets, int n, uint64_t given);
  /// A free job for packets of `plan`; null if the plan has all of its places or none is free.
  Job* free_job(int plan, int device);
  Job* open_job(int plan, int device);
  void park(const ChainEntry& entry, int device, Packet** packets, const uint16_t* buckets, int n, uint64_t given = 0);
  bool unpark(int plan, int device);
  /// True if no packet of the plan is parked, gathered or in a job.
  static bool rests(const OfPlan& of_plan);
  void update_gate(int plan);
  /// Packets of a plan that may wait on a worker before its sources rest: as many as there may be in jobs.
  size_t many() const { return static_cast<size_t>(options_.jobs) * static_cast<size_t>(options_.job); }
  /// The lowest bits of a packet's hash choose the worker, so higher ones choose the processor.
  static uint16_t bucket_of(const Packet& p) { return static_cast<uint16_t>((flow_bucket(p) >> 7) % kBuckets); }
  void submit(Job& job);
  bool release_done();
  void finish_front(int plan, int device, Lane::State state);
  void release(Job& job);
  /// The same, measured for the balancer.
  void release_measured(Job& job);
  /// Gives packets' results of one number to the shaders that they come from.
  /// \param codes null: a device has processed all of the packets
  static void release_results(const OfPlan& of_plan, const Plan& plan, const uint8_t* results, Packet** packets,
                              const uint16_t* codes, const uint16_t* untouched, int n);
  /// Sends packets where their codes say; packets with the same code go together.
  void dispatch_all(const Plan& plan, Packet** slots, uint16_t* codes, int left);
  /// Sorts by code; those with the same code keep their order.
  void sort_by_code(Packet** slots, uint16_t* codes, int n);
  void dispatch(const Plan& plan, uint16_t exit, Batch& batch);
  /// Runs a job's packets on the CPU, because the device did not process them. They are unchanged.
  void run_again(Job& job);
  void push_held(int plan, Held& held);
  /// Gives a job the current tables of its device; false if the device is not well.
  bool pin(Job& job);
  void unpin(Job& job);
  std::atomic<rcu::Epoch>& epoch_of(const Job& job) {
    return epochs_[static_cast<size_t>(job.device)][static_cast<size_t>(job.place)];
  }
  /// The oldest tables whose results may still be released.
  rcu::Epoch oldest() const;
  void quarantine(Job& job);
  bool look_at_quarantine();
  /// True if the device is well and has places outside quarantine.
  bool usable(int device) const;
  /// `first`, or another device if it is not usable; -1 if none is.
  int usable_device(int first) const;
  /// The devices in the order in which a worker tries them whose first one is `first`.
  int nth_device(int first, int n) const;
  /// Notes that a hung device has finished something, perhaps the last of what it owed.
  static void note_done(Device& device);
  static Lane& lane(const Job& job) { return *job.lane; }
  bool has_lane(int device) const {
    const auto& lanes = lanes_[static_cast<size_t>(device)];
    return std::any_of(lanes.begin(), lanes.end(), [](const Lane* lane) { return lane != nullptr; });
  }
  /// The kind of lane for the next job of a plan on a device to which there is one.
  Run run_for(const OfPlan& of_plan, int device) const;

  const int worker_;
  const std::vector<Plan>& plans_;
  std::vector<std::unique_ptr<Device>>& devices_;
  const std::vector<ChainEntry*>& entries_;
  const OffloadOptions options_;
  std::vector<std::vector<Job>> jobs_;  // by device
  // The same by place: what tables its results are of; 0: it will have none.
  std::vector<std::unique_ptr<std::atomic<rcu::Epoch>[]>> epochs_;
  std::vector<std::array<Lane*, kRuns>> lanes_;  // by device and kind: this worker's, or null
  bool lacks_lanes_ = false, wants_lanes_ = false;
  std::vector<uint8_t> wanted_lanes_, refused_lanes_;  // by device; refused: there was none to be had
  /// Late jobs of a device that has not failed.
  struct Quarantine {
    int places = 0;
    int64_t full_since = 0;  // since when, if all places are in quarantine
    int64_t looked = 0;      // when, if the device hangs
  };
  std::vector<Quarantine> quarantines_;  // by device
  std::vector<OfPlan> of_plan_;
  uint64_t closed_gates_ = 0;
  int quarantined_ = 0;     // places, on all devices
  bool arrived_ = false;    // packets, since the last poll
  int64_t looked_ns_ = 0;   // when release_done() last found a job not done, if it has released none since; else 0
  bool releasing_ = false;  // pushing a job's packets: packets that arrive must not release other jobs
  std::array<SingleWriter<uint64_t>, kEvents> events_{};
  std::vector<uint64_t> counts_;
  std::vector<uint16_t> next_of_code_;  // zero but in dispatch_all() and sort_by_code()

  BalanceLink& link_;
  const double cycles_per_us_;
  LoadMeter meter_;
  bool untidy_ = false;                          // see tidy()
  uint64_t alone_since_ = 0;                     // since when all packets stay on the CPU, in cycles
  int until_tick_ = 1;                           // batches and polls
  uint64_t ticked_ = 0;                          // when
  bool decides_ = false;                         // at the last tick, the balancer decided for some plan
  uint64_t span_began_ = 0;                      // of the present sample
  uint64_t polled_ = 0, longest_stretch_ = 0;    // when jobs were last looked for; the longest time between
  double looks_cycles_ = 0, looks_packets_ = 0;  // of looks that are not in a sample yet: what they cost, and for whom
  uint64_t look_cycles_ = 0;                     // about how long a packet is there before its source sees it
  Bursts bursts_before_;
  uint64_t bursts_polled_ = 0;  // at the last poll
  uint64_t decision_ = 0;
  std::vector<int64_t> missing_, room_;  // give_out_buckets(): by side, what it lacks, and what else it may have
  std::vector<uint8_t> usable_now_;      // devices, of the packets that are being divided
  size_t next_bucket_ = 0;               // where give_out_buckets() begins
  bool probing_ = false;                 // packets to be measured are being sent
  bool unparking_ = false;               // packets that were parked are being sent
  /// Packets that waited are being sent. No job is released meanwhile: its packets may be of their flows, and come here again.
  bool sends_waiting_ = false;
  rcu::Copy copy_{[this] { return oldest(); }};
};

}  // namespace headrace::offload
