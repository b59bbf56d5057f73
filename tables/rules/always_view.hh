#pragma once
/// \file
/// Which packets have to be looked at on the host although no pattern was found in them. Includes no standard header.

#include <headrace/shader_types.hh>

namespace headrace {

/// A set of the numbers 0 to 255.
struct ByteSetView {
  uint32_t words[8] = {};

  HEADRACE_SHADER bool contains(uint32_t value) const { return (words[value >> 5 & 7] >> (value & 31) & 1) != 0; }
  HEADRACE_SHADER void add(uint32_t value) { words[value >> 5 & 7] |= uint32_t{1} << (value & 31); }
};

/// What rules ask for that are tried without a search. Those that name ports are found by port.
struct AlwaysView {
  static constexpr uint32_t kPortWords = 2048;

  bool any = false;  ///< there are such rules
  bool udp = false;
  bool other = false;      ///< neither TCP nor UDP nor ICMP, and fragments without their header
  ByteSetView tcp_flags;   ///< TCP segments by their flags
  ByteSetView icmp_types;  ///< ICMP and ICMPv6 messages by their type
  /// Bits of ports: TCP's sources, TCP's destinations, UDP's sources, UDP's destinations; or null.
  const uint32_t* ports = nullptr;

  HEADRACE_SHADER bool has_port(uint32_t which, uint32_t port) const {
    return ports && (ports[which * kPortWords + (port >> 5)] >> (port & 31) & 1) != 0;
  }
};

}  // namespace headrace
