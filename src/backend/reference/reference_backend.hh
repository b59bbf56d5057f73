#pragma once
/// \file
/// The device that every machine has: jobs are packed and delayed like those of a real one, and run by this process.

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

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
  Status upload(uint64_t to, const void* from, size_t bytes) override;
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

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(const OffloadOptions& options, size_t memory_limit = 0);
  ~ReferenceBackend() override;

  DeviceMemory& memory() override { return memory_; }
  Status open(const Program& program, const LaneOptions& options, Errors& errors) override;
  Lane& lane(int worker) override;
  std::string describe() const override;

  /// How a row's slots are run; tests put a compiled program in the place of the plans.
  using Runner = void (*)(int plan, Slot* slot, const uint8_t* parameters);
  void set_runner(Runner runner) { runner_ = runner; }

 private:
  class ReferenceLane;
  friend class ReferenceLane;
  void run(int plan, int slots, uint8_t* rows, uint64_t* counts, const uint8_t* parameters);
  /// Reports the first mistake of a shader.
  void blame(const offload::Plan& plan, const Slot& slot);

  ReferenceMemory memory_;
  const OffloadOptions options_;
  const std::vector<Plan>* plans_ = nullptr;
  Runner runner_ = nullptr;
  std::atomic<bool> blamed_{false};
  mutable std::mutex fault_lock_;
  std::string fault_;
  std::vector<std::unique_ptr<ReferenceLane>> lanes_;
};

}  // namespace headrace::offload
