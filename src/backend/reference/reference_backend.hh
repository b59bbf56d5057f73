#pragma once
/// \file
/// The device that every machine has: threads of this process that speak the protocol of a device's resident kernel.

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/places.hh"
#include "offload/backend.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// "Device memory" is memory of the process that only uploads change, so that stale tables show.
class ReferenceMemory final : public DeviceMemory {
 public:
  /// \param limit bytes that there are; 0: no limit
  explicit ReferenceMemory(size_t limit = 0) : limit_(limit) {}
  uint64_t allocate(size_t bytes) override;
  void release(uint64_t address) override;
  Status send(uint64_t to, const void* from, size_t bytes) override;
  Status finish() override { return {}; }
  size_t free_bytes() const override { return limit_ ? limit_ - used_ : 0; }
  size_t total_bytes() const override { return limit_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  size_t limit_;
  size_t used_ = 0;
  std::map<uint64_t, std::pair<std::unique_ptr<uint8_t, Free>, size_t>> blocks_;
};

/// Its threads poll doorbells, run jobs with the rows where they lie, and answer by done words: beside the workers, in
/// any order, late or never, as the options say. Each thread serves its share of the places, as a block of a kernel
/// does.
class ReferenceBackend final : public Backend {
 public:
  /// \param memory_limit bytes for tables, if not 0 instead of what the options say
  explicit ReferenceBackend(const OffloadOptions& options, size_t memory_limit = 0);
  ~ReferenceBackend() override;

  DeviceMemory& memory() override { return memory_; }
  Status open(const Program& program, const LaneOptions& options, Errors& errors) override;
  Status open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) override;
  bool offers(Run run) const override { return first_lane_[static_cast<size_t>(run)] >= 0; }
  Lane* lane(int worker, Run run) override;
  bool stop() override;
  int deadline_ms() const override { return 1000; }  // its threads may have to wait for a CPU
  std::string describe() const override;

  /// How a row's slots are run; tests put a compiled program in the place of the plans. Call before open().
  using Runner = void (*)(int plan, Slot* slot, const uint8_t* parameters);
  void set_runner(Runner runner) { runner_ = runner; }
  /// Millions of packets a second that it does, of jobs that begin from now on; 0: no limit. Any thread.
  void set_capacity(double mpps) { capacity_.store(mpps, std::memory_order_relaxed); }
  /// Jobs that begin from now on take so many times as long, as on a device that others use, too. Any thread.
  void set_slowness(double times) { slowness_.store(times, std::memory_order_relaxed); }

 private:
  class ReferenceLane;
  /// A job that a thread has seen at a doorbell.
  struct Seen {
    int64_t ready;  // when it is to be done, in ns
    const ReferenceLane* lane;
    int place;  // in the lane
    uint64_t word, parameters;
  };

  void serve(int thread);
  // A device without threads works on the calling one.
  /// Hears the doorbell of a place.
  void hear(int place);
  /// Does the job of a place, if it is time.
  void serve_place(int place);
  /// A job at place `place`, if one of its doorbells has rung since `seen`.
  bool look(int place, uint32_t& seen, Seen& job) const;
  /// False if the job will never be done. Sets when it is to be done.
  bool plan_job(Seen& job);
  void run(const Seen& job);
  /// Reports the first mistake of a shader.
  void blame(const offload::Plan& plan, const Slot& slot);

  ReferenceMemory memory_;
  const ReferenceOptions options_;
  const std::vector<Plan>* plans_ = nullptr;
  Runner runner_ = nullptr;
  std::vector<PlanKind> kinds_;  // of plans
  Places layout_;                // of each lane's places
  size_t lane_bytes_ = 0;
  int jobs_of_lane_ = 0;
  int place_count_ = 0;  // of all lanes, open or not
  /// By kind: where the lanes of workers begin; -1: there are none. Its threads serve all alike.
  std::array<int, kRuns> first_lane_{-1, -1};
  std::vector<std::unique_ptr<ReferenceLane>> lanes_;
  std::unique_ptr<std::atomic<const ReferenceLane*>[]> open_;  // the same for the device's threads
  std::atomic<uint32_t> rings_{0};                             // of all doorbells
  std::atomic<uint64_t> jobs_{0};                              // so far
  std::atomic<double> capacity_{0}, slowness_{1};
  std::atomic<int64_t> busy_until_ns_{0};  // when it has done all jobs so far, and
  std::atomic<int64_t> link_free_ns_{0};   // when the link has carried them
  std::atomic<int64_t> hang_end_ns_{0};    // 0: has not hung yet
  std::atomic<bool> failed_{false}, stop_{false};
  std::vector<std::thread> threads_;
  struct Place {
    uint32_t seen = 0;
    bool waiting = false;
    Seen job{};
  };
  std::vector<Place> without_threads_;  // by place
  std::atomic<bool> blamed_{false};
  mutable std::mutex fault_lock_;
  std::string fault_;
};

}  // namespace headrace::offload
