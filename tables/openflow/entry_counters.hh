#pragma once
/// \file
/// What an OpenFlow switch counts of entries, groups, buckets, meters and tables.

#include <cstdint>

#include "tables/memory/entry_counters.hh"

namespace headrace::openflow {

/// What was counted under a number. Does not lie across cache lines.
struct alignas(32) Count {
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

class EntryCounters : public headrace::EntryCounters<Count> {
 public:
  /// Counts packets on the running worker. \param now in nanoseconds, the pipeline's time
  void add(uint32_t number, uint64_t packets, uint64_t bytes, int64_t now) { add(mine()[number], packets, bytes, now); }
  /// The same for one who has found the count of the running worker.
  static void add(Count& count, uint64_t packets, uint64_t bytes, int64_t now) {
    set(count.packets, count.packets + packets);
    set(count.bytes, count.bytes + bytes);
    set(count.last, now);
  }
};

}  // namespace headrace::openflow
