#pragma once
/// \file
/// The kernel that stays on a device and polls the doorbells of all lanes.

#include <atomic>
#include <mutex>
#include <vector>

#include "backend/cuda/device.hh"
#include "backend/places.hh"

namespace headrace::cuda {

using offload::Places;

/// The kernel of one class of plans. It is started again when it has left (nothing to do for a while) and a job waits for
/// it, and made to leave around calls that would wait for it. Jobs that were handed over while it was away are found when
/// it starts: a place's doorbell then differs from its done word.
class ResidentKernel final : public Staying {
 public:
  /// \param most_blocks that it may have
  /// \param arguments those that do not depend on lanes
  ResidentKernel(std::shared_ptr<Device> device, CUfunction function, PlanClass plan_class, unsigned most_blocks,
                 unsigned shared_bytes, const ResidentArguments& arguments);
  ~ResidentKernel() override;

  /// Makes its stream and its memory.
  bool open();
  /// Starts it, or starts it again, to poll these places.
  /// \param list where the device finds their addresses
  /// \param places of each lane
  void serve(const std::vector<Places>& lanes, CUdeviceptr list, int places);
  /// The most places that it can poll.
  size_t most_places() const { return size_t{most_blocks_} * kPlacesPerBlock; }
  /// Asks it to leave and waits. If it does not, the device has failed.
  void pause() override;
  void resume() override;

  /// For a worker that waits for a job: starts the kernel again if it has left. Costs one load when it has not.
  void wake() {
    if (__atomic_load_n(left(), __ATOMIC_ACQUIRE) != generation_.load(std::memory_order_acquire)) [[likely]]
      return;
    start_again();
  }
  /// For a worker that has waited long: the device fails if the kernel has ended by an error.
  void check();

  unsigned blocks() const { return blocks_; }
  unsigned teams() const { return arguments_.teams; }
  unsigned places() const { return arguments_.place_count; }
  /// How often it was started.
  uint32_t starts() const { return generation_.load(std::memory_order_relaxed); }

 private:
  uint32_t* left() const { return reinterpret_cast<uint32_t*>(control_.host()); }
  void start_again();
  bool launch();  // with the lock

  std::shared_ptr<Device> device_;
  const CUfunction function_;
  const PlanClass class_;
  const unsigned most_blocks_;
  const unsigned shared_bytes_;
  unsigned blocks_ = 0;
  ResidentArguments arguments_;
  std::vector<Places> lanes_;
  Stream stream_;
  PinnedMemory control_;
  DeviceBuffer activity_, mail_;
  std::mutex lock_;
  int paused_ = 0;
  bool open_ = false;
  std::atomic<uint32_t> generation_{0};
};

}  // namespace headrace::cuda
