#pragma once
/// \file
/// What jobs need beside packets: the shaders' images and the tables they look into, in a device's memory.

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/worker.hh"
#include "offload/backend.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// Two generations of a parameter block and of all tables. Jobs name the generation that was current when they were
/// submitted; update() fills the other one, once no job uses it, and makes it current. So a job sees one state of all
/// tables, and nobody waits but the thread that changed something.
class Parameters final : private Mirror {
 public:
  static constexpr int kGenerations = 2;

  Parameters(DeviceMemory& memory, const std::vector<Plan>& plans, size_t images, int workers);
  ~Parameters();

  enum class Settled : uint8_t { kNow, kWait, kNever };

  /// Brings the device up to date. `settle(generation)` is called while jobs of an old generation are under way; it
  /// says whether the device is done with them, although their workers have not seen it, or will never be. Errors: no
  /// memory (with figures), a device that does not answer.
  template <typename Settle>
  Status update(Errors& errors, Settle&& settle) {
    const std::lock_guard guard(lock_);
    const int next = 1 - current_.load(std::memory_order_relaxed);
    for (bool waiting = busy(next); waiting; waiting = waiting && busy(next)) {
      const Settled settled = settle(next);
      if (settled == Settled::kNever) return errors.error("the device does not finish its jobs");
      waiting = settled == Settled::kWait;
    }
    return fill(next, errors);
  }

  /// Pins the current generation for a job of `worker` and returns it; leave() when the device is done with the job.
  int enter(int worker);
  void leave(int worker, int generation) {
    std::atomic<uint32_t>& n = users_[worker].of[generation];
    n.store(n.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  uint64_t address(int generation) const { return blocks_[generation]; }

  /// Bytes of device memory in use.
  size_t bytes() const { return bytes_; }
  uint64_t updates() const { return updates_.load(std::memory_order_relaxed); }

 private:
  /// Memory on the device that follows one array on the host.
  struct Copy {
    uint64_t address = 0;
    size_t capacity = 0;
    uint32_t moment = 0;           // of the changes that it has
    std::vector<uint8_t> content;  // where nobody tells what changed
  };
  struct Array {
    std::array<Copy, kGenerations> copies;
    uint64_t last_used = 0;
  };
  struct Key {
    const void* objects;
    const ChangedPages* changes;
    uint64_t id;
    auto operator<=>(const Key&) const = default;
  };
  struct alignas(64) Users {
    std::array<std::atomic<uint32_t>, kGenerations> of{};
  };

  uint64_t place(const void* objects, size_t size, ChangedPages* changes) override;
  uint64_t put(const void* value, size_t size) override;
  Status fill(int generation, Errors& errors);
  bool reserve(Copy& copy, size_t size);
  bool busy(int generation) const;
  void forget_old();

  DeviceMemory& memory_;
  const std::vector<Plan>& plans_;
  const size_t images_;
  size_t bytes_ = 0;
  std::mutex lock_;
  std::map<Key, Array> arrays_;
  std::array<uint64_t, kGenerations> blocks_{};
  std::atomic<int> current_{0};
  std::vector<Users> users_;
  std::atomic<uint64_t> updates_{0};

  // While fill() runs.
  int filling_ = 0;
  std::vector<uint8_t> block_;
  size_t used_ = 0;
  size_t wanted_ = 0;  // bytes that could not be had
  bool failed_ = false;
};

}  // namespace headrace::offload
