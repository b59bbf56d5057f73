#pragma once
/// \file
/// Ports of an OpenFlow switch as bits, for both processors. Includes no standard header.

#include <headrace/shader_types.hh>

namespace headrace::openflow {

/// A set of ports by their places: the number - 1; LOCAL has the place behind the last port.
struct PortSet {
  static constexpr uint32_t kPlaces = 256;
  uint32_t words[kPlaces / 32] = {};

  HEADRACE_SHADER bool has(uint32_t place) const { return (words[place % kPlaces / 32] >> place % 32 & 1) != 0; }
  HEADRACE_SHADER void add(uint32_t place) { words[place % kPlaces / 32] |= 1u << place % 32; }
  bool operator==(const PortSet&) const = default;
};

/// Ports that a controller or an administrator has closed.
struct ClosedPorts {
  bool any = false;
  PortSet in;   ///< what comes by them is dropped: PORT_DOWN, NO_RECV
  PortSet out;  ///< what would leave by them is dropped: PORT_DOWN, NO_FWD
  bool operator==(const ClosedPorts&) const = default;
};

}  // namespace headrace::openflow
