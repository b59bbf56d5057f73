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

/// Counts packets and bytes per thread.
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

/// Base of elements that are ports: places where packets enter or leave the router. Every packet that enters by a port
/// leaves by a port, is counted as a drop, ends in a PacketSink, or is still inside.
class DevicePort {
 public:
  enum class Direction { kIn, kOut };
  virtual ~DevicePort() = default;
  /// Whether this port, as configured and connected, moves packets in this direction.
  virtual bool moves(Direction direction) const = 0;
  /// What one thread has moved in this direction.
  virtual PortTotals totals(Direction direction, int thread) const = 0;
  /// Packets that arrived but could not enter the router (no free buffer).
  virtual uint64_t missed() const { return 0; }
  /// Called when the router has stopped: writes out what is held back, so that totals and drops are final.
  virtual void write_out() {}
};

/// Base of elements that end packets because the configuration says so, such as Discard. These packets are not drops.
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
