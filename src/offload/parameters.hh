#pragma once
/// \file
/// What jobs need besides packets, in a device's memory: the shaders' images and the tables they use.

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "headrace/real_clock.hh"
#include "headrace/worker.hh"
#include "offload/backend.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// Generations of a parameter block and of all tables. A job uses the generation that is current when it is submitted.
/// update() brings another generation, which no job uses, up to date and makes it current. So a job sees one state of
/// all tables, however many of them a handler changes, and only the thread that made a change waits. Two generations
/// take turns. The third has memory only while jobs that are held up somewhere use the others.
class Parameters final : private Mirror {
 public:
  static constexpr int kGenerations = 3;

  Parameters(DeviceMemory& memory, const std::vector<Plan>& plans, size_t images, int workers);
  ~Parameters();

  enum class Settled : uint8_t { kNow, kWait, kNever, kFailed };

  /// True if something that shaders see has changed since the last update, or if there are secrets to erase. Says so too
  /// while an update is under way.
  bool behind();
  /// True if a generation that jobs used at the last update may have copies of secrets that have changed since.
  bool stale_secrets() const { return stale_secrets_.load(std::memory_order_relaxed); }

  /// An update under way.
  struct Update {
    int64_t begin = 0;  ///< 0: has not begun
    bool spare = true;  ///< the device may have memory for the third generation
  };
  /// Brings the device up to date if it is behind(), without waiting for jobs: returns nothing if it has to be called
  /// again. `settle(generation)` is called while jobs of old generations are in flight. It tells whether the device has
  /// finished those of this one although their workers have not noticed (kNow), may still finish them (kWait), will
  /// never finish them (kNever), or has failed meanwhile and needs no tables (kFailed). Errors: out of memory (with
  /// figures), kNever.
  template <typename Settle>
  std::optional<Status> go_on(Update& update, Errors& errors, Settle&& settle) {
    const std::lock_guard guard(lock_);
    if (update.begin == 0) {
      const rcu::Epoch now = rcu::now();
      if (!looks_behind()) {
        epochs_[current_.load(std::memory_order_relaxed)].store(now);
        return erase_secrets(errors);
      }
      update.begin = now_ns();
    }
    bool never = true;
    for (int next = 0; next < kGenerations; ++next) {
      if (next == current_.load(std::memory_order_relaxed)) continue;
      if (next == kSpare && blocks_[next].address == 0 &&
          (!update.spare || (!never && now_ns() - update.begin < kPatienceNs)))
        continue;
      const Settled settled = busy(next) ? settle(next) : Settled::kNow;
      if (settled == Settled::kFailed) return Status();
      never = never && settled == Settled::kNever;
      if (settled != Settled::kNow) continue;
      if (next != kSpare) return fill(next, errors);
      if (fill_spare()) return Status();
      update.spare = false;
    }
    if (never) return errors.error("the device does not finish its jobs");
    return std::nullopt;
  }

  /// Pins the current generation for a job of `worker` and returns it. Call leave() when the device is done with the
  /// job.
  int enter(int worker);
  void leave(int worker, int generation) {
    std::atomic<uint32_t>& n = users_[worker].of[generation];
    n.store(n.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  uint64_t address(int generation) const { return blocks_[generation].address; }
  bool is_current(int generation) const { return current_.load() == generation; }
  /// What was unpublished before then is not in a generation; 0: there is no such generation yet. Any thread.
  rcu::Epoch epoch(int generation) const { return epochs_[generation].load(); }
  /// That of the current one.
  rcu::Epoch epoch() const { return epoch(current_.load()); }

  /// Bytes of device memory in use.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t updates() const { return updates_.load(std::memory_order_relaxed); }

 private:
  /// Device memory with a copy of one array of the host.
  struct Copy {
    uint64_t address = 0;
    size_t capacity = 0;
    uint64_t moment = 0;           // of the changes that the copy has
    std::vector<uint8_t> content;  // the last copy, if changes are not recorded
    uint64_t placed = 0;           // by which fill() it was last used
    bool secret = false;
  };
  using Copies = std::array<Copy, kGenerations>;  // of one array
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
  bool looks_behind();
  Status fill(int generation, Errors& errors);
  /// Brings the secrets of generations that no job uses up to date.
  Status erase_secrets(Errors& errors);
  /// False if the memory does not suffice or the device has failed.
  bool fill_spare();
  /// Writes the parameter block of generation `filling_`, at least `size` bytes, to `block_`.
  void write_images(size_t size);
  Status send_changes(Copy& copy, const uint8_t* bytes, size_t size);
  uint64_t allocate(size_t size);
  bool reserve(Copy& copy, size_t size);
  void release(Copy& copy);
  void release_replaced(int generation);
  /// Releases copies that a generation had before it was filled, and the spare generation if nothing uses it.
  void forget_old();
  bool busy(int generation) const;

  static constexpr int kSpare = 2;
  /// How long an update waits for jobs before it makes the spare generation.
  static constexpr int64_t kPatienceNs = 5'000'000;

  DeviceMemory& memory_;
  const std::vector<Plan>& plans_;
  const size_t images_;
  std::atomic<size_t> bytes_{0};
  std::mutex lock_;
  std::map<Key, Copies> arrays_;
  std::array<Copy, kGenerations> blocks_;
  // Memory that was replaced by a larger block, but that jobs of a generation may still read.
  std::array<std::vector<Copy>, kGenerations> replaced_;
  std::atomic<int> current_{0};
  std::vector<Users> users_;
  std::array<std::atomic<rcu::Epoch>, kGenerations> epochs_{};
  std::atomic<uint64_t> updates_{0};
  std::atomic<bool> stale_secrets_{false};
  bool secrets_ = false;  // there are some

  // Used while images are written.
  int filling_ = 0;
  bool comparing_ = false;  // look for changes only
  bool erasing_ = false;    // send changes of secrets only
  bool changed_ = false;    // and there are some
  uint64_t fills_ = 0;
  std::vector<uint8_t> block_;
  size_t used_ = 0;
  size_t wanted_ = 0;  // bytes that could not be allocated
  bool failed_ = false;
};

}  // namespace headrace::offload
