#pragma once
/// \file
/// The jobs of one worker: packing, order, deadlines, release.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/device/chain_entry.hh"
#include "headrace/flow_hash.hh"
#include "headrace/histogram.hh"
#include "headrace/offload_options.hh"
#include "headrace/single_writer.hh"
#include "headrace/worker.hh"
#include "offload/parameters.hh"
#include "offload/plan.hh"
#include "offload/rows.hh"

namespace headrace::offload {

/// A device as workers see it.
struct Device {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Parameters> parameters;
  std::atomic<bool> failed{false};
  bool stopped = false;  ///< it will never again write to packets
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

  /// Sets `places`, `job`, `maxwait` or `quiet`; false if there is no such thing or the value is none for it.
  bool set(std::string_view key, std::string_view value);
  std::string text() const;
};

/// Belongs to one worker. All functions are called on its thread, unless they say otherwise.
class JobQueue {
 public:
  static constexpr uint32_t kBuckets = 1024;

  /// \param first_device the device that the worker uses as long as it has not failed
  /// \param entries those of all plans; their ids are positions here
  JobQueue(int worker, int first_device, const std::vector<Plan>& plans, std::vector<std::unique_ptr<Device>>& devices,
           const std::vector<ChainEntry*>& entries, const OffloadOptions& options);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// Takes packets that arrive at an entry and sends them where its options (which may have changed) say. Never waits:
  /// packets for a device that has no place for them are put aside ("parked").
  void arrive(const ChainEntry& entry, Batch& batch);
  /// Releases jobs that are done, sends parked packets on, and submits jobs that have waited long enough. True if there
  /// were any.
  bool poll();
  /// True if no job is open or submitted and no packet is parked.
  bool idle() const;
  /// The plans for which packets are parked, as bits: see gate_of(). Sources that feed them should rest.
  uint64_t closed_gates() const { return closed_gates_; }
  /// The bit of a plan. All plans from the 64th on share one.
  static uint64_t gate_of(int plan) { return uint64_t{1} << std::min(plan, 63); }
  /// Change it while the worker stands. Values beyond what the lanes were made for are cut off.
  Tuning& tuning(int plan) { return tunings_[static_cast<size_t>(plan)]; }
  /// True if the device still works on jobs that were run again on the CPU; poll() must then be called now and then.
  bool has_late_jobs() const { return quarantined_ > 0; }
  /// Waits until all jobs are done and released.
  void drain();
  /// True if the device may still read tables of `generation` for jobs of this queue. Any thread, while the worker
  /// stands.
  bool uses(const Device& device, int generation);

  /// Any thread.
  uint64_t event(Event e) const { return events_[e]; }
  /// Nanoseconds from doorbell to release, and from the first packet's arrival to release.
  const Histogram& doorbell_latency() const { return doorbell_latency_; }
  const Histogram& arrival_latency() const { return arrival_latency_; }
  void reset_statistics();

 private:
  /// State of a job's place. Only open and submitted jobs are in a line. `pinned`: the device may still read the
  /// tables.
  ///
  ///     kFree -> kOpen -> kSubmitted, pinned -> kFree                 done
  ///                                          -> kQuarantine, pinned   late; -> kFree when the device is done with it
  ///                                          -> kQuarantine           the device has failed: for ever
  ///                    -> kSubmitted, not pinned -> kQuarantine       the device had failed before
  enum class State : uint8_t { kFree, kOpen, kSubmitted, kQuarantine };
  /// Packets that wait, each with a number, linked by Packet::next().
  struct Held {
    Packet* first = nullptr;
    Packet* last = nullptr;

