#pragma once
/// \file
/// Where the transport header of a packet lies, and where its payload begins and ends. Read by the host compiler and by
/// NVRTC.

#include "headrace/team.hh"

namespace headrace {

/// A packet's bytes, read only, and where its network header lies.
struct PacketBytes {
  static constexpr int32_t kNone = -0x10000;  ///< nobody has marked a network header

  const uint8_t* data = nullptr;  ///< where the packet begins
  uint32_t length = 0;
  int32_t network = kNone;  ///< from `data`; negative when the header was stripped

  HEADRACE_SHADER uint32_t byte(int32_t at) const { return data[at]; }
  HEADRACE_SHADER uint32_t half(int32_t at) const { return uint32_t{data[at]} << 8 | data[at + 1]; }
};

/// Where the transport header of an IP packet begins, or what lies in its place.
struct TransportPlace {
  static constexpr uint32_t kNotIp = 256;  ///< as `protocol`: no IP packet, or shorter than its header

  uint32_t protocol = kNotIp;  ///< behind IPv6's extension headers
  bool has_header = false;     ///< false in later fragments, and where extension headers are cut short
  int32_t at = 0;              ///< from where the packet begins
  int32_t end = 0;             ///< of what IP carries; padding of the link is left out

  /// TCP's, UDP's and SCTP's ports are there, four bytes from `at` on.
  HEADRACE_SHADER bool has_ports() const {
    return has_header && (protocol == 6 || protocol == 17 || protocol == 132) && at + 4 <= end;
  }
};

namespace detail {

/// Bytes from `at` to `end`; none when they end before they begin.
HEADRACE_SHADER PayloadBytes bytes_between(const PacketBytes& p, int32_t at, int32_t end) {
  if (at >= end) return {p.data, 0};
  return {p.data + at, static_cast<uint32_t>(end - at)};
}

/// How long the transport header at `place` is, as its protocol says.
HEADRACE_SHADER int32_t transport_length(const PacketBytes& p, const TransportPlace& place) {
  if (!place.has_header) return 0;
  switch (place.protocol) {
    case 6: {  // TCP, RFC 9293: at least 20 bytes, whatever a broken header says
      const int32_t header = place.at + 13 <= place.end ? static_cast<int32_t>(p.byte(place.at + 12) >> 4) * 4 : 20;
      return header < 20 ? 20 : header;
    }
    case 17:   // UDP
    case 136:  // UDP-Lite
    case 1:    // ICMP
    case 58:   // ICMPv6
      return 8;
    case 132:  // SCTP
      return 12;
    default:
      return 0;
  }
}

HEADRACE_SHADER TransportPlace behind_ip4(const PacketBytes& p, int32_t at, int32_t end) {
  if (end - at < 20) return {TransportPlace::kNotIp, false, at, end};
  const int32_t header = static_cast<int32_t>(p.byte(at) & 15) * 4;
  const int32_t total = static_cast<int32_t>(p.half(at + 2));
  // What a link adds to short packets is no payload. A length of 0: the packet is to be segmented by hardware.
  if (total >= header && total != 0 && at + total < end) end = at + total;
  // Only the first fragment has a transport header.
  const bool first = (p.half(at + 6) & 0x1fff) == 0;
  return {p.byte(at + 9), first, at + (header < 20 ? 20 : header), end};
}

HEADRACE_SHADER TransportPlace behind_ip6(const PacketBytes& p, int32_t at, int32_t end) {
  if (end - at < 40) return {TransportPlace::kNotIp, false, at, end};
  const int32_t length = static_cast<int32_t>(p.half(at + 4));
  if (length != 0 && at + 40 + length < end) end = at + 40 + length;
  uint32_t next = p.byte(at + 6);
  at += 40;
  // Extension headers, RFC 8200 section 4 and the registry of protocol numbers. Each is 8 bytes at least, so this ends.
  while (next == 0 || next == 43 || next == 44 || next == 51 || next == 60 || next == 135 || next == 139 ||
         next == 140) {
    if (end - at < 8) return {next, false, at, end};
    const uint32_t after = p.byte(at);
    const bool later_fragment = next == 44 && (p.half(at + 2) & 0xfff8) != 0;
    if (next == 44) {
      at += 8;
    } else if (next == 51) {
      at += static_cast<int32_t>(p.byte(at + 1) + 2) * 4;
    } else {
      at += static_cast<int32_t>(p.byte(at + 1) + 1) * 8;
    }
    if (later_fragment) return {after, false, at, end};
    next = after;
  }
  return {next, true, at, end};
}

}  // namespace detail

/// Finds the transport header: behind Ethernet with VLAN tags or behind the network header that was marked; IPv4 with
/// options or IPv6 with extension headers.
HEADRACE_SHADER TransportPlace find_transport(const PacketBytes& p) {
  const int32_t end = static_cast<int32_t>(p.length);
  int32_t at = p.network;
  if (at == PacketBytes::kNone) {
    if (end < 14) return {};
    uint32_t type = p.half(12);
    at = 14;
    // 802.1Q, 802.1ad, and what was used before it.
    while ((type == 0x8100 || type == 0x88a8 || type == 0x9100) && at + 4 <= end) {
      type = p.half(at + 2);
      at += 4;
    }
    if (type != 0x0800 && type != 0x86dd) return {TransportPlace::kNotIp, false, at, end};
  }
  if (at >= end) return {};
  const uint32_t version = p.byte(at) >> 4;
  return version == 4   ? detail::behind_ip4(p, at, end)
         : version == 6 ? detail::behind_ip6(p, at, end)
                        : TransportPlace{TransportPlace::kNotIp, false, at, end};
}

/// What a packet carries behind its headers, which find_transport() finds: TCP with options, UDP, ICMP, SCTP. Behind
/// anything else all is payload. Padding of the link is left out. Broken lengths give less or no payload, never bytes
/// outside of the packet (but for a network header that was stripped, which is looked at where it was).
HEADRACE_SHADER PayloadBytes l4_payload(const PacketBytes& p) {
  const TransportPlace place = find_transport(p);
  const PayloadBytes payload = detail::bytes_between(p, place.at + detail::transport_length(p, place), place.end);
  // The marked header may lie in front of where the packet begins now.
  if (payload.length != 0 && payload.data < p.data) {
    const uint32_t stripped = static_cast<uint32_t>(p.data - payload.data);
    return stripped < payload.length ? PayloadBytes{p.data, payload.length - stripped} : PayloadBytes{p.data, 0};
  }
  return payload;
}

}  // namespace headrace
