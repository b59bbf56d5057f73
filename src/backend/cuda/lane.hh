#pragma once
/// \file
/// Lanes to a CUDA device: through the resident kernel, and by copies and launches.

#include <vector>

#include "backend/cuda/resident_kernel.hh"
#include "offload/backend.hh"

namespace headrace::cuda {

/// Job places in pinned memory; one after the other, see headrace/device/jobs.hh for what is in each.
struct Places {
  uint8_t* host = nullptr;
  CUdeviceptr address = 0;
  size_t stride = 0;
  uint32_t rows_at = 0;

  Doorbell& bell(int i) const { return *reinterpret_cast<Doorbell*>(at(i)); }
  uint32_t* done(int i) const { return reinterpret_cast<uint32_t*>(at(i) + kDoneAt); }
  uint8_t* counts(int i) const { return at(i) + kCountsAt; }
  uint8_t* rows(int i) const { return at(i) + rows_at; }
  uint8_t* at(int i) const { return host + static_cast<size_t>(i) * stride; }
};

/// What both kinds share. A place's rows come back to where they were.
class CudaLane : public offload::Lane {
 public:
  CudaLane(std::shared_ptr<Device> device, const Places& places, int jobs)
      : device_(std::move(device)), places_(places), jobs_(static_cast<size_t>(jobs)) {}

  uint8_t* rows_in(int job) override { return places_.rows(job); }
  const uint8_t* rows_out(int job) override { return places_.rows(job); }
  void counts(int job, uint64_t* counts, int n) override;

 protected:
  struct Job {
    uint32_t sequence = 0;  // of the last job handed over here
    uint32_t polls = 0;     // for it
  };
  /// Number of polls between checks that the device still works: a check every few milliseconds.
  static constexpr uint32_t kPollsBetweenChecks = 4096;

  bool done(int job) const {
    return __atomic_load_n(places_.done(job), __ATOMIC_ACQUIRE) == jobs_[static_cast<size_t>(job)].sequence;
  }
  /// Fills the doorbell for the next job, without ringing: the word `job` is the caller's to store.
  uint64_t next(int job, int plan, int slots, uint64_t parameters);

  std::shared_ptr<Device> device_;
  const Places places_;
  std::vector<Job> jobs_;
};

class ResidentLane final : public CudaLane {
 public:
  ResidentLane(std::shared_ptr<Device> device, const Places& places, int jobs, ResidentKernel& kernel)
      : CudaLane(std::move(device), places, jobs), kernel_(kernel) {}

  bool submit(int job, int plan, int slots, uint64_t parameters) override;
  State poll(int job) override;

 private:
  ResidentKernel& kernel_;
};

/// What a stream lane needs to know about the program.
struct StreamProgram {
  CUfunction function = nullptr;
  std::vector<DevicePlan> plans;
  uint32_t parameter_bytes = 0;
  uint32_t stage_bytes = 0;   ///< room for payloads in a block's shared memory
  uint32_t counters = 0;      ///< most of any plan
  bool write_values = false;  ///< cuStreamWriteValue32 works here
};

class StreamLane final : public CudaLane, public Staying {
 public:
  /// Number of streams shared by a lane's jobs: one copies in while another computes and a third copies out.
  static constexpr int kStreams = 4;

  /// `there` is device memory for the same places.
  StreamLane(std::shared_ptr<Device> device, const Places& places, int jobs, CUdeviceptr there,
             const StreamProgram& program)
      : CudaLane(std::move(device), places, jobs), there_(there), program_(program) {}

  /// Waits for jobs under way, because their memory goes next. When they do not end, the device has failed and all that
  /// they use stays where it is.
  ~StreamLane() override;

  bool open();
  bool submit(int job, int plan, int slots, uint64_t parameters) override;
  State poll(int job) override;
  void pause() override;
  void resume() override {}

 private:
  CUdeviceptr there_;
  const StreamProgram& program_;
  Stream streams_[kStreams];
  CUevent reached_[kStreams] = {};  // for pause()
};

}  // namespace headrace::cuda
