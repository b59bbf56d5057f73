#pragma once
/// \file
/// Lanes to a CUDA device: through the resident kernel, and by copies and launches.

#include <array>
#include <memory>
#include <vector>

#include "backend/cuda/resident_kernel.hh"
#include "backend/places.hh"
#include "offload/backend.hh"

namespace headrace::cuda {

using offload::Places;
using offload::PlanKind;

/// What both kinds share.
class CudaLane : public offload::PlaceLane {
 public:
  CudaLane(std::shared_ptr<Device> device, const Places& places, int jobs, const std::vector<PlanKind>& kinds)
      : PlaceLane(places, jobs, kinds), device_(std::move(device)) {}

  const Places& places() const { return places_; }

 protected:
  /// Number of polls between checks that the device still works: a check every few milliseconds.
  static constexpr uint32_t kPollsBetweenChecks = 4096;

  std::shared_ptr<Device> device_;
};

class ResidentLane final : public CudaLane {
 public:
  /// By class; null where there are no plans of it.
  using Kernels = std::array<std::unique_ptr<ResidentKernel>, kPlanClasses>;

  ResidentLane(std::shared_ptr<Device> device, const Places& places, int jobs, const std::vector<PlanKind>& kinds,
               const Kernels& kernels)
      : CudaLane(std::move(device), places, jobs, kinds), kernels_(kernels) {}

  bool submit(int job, int plan, int slots, uint64_t parameters) override;
  State poll(int job) override;

 private:
  const Kernels& kernels_;
};

/// What a stream lane needs to know about the program.
struct StreamProgram {
  std::array<CUfunction, kPlanClasses> functions{};
  std::vector<DevicePlan> plans;
  uint32_t parameter_bytes = 0;
  uint32_t block_bytes[kPlanClasses] = {};
  uint32_t counters = 0;      ///< of the plan that has most
  size_t tiles = 1;           ///< of the largest job
  bool write_values = false;  ///< cuStreamWriteValue32 works here
};

class StreamLane final : public CudaLane, public Staying {
 public:
  /// Number of streams shared by a lane's jobs: one copies in while another computes and a third copies out.
  static constexpr int kStreams = 4;
  using Streams = std::array<Stream, kStreams>;

  /// \param there device memory for the same places
  /// \param homes kHomeBytes for each tile of each place, or 0: see Slot::home
  /// \param shared streams for all lanes, which outlive them; null: it has its own
  StreamLane(std::shared_ptr<Device> device, const Places& places, int jobs, const std::vector<PlanKind>& kinds,
             CUdeviceptr there, CUdeviceptr homes, const StreamProgram& program, const Streams* shared)
      : CudaLane(std::move(device), places, jobs, kinds),
        there_(there),
        homes_(homes),
        program_(program),
        shared_(shared),
        counts_before_(static_cast<size_t>(jobs)) {}

  /// Waits for jobs under way, because their memory goes next. When they do not end, the device has failed and all that
  /// they use stays where it is.
  ~StreamLane() override;

  bool open();
  bool submit(int job, int plan, int slots, uint64_t parameters) override;
  State poll(int job) override;
  const uint8_t* rows_out(int job) override { return places_.back(job); }
  void counts(int job, uint64_t* counts, int n) override;
  void pause() override;
  void resume() override {}

 private:
  CUdeviceptr there_, homes_;
  const StreamProgram& program_;
  const Streams* const shared_;
  std::vector<std::vector<uint64_t>> counts_before_;  // by place: the device adds to those of earlier jobs
  Streams own_;
  CUevent reached_[kStreams] = {};  // for pause()

  CUstream stream_of(int job) const { return stream(job % kStreams); }
  CUstream stream(int i) const { return (shared_ != nullptr ? *shared_ : own_)[static_cast<size_t>(i)].get(); }
};

}  // namespace headrace::cuda
