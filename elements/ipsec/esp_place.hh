#pragma once
/// \file
/// Where the ESP header of a packet lies. Read by the host compiler and by NVRTC.

#include "headrace/headers_of.hh"
#include "headrace/ip_protocol.hh"

namespace headrace {

/// A word in network order, at any address.
HEADRACE_SHADER uint32_t load_be32(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

/// Bytes of an ESP packet. `length` is 0 if it is none.
struct ESPPlace {
  uint32_t at = 0;      ///< from the packet's data
  uint32_t length = 0;  ///< from there to the end of the IP packet
  uint32_t front = 0;   ///< bytes of the IP header in front, and of that of UDP
};

/// Finds ESP behind the network header, or behind UDP: the ports are not looked at.
HEADRACE_SHADER ESPPlace esp_place(const PacketBytes& packet) {
  ESPPlace esp;
  if (packet.network == PacketBytes::kNone) return esp;
  const TransportPlace place = find_transport(packet);
  if (!place.has_header || place.fragment) return esp;
  const int32_t skip = place.protocol == ip_protocol::kEsp ? 0 : place.protocol == ip_protocol::kUdp ? 8 : -1;
  if (skip < 0 || place.at + skip + 8 > place.end) return esp;
  esp.at = static_cast<uint32_t>(place.at + skip);
  esp.length = static_cast<uint32_t>(place.end) - esp.at;
  esp.front = esp.at - static_cast<uint32_t>(packet.network);
  return esp;
}

}  // namespace headrace
