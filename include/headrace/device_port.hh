#pragma once
/// \file
/// What the command line counts: packets that enter or leave the router.

#include <cstdint>

#include "headrace/worker.hh"

namespace headrace {

/// Totals of a port since its counters were last reset.
struct PortTotals {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

/// Counts packets and bytes by thread.
class PortCounter {
 public:
  void add(uint64_t packets, uint64_t bytes) {
    uint64_t* counters = counters_.local();
    counters[kPackets] += packets;
    counters[kBytes] += bytes;
  }
  PortTotals of_thread(int thread) const {
    return {counters_.of_thread(thread, kPackets), counters_.of_thread(thread, kBytes)};
  }
  PortTotals sum() const { return {counters_.sum(kPackets), counters_.sum(kBytes)}; }
  void reset() { counters_.reset(); }

 private:
  enum { kPackets, kBytes, kCounters };
  ThreadCounters counters_{kCounters};
};

/// An element that is also one of this kind is a port: a place where packets enter or leave the router. All packets that
/// enter by ports leave by ports, are counted as drops, end in a PacketSink, or are inside.
class DevicePort {
 public:
  enum class Direction { kIn, kOut };
  virtual ~DevicePort() = default;
  /// Whether this port, as it is configured and connected, moves packets in a direction.
  virtual bool moves(Direction direction) const = 0;
  /// Packets moved in a direction by one thread.
  virtual PortTotals totals(Direction direction, int thread) const = 0;
  /// Packets that arrived but did not get into the router (no buffer left).
  virtual uint64_t missed() const { return 0; }
  /// The router has stopped: writes out what is held back, so that totals and drops are final.
  virtual void write_out() {}
};

/// An element that is also one of this kind ends packets because the configuration says so, as Discard does. These are
/// no drops.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// Packets that ended here since the counter was last reset.
  uint64_t discarded() const { return discarded_.sum(0); }

 protected:
  ThreadCounters discarded_{1};
};

/// A port in one direction with a counter of its own.
class OneWayPort : public DevicePort {
 public:
  bool moves(Direction direction) const override { return direction == direction_; }
  PortTotals totals(Direction, int thread) const override { return moved_.of_thread(thread); }

 protected:
  explicit OneWayPort(Direction direction) : direction_(direction) {}
  PortCounter moved_;

 private:
  const Direction direction_;
};

}  // namespace headrace