    bool empty() const { return first == nullptr; }
    void push_back(Packet* p, uint16_t number) {
      p->set_next(nullptr, number);
      (first ? last->set_next(p, last->tag()) : void(first = p));
      last = p;
    }
    void append(const Held& other) {
      if (other.empty()) return;
      (first ? last->set_next(other.first, last->tag()) : void(first = other.first));
      last = other.last;
    }
    /// Moves packets with the number of the first one to `batch`, as many as there are next to each other and have
    /// room; returns their number.
    uint16_t take(Batch& batch) {
      const uint16_t number = first->tag();
      for (; first && !batch.full() && first->tag() == number; first = first->next()) batch.push_back(first);
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
    int place = 0;  // in the device's lane
    int plan = 0;
    int size = 0;
    int generation = -1;
    bool pinned = false;  // see State
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
  /// The jobs of one plan, in order of submission.
  struct Line {
    std::vector<Job*> ring;
    size_t head = 0, size = 0;
    Job* open = nullptr;     // the last job, while it fills
    uint64_t released = 0;   // all jobs up to this sequence number are released
    uint64_t untracked = 0;  // the last job whose packets' buckets were not recorded
    Held parked;             // packets with the ids of their entries; what arrives later goes behind them
    std::vector<uint64_t> last_of_bucket;

    bool empty() const { return size == 0; }
    Job* front() const { return ring[head]; }
    Job* at(size_t i) const { return ring[(head + i) % ring.size()]; }
    void push(Job* j) { ring[(head + size++) % ring.size()] = j; }
    void pop() {
      head = (head + 1) % ring.size();
      --size;
    }
  };

  void send(const ChainEntry& entry, Packet** packets, int n);
  /// \param buckets the packets' buckets; null: they are not recorded
  void to_device(const ChainEntry& entry, Packet** packets, const uint16_t* buckets, int n);
  /// \param buckets null: not known yet
  void to_cpu(int plan, uint16_t step, Packet** packets, const uint16_t* buckets, int n);
  /// Gets buffers for what a device makes of the slots [first, first + n).
  void provide_outputs(Job& job, int first, int n);
  int append(Job& job, uint16_t step, Packet** packets, const uint16_t* buckets, int n);
  /// A free job for packets of `plan`; null if the plan has all of its places or none is free.
  Job* free_job(int plan);
  Job* open_job(int plan);
  void park(const ChainEntry& entry, Packet** packets, int n);
  bool unpark(int plan);
  static uint16_t bucket_of(const Packet& p) { return static_cast<uint16_t>((flow_bucket(p) >> 7) % kBuckets); }
  void submit(Job& job);
  bool release_done();
  void finish_front(int plan, Lane::State state);
  void release(Job& job);
  /// Gives packets' results of one number to the shaders that they come from.
  static void release_results(const Plan& plan, const uint8_t* results, Packet* const* packets, const uint16_t* codes,
                              const uint16_t* untouched, int n);
  /// Sends packets where their codes say; packets with the same code go together.
  void dispatch_all(const Plan& plan, Packet** slots, uint16_t* codes, int left);
  void dispatch(const Plan& plan, uint16_t exit, Batch& batch);
  /// Runs a job's packets on the CPU, because the device did not process them. They are unchanged.
  void run_again(Job& job);
  void push_held(int plan, Held& held);
  void unpin(Job& job);
  void quarantine(Job& job);
  bool look_at_quarantine();
  /// The first device, from the worker's own on, that has not failed and has places outside quarantine; -1 if none.
  int usable_device() const;
  Lane& lane(const Job& job) { return *lanes_[static_cast<size_t>(job.device)]; }

  const int worker_;
  const int first_device_;
  const std::vector<Plan>& plans_;
  std::vector<std::unique_ptr<Device>>& devices_;
  const std::vector<ChainEntry*>& entries_;
  const OffloadOptions options_;
  std::vector<std::vector<Job>> jobs_;  // by device
  std::vector<Lane*> lanes_;            // by device: this worker's
  /// Late jobs of a device that has not failed.
  struct Quarantine {
    int places = 0;
    int64_t full_since = 0;  // since when, if all places are in quarantine
  };
  std::vector<Quarantine> quarantines_;  // by device
  std::vector<Rows> rows_;               // by plan
  std::vector<Line> lines_;              // by plan
  std::vector<Tuning> tunings_;          // by plan
  uint64_t closed_gates_ = 0;
  int quarantined_ = 0;     // places, on all devices
  bool arrived_ = false;    // packets, since the last poll
  bool releasing_ = false;  // pushing a job's packets: packets that arrive must not release other jobs
  std::array<SingleWriter<uint64_t>, kEvents> events_{};
  Histogram doorbell_latency_, arrival_latency_;
  std::vector<uint64_t> counts_;
};

}  // namespace headrace::offload
