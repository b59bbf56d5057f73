#pragma once
/// \file
/// Counters of entries, groups, buckets, meters and tables by number, each worker's for itself.

#include <atomic>
#include <cstdint>

#include "headrace/worker.hh"

namespace headrace::openflow {

/// What was counted under a number.
struct Count {
  uint64_t packets = 0, bytes = 0;
  int64_t last = 0;  ///< when a packet was counted last, in the time of add(); 0: never

  Count& operator+=(const Count& other) {
    packets += other.packets;
    bytes += other.bytes;
    if (other.last > last) last = other.last;
    return *this;
  }
  bool operator==(const Count&) const = default;
};

/// Packets and bytes by number. Workers add, without a lock and without shared writes; anyone sums.
class EntryCounters {
 public:
  /// Numbers that can be counted.
  static constexpr uint32_t kMost = 1u << 22;

  EntryCounters() = default;
  ~EntryCounters();
  EntryCounters(const EntryCounters&) = delete;
  EntryCounters& operator=(const EntryCounters&) = delete;

  /// Makes room for numbers below `count`. One thread at a time; workers may be counting.
  void reserve(uint32_t count);
  /// Counts packets on the running worker. \param now in nanoseconds, the pipeline's time
  void add(uint32_t number, uint64_t packets, uint64_t bytes, int64_t now) {
    Count& count = threads_.local().parts[number / kPart].load(std::memory_order_acquire)[number % kPart];
    // Atomic for those who sum; one thread writes.
    __atomic_store_n(&count.packets, count.packets + packets, __ATOMIC_RELAXED);
    __atomic_store_n(&count.bytes, count.bytes + bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&count.last, now, __ATOMIC_RELAXED);
  }
  /// Asks for the memory that add() will change.
  void prefetch(uint32_t number) {
    __builtin_prefetch(threads_.local().parts[number / kPart].load(std::memory_order_acquire) + number % kPart, 1);
  }
  Count sum(uint32_t number) const;
  /// Not while a worker may count for the number.
  void clear(uint32_t number);

 private:
  static constexpr uint32_t kPart = 4096;
  struct Parts {
    std::atomic<Count*> parts[kMost / kPart] = {};
  };
  PerThread<Parts> threads_;
  uint32_t reserved_ = 0;
};

}  // namespace headrace::openflow
