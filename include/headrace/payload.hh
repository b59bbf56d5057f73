#pragma once
/// \file
/// Where the payload of a packet begins and ends. Read by the host compiler and by NVRTC.

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

namespace detail {

/// Bytes from `at` to `end`; none when they end before they begin.
HEADRACE_SHADER PayloadBytes bytes_between(const PacketBytes& p, int32_t at, int32_t end) {
  if (at >= end) return {p.data, 0};
  return {p.data + at, static_cast<uint32_t>(end - at)};
}

/// The payload behind the transport header at `at`, as the protocol says where that ends.
HEADRACE_SHADER PayloadBytes behind_transport(const PacketBytes& p, uint32_t protocol, int32_t at, int32_t end) {
  int32_t header = 0;
  switch (protocol) {
    case 6:  // TCP, RFC 9293: at least 20 bytes, whatever a broken header says
      header = at + 13 <= end ? static_cast<int32_t>(p.byte(at + 12) >> 4) * 4 : 20;
      if (header < 20) header = 20;
      break;
    case 17:   // UDP
    case 136:  // UDP-Lite
    case 1:    // ICMP
    case 58:   // ICMPv6
      header = 8;
      break;
    case 132:  // SCTP
      header = 12;
      break;
    default:
      break;
  }
  return bytes_between(p, at + header, end);
}

HEADRACE_SHADER PayloadBytes behind_ip4(const PacketBytes& p, int32_t at, int32_t end) {
  if (end - at < 20) return bytes_between(p, at, end);
  const int32_t header = static_cast<int32_t>(p.byte(at) & 15) * 4;
  const int32_t total = static_cast<int32_t>(p.half(at + 2));
  // What a link adds to short packets is no payload. A length of 0: the packet is to be segmented by hardware.
  if (total >= header && total != 0 && at + total < end) end = at + total;
  const int32_t behind = at + (header < 20 ? 20 : header);
  // Only the first fragment has a transport header.
  if ((p.half(at + 6) & 0x1fff) != 0) return bytes_between(p, behind, end);
  return behind_transport(p, p.byte(at + 9), behind, end);
}

HEADRACE_SHADER PayloadBytes behind_ip6(const PacketBytes& p, int32_t at, int32_t end) {
  if (end - at < 40) return bytes_between(p, at, end);
  const int32_t length = static_cast<int32_t>(p.half(at + 4));
  if (length != 0 && at + 40 + length < end) end = at + 40 + length;
  uint32_t next = p.byte(at + 6);
  at += 40;
  // Extension headers, RFC 8200 section 4 and the registry of protocol numbers. Each is 8 bytes at least, so this ends.
  while (next == 0 || next == 43 || next == 44 || next == 51 || next == 60 || next == 135 || next == 139 ||
         next == 140) {
    if (end - at < 8) return bytes_between(p, at, end);
    const uint32_t after = p.byte(at);
    const bool later_fragment = next == 44 && (p.half(at + 2) & 0xfff8) != 0;
    if (next == 44) {
      at += 8;
    } else if (next == 51) {
      at += static_cast<int32_t>(p.byte(at + 1) + 2) * 4;
    } else {
      at += static_cast<int32_t>(p.byte(at + 1) + 1) * 8;
    }
    if (later_fragment) return bytes_between(p, at, end);
    next = after;
  }
  return behind_transport(p, next, at, end);
}

}  // namespace detail

/// What a packet carries behind its headers: Ethernet with VLAN tags, or the network header that was marked; IPv4 with
/// options or IPv6 with extension headers; TCP with options, UDP, ICMP, SCTP. Behind anything else all is payload.
/// Padding of the link is left out. Broken lengths give less or no payload, never bytes outside of the packet (but for
/// a network header that was stripped, which is looked at where it was).
HEADRACE_SHADER PayloadBytes l4_payload(const PacketBytes& p) {
  const int32_t end = static_cast<int32_t>(p.length);
  int32_t at = p.network;
  if (at == PacketBytes::kNone) {
    if (end < 14) return {p.data, 0};
    uint32_t type = p.half(12);
    at = 14;
    // 802.1Q, 802.1ad, and what was used before it.
    while ((type == 0x8100 || type == 0x88a8 || type == 0x9100) && at + 4 <= end) {
      type = p.half(at + 2);
      at += 4;
    }
    if (type != 0x0800 && type != 0x86dd) return detail::bytes_between(p, at, end);
  }
  if (at >= end) return {p.data, 0};
  const uint32_t version = p.byte(at) >> 4;
  PayloadBytes payload = version == 4   ? detail::behind_ip4(p, at, end)
                         : version == 6 ? detail::behind_ip6(p, at, end)
                                        : detail::bytes_between(p, at, end);
  // The marked header may lie in front of where the packet begins now.
  if (payload.length != 0 && payload.data < p.data) {
    const uint32_t stripped = static_cast<uint32_t>(p.data - payload.data);
    payload = stripped < payload.length ? PayloadBytes{p.data, payload.length - stripped} : PayloadBytes{p.data, 0};
  }
  return payload;
}

}  // namespace headrace
