#pragma once
/// \file
/// Which patterns may be of interest in a packet, by its protocol and ports. Includes no standard header.

#include <headrace/payload.hh>

namespace headrace {

/// The groups of a packet's ports. Two numbers and no addresses: a device has few registers left in a search.
struct PortPair {
  uint16_t src = 0;
  uint16_t dst = 0;
};

/// Groups of ports, as Snort has them (M. Roesch, "Snort - lightweight intrusion detection for networks", LISA 1999,
/// and its manual on fast patterns). A group is a bitmap over the patterns: a rule of this pattern may match a packet
/// with this port. Ports with the same patterns share a group.
struct PortGroupsView {
  /// Rows of `by_port`.
  enum : uint32_t { kTcpSource, kTcpDestination, kUdpSource, kUdpDestination, kTables };
  /// Groups of packets whose ports do not count: later fragments and broken packets of TCP and UDP, and other
  /// protocols.
  enum : uint32_t { kTcp, kUdp, kIcmp, kOther, kWithoutPorts };
  static constexpr uint32_t kPorts = 65536;
  /// The group without any patterns.
  static constexpr uint32_t kNothing = 0;

  const uint16_t* by_port = nullptr;  ///< kTables rows of kPorts groups
  const uint32_t* bitmaps = nullptr;  ///< `words` for each group
  uint32_t words = 0;
  uint16_t without_ports[kWithoutPorts] = {};

  HEADRACE_SHADER PortPair of(const PacketBytes& packet) const {
    const TransportPlace place = find_transport(packet);
    switch (place.protocol) {
      case TransportPlace::kNotIp:
        return {};
      case ip_protocol::kTcp:
        return place.has_ports() ? by_ports(kTcpSource, packet, place.at) : group(kTcp);
      case ip_protocol::kUdp:
        return place.has_ports() ? by_ports(kUdpSource, packet, place.at) : group(kUdp);
      case ip_protocol::kIcmp:
      case ip_protocol::kIcmp6:
        return group(kIcmp);
      default:
        return group(kOther);
    }
  }
  /// False: no pattern is admitted.
  HEADRACE_SHADER static bool any(PortPair groups) { return groups.src != kNothing && groups.dst != kNothing; }
  /// Whether some rule of the pattern may match: both groups have it.
  HEADRACE_SHADER bool admits(PortPair groups, uint32_t pattern) const {
    const uint32_t word = pattern >> 5;
    return ((bitmaps[groups.src * words + word] & bitmaps[groups.dst * words + word]) >> (pattern & 31) & 1) != 0;
  }

 private:
  HEADRACE_SHADER PortPair group(uint32_t which) const { return {without_ports[which], without_ports[which]}; }
  HEADRACE_SHADER PortPair by_ports(uint32_t table, const PacketBytes& packet, int32_t at) const {
    return {by_port[table * kPorts + packet.half(at)], by_port[(table + 1) * kPorts + packet.half(at + 2)]};
  }
};

}  // namespace headrace
