#pragma once
/// \file
/// Lanes to a CUDA device: through the resident kernel, and by copies and launches.

#include <vector>

#include "backend/cuda/resident_kernel.hh"
#include "backend/places.hh"
#include "offload/backend.hh"

namespace headrace::cuda {

using offload::Places;

/// What both kinds share.
class CudaLane : public offload::PlaceLane {
 public:
  CudaLane(std::shared_ptr<Device> device, const Places& places, int jobs)
      : PlaceLane(places, jobs), device_(std::move(device)) {}

 protected:
  /// Number of polls between checks that the device still works: a check every few milliseconds.
  static constexpr uint32_t kPollsBetweenChecks = 4096;

  std::shared_ptr<Device> device_;
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
