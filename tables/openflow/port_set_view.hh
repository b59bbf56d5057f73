#pragma once
/// \file
/// Ports of an OpenFlow switch as bits, for both processors. Includes no standard header.

#include <headrace/shader_types.hh>

namespace headrace::openflow {

/// Ports that a switch can have besides LOCAL.
inline constexpr uint32_t kMostSwitchPorts = 126;
/// The place of a port in sets and counters: its number; 0 for LOCAL.
HEADRACE_SHADER uint32_t port_place(uint32_t number) { return number <= kMostSwitchPorts ? number : 0; }

/// A set of ports by their places.
struct PortSet {
  static constexpr uint32_t kPlaces = 256;
  uint32_t words[kPlaces / 32] = {};

  HEADRACE_SHADER bool has(uint32_t place) const { return (words[place % kPlaces / 32] >> place % 32 & 1) != 0; }
  HEADRACE_SHADER void set(uint32_t place, bool on) {
    uint32_t& word = words[place % kPlaces / 32];
    word = on ? word | 1u << place % 32 : word & ~(1u << place % 32);
  }
  bool operator==(const PortSet&) const = default;
};

/// Ports that a controller or the host has closed.
struct ClosedPorts {
  bool any = false;
  PortSet no_receive;      ///< frames that come are dropped, except those of the spanning tree
  PortSet no_receive_stp;  ///< those of the spanning tree (IEEE 802.1D) are dropped
  PortSet no_forward;      ///< frames that would leave are dropped

  /// Whether a frame that came by a port is dropped for that. \param frame begins with the Ethernet header
  template <typename Frame>
  HEADRACE_SHADER bool keeps_out(const Frame& frame, uint32_t place) const {
    if (!any) return false;
    const bool stp = frame.word(0) == 0x0180c200 && frame.half(4) == 0;
    return (stp ? no_receive_stp : no_receive).has(place);
  }
  HEADRACE_SHADER bool keeps_in(uint32_t place) const { return any && no_forward.has(place); }
  bool operator==(const ClosedPorts&) const = default;
};

}  // namespace headrace::openflow
