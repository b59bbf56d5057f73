#pragma once
/// \file
/// What an OpenFlow switch counts of entries, groups, buckets, meters and tables.

#include <atomic>
#include <cstdint>

#include "tables/memory/entry_counters.hh"

namespace headrace::openflow {

/// What was counted under a number. Four of them share a cache line: a worker's counts of many entries compete with the
/// packets under way for its caches.
struct alignas(16) Count {
  uint64_t packets = 0, bytes = 0;

  Count& operator+=(const Count& other) {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
  bool operator==(const Count&) const = default;
};

/// Counts by number; and, once somebody wants to know, when a packet was counted last.
class EntryCounters : public headrace::EntryCounters<Count> {
  struct LastUse {
    int64_t time = 0;

    LastUse& operator+=(const LastUse& other) {
      if (other.time > time) time = other.time;
      return *this;
    }
  };
  using LastUses = headrace::EntryCounters<LastUse>;

 public:
  /// Makes room for numbers below `count`. One thread at a time; workers may be counting. Throws std::bad_alloc.
  void reserve(uint32_t count) {
    headrace::EntryCounters<Count>::reserve(count);
    if (keeps_times()) times_.reserve(count);
  }
  /// From here on times are kept, of all numbers. One thread at a time; workers may be counting. Throws std::bad_alloc.
  void keep_times() {
    if (keeps_times()) return;
    times_.reserve(reserved());
    keeps_times_.store(true, std::memory_order_release);
  }
  bool keeps_times() const { return keeps_times_.load(std::memory_order_acquire); }

  /// Counts packets on the running worker. \param now in nanoseconds, the pipeline's time; not used unless times are kept
  void add(uint32_t number, uint64_t packets, uint64_t bytes, int64_t now) {
    add(mine()[number], packets, bytes);
    if (keeps_times()) times().set(number, now);
  }
  /// The same for one who has found the count of the running worker, without the time.
  static void add(Count& count, uint64_t packets, uint64_t bytes) {
    set(count.packets, count.packets + packets);
    set(count.bytes, count.bytes + bytes);
  }
  /// When the running worker has counted, by number, if keeps_times().
  class Times {
   public:
    void prefetch(uint32_t number) const { __builtin_prefetch(&mine_[number], 1); }
    void set(uint32_t number, int64_t now) const { LastUses::set(mine_[number].time, now); }

   private:
    friend EntryCounters;
    explicit Times(LastUses::Mine mine) : mine_(mine) {}

    LastUses::Mine mine_;
  };
  Times times() { return Times(times_.mine()); }
  /// When a packet was counted last under a number; 0: never, or before times were kept.
  int64_t last(uint32_t number) const { return keeps_times() ? times_.sum(number).time : 0; }
  /// Not while a worker may count for the number.
  void clear(uint32_t number) {
    headrace::EntryCounters<Count>::clear(number);
    if (keeps_times()) times_.clear(number);
  }

 private:
  LastUses times_;
  std::atomic<bool> keeps_times_{false};
};

}  // namespace headrace::openflow
