#pragma once
/// \file
/// What jobs need besides packets, in a device's memory: the shaders' images and the tables they use.

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/worker.hh"
#include "offload/backend.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// Two generations of a parameter block and of all tables. A job uses the generation that is current when it is
/// submitted. update() fills the other generation, once no job uses it, and makes it current. So a job sees one state
/// of all tables, and only the thread that made a change waits.
class Parameters final : private Mirror {
 public:
  static constexpr int kGenerations = 2;

  Parameters(DeviceMemory& memory, const std::vector<Plan>& plans, size_t images, int workers);
  ~Parameters();

  enum class Settled : uint8_t { kNow, kWait, kNever, kFailed };

  /// Brings the device up to date. `settle(generation)` is called while jobs of an old generation are in flight. It
  /// tells whether the device has finished them although their workers have not noticed (kNow), may still finish them
  /// (kWait), will never finish them (kNever), or has failed meanwhile and needs no tables (kFailed). Errors: out of
  /// memory (with figures), kNever.
  template <typename Settle>
  Status update(Errors& errors, Settle&& settle) {
    const std::lock_guard guard(lock_);
    const int next = 1 - current_.load(std::memory_order_relaxed);
    for (bool waiting = busy(next); waiting; waiting = waiting && busy(next)) {
      const Settled settled = settle(next);
      if (settled == Settled::kNever) return errors.error("the device does not finish its jobs");
      if (settled == Settled::kFailed) return {};
      waiting = settled == Settled::kWait;
    }
    return fill(next, errors);
  }

  /// Pins the current generation for a job of `worker` and returns it. Call leave() when the device is done with the
  /// job.
  int enter(int worker);
  void leave(int worker, int generation) {
    std::atomic<uint32_t>& n = users_[worker].of[generation];
    n.store(n.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  uint64_t address(int generation) const { return blocks_[generation].address; }

  /// Bytes of device memory in use.
  size_t bytes() const { return bytes_; }
  uint64_t updates() const { return updates_.load(std::memory_order_relaxed); }

 private:
  /// Device memory with a copy of one array of the host.
  struct Copy {
    uint64_t address = 0;
    size_t capacity = 0;
    uint64_t moment = 0;           // of the changes that the copy has
    std::vector<uint8_t> content;  // the last copy, if changes are not recorded
    uint64_t placed = 0;           // by which fill() it was last used
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
  struct alignas(128) Users {
    std::array<std::atomic<uint32_t>, kGenerations> of{};
  };

  uint64_t place(const void* objects, size_t size, ChangedPages* changes) override;
  uint64_t put(const void* value, size_t size) override;
  Status fill(int generation, Errors& errors);
  void write_images();
  uint64_t allocate(size_t size);
  bool reserve(Copy& copy, size_t size);
  void release_replaced(int generation);
  bool busy(int generation) const;
  void forget_old();

  DeviceMemory& memory_;
  const std::vector<Plan>& plans_;
  const size_t images_;
  size_t bytes_ = 0;
  std::mutex lock_;
  std::map<Key, Array> arrays_;
  std::array<Copy, kGenerations> blocks_;
  // Memory that was replaced by a larger block, but that jobs of a generation may still read: address and size.
  std::array<std::vector<std::pair<uint64_t, size_t>>, kGenerations> replaced_;
  std::atomic<int> current_{0};
  std::vector<Users> users_;
  std::atomic<uint64_t> updates_{0};

  // Used while fill() runs.
  int filling_ = 0;
  uint64_t fills_ = 0;
  std::vector<uint8_t> block_;
  size_t used_ = 0;
  size_t wanted_ = 0;  // bytes that could not be allocated
  bool failed_ = false;
};

}  // namespace headrace::offload
