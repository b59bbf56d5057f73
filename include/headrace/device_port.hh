#pragma once
/// \file
/// What the command line counts: packets that enter or leave the router by a device port.

#include <cstdint>

namespace headrace {

/// Totals of a port since its counters were last reset.
struct PortTotals {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

/// An element that is also one of this kind is a device port: a place where packets enter or leave the router.
class DevicePort {
 public:
  enum class Direction { kIn, kOut };
  virtual ~DevicePort() = default;
  virtual Direction direction() const = 0;
  /// Packets moved by one thread.
  virtual PortTotals totals(int thread) const = 0;
  /// Packets that arrived but did not get into the router (no buffer left).
  virtual uint64_t missed() const { return 0; }
};

}  // namespace headrace
