#pragma once
/// \file
/// Where the headers of a packet lie: one walk over Ethernet, VLAN tags, IPv4, and IPv6 with its extension headers, for
/// all code that needs it. Read by the host compiler and by NVRTC.

#include "headrace/ip_protocol.hh"
#include "headrace/shader_types.hh"

namespace headrace {

/// A packet's bytes, read only, and where its network header lies.
struct PacketBytes {
  static constexpr int32_t kNone = -0x10000;  ///< no network header is marked

  const uint8_t* data = nullptr;  ///< where the packet begins
  uint32_t length = 0;
  int32_t network = kNone;  ///< from `data`; negative when the header was stripped

  HEADRACE_SHADER uint32_t byte(int32_t at) const { return data[at]; }
  HEADRACE_SHADER uint32_t half(int32_t at) const { return uint32_t{data[at]} << 8 | data[at + 1]; }
};

/// Where the transport header of an IP packet begins, or what is in its place. Positions are relative to the packet's
/// start.
struct TransportPlace {
  static constexpr uint32_t kNotIp = 256;  ///< as `protocol`: not IP, or its header is truncated or invalid

  uint32_t protocol = kNotIp;   ///< after IPv6's extension headers
  bool has_header = false;      ///< false in later fragments, and if extension headers are truncated
  int32_t at = 0;               ///< if the packet is not IP: after Ethernet and its tags
  int32_t end = 0;              ///< end of what IP carries, without padding of the link
  uint32_t version = 0;         ///< 4 or 6; 0 if it is not IP
  int32_t network = 0;          ///< where the IP header begins
  bool fragment = false;        ///< the packet is a fragment, the first or a later one
  int32_t fragment_header = 0;  ///< where IPv6's fragment header begins; 0 if there is none
  int32_t routing_header = 0;   ///< the same of IPv6's last routing header

  /// True if there are ports (TCP, UDP, SCTP), in the four bytes from `at` on.
  HEADRACE_SHADER bool has_ports() const {
    return has_header && at + 4 <= end &&
           (protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp);
  }
};

HEADRACE_SHADER bool is_ip6_extension(uint32_t protocol) {
  using namespace ip_protocol;
  return protocol == kHopByHop || protocol == kRouting || protocol == kFragment || protocol == kAuthentication ||
         protocol == kDestinationOptions || protocol == kMobility || protocol == kHostIdentity || protocol == kShim6;
}

/// Skips VLAN tags (802.1Q, 802.1ad, and the older 0x9100) from the Ethernet type at `at` on; `end` is the end of the
/// packet. Returns the position after the last type, and that type in `type`. `Bytes` has the interface of PacketBytes.
template <typename Bytes>
HEADRACE_SHADER int32_t behind_tags(const Bytes& p, int32_t at, int32_t end, uint32_t& type) {
  type = p.half(at);
  at += 2;
  while ((type == 0x8100 || type == 0x88a8 || type == 0x9100) && at + 4 <= end) {
    type = p.half(at + 2);
    at += 4;
  }
  return at;
}

namespace detail {

template <typename Bytes>
HEADRACE_SHADER TransportPlace behind_ip4(const Bytes& p, int32_t at, int32_t end) {
  TransportPlace place;
  place.at = at;
  place.end = end;
  if (end - at < 20) return place;
  const int32_t header = static_cast<int32_t>(p.byte(at) & 15) * 4;
  if (header < 20 || header > end - at) return place;
  const int32_t total = static_cast<int32_t>(p.half(at + 2));
  // Padding that the link adds to short packets is not payload. A length of 0 means that hardware is to segment the
  // packet.
  if (total >= header && at + total < end) place.end = at + total;
  const uint32_t fragment = p.half(at + 6);
  place.protocol = p.byte(at + 9);
  place.has_header = (fragment & 0x1fff) == 0;
  place.at = at + header;
  place.version = 4;
  place.network = at;
  place.fragment = (fragment & 0x3fff) != 0;
  return place;
}

template <typename Bytes>
HEADRACE_SHADER TransportPlace behind_ip6(const Bytes& p, int32_t at, int32_t end, bool extensions) {
  TransportPlace place;
  place.at = at;
  place.end = end;
  if (end - at < 40) return place;
  const int32_t length = static_cast<int32_t>(p.half(at + 4));
  if (length != 0 && at + 40 + length < end) place.end = end = at + 40 + length;
  place.version = 6;
  place.network = at;
  uint32_t next = p.byte(at + 6);
  at += 40;
  // Every extension header has at least 8 bytes, so the loop ends.
  bool later_fragment = false;
  while (is_ip6_extension(next) && !later_fragment) {
    if (!extensions || end - at < 8) break;
    const uint32_t after = p.byte(at);
    if (next == ip_protocol::kFragment) {
      const uint32_t fragment = p.half(at + 2);
      place.fragment_header = at;
      place.fragment = (fragment & 0xfff9) != 0;
      later_fragment = (fragment & 0xfff8) != 0;
      at += 8;
    } else if (next == ip_protocol::kAuthentication) {
      at += static_cast<int32_t>(p.byte(at + 1) + 2) * 4;
    } else {
      if (next == ip_protocol::kRouting) place.routing_header = at;
      at += static_cast<int32_t>(p.byte(at + 1) + 1) * 8;
    }
    next = after;
  }
  place.protocol = next;
  place.has_header = !later_fragment && !is_ip6_extension(next) && at <= end;
  place.at = at;
  return place;
}

/// Whether an IP packet could begin at `at`: version and lengths are plausible.
HEADRACE_SHADER bool could_be_ip(const PacketBytes& p, int32_t at) {
  const int32_t left = static_cast<int32_t>(p.length) - at;
  if (left < 20) return false;
  const uint32_t first = p.byte(at);
  if (first >> 4 == 4) {
    const int32_t total = static_cast<int32_t>(p.half(at + 2));
    return (first & 15) >= 5 && total >= 20 && total <= left;
  }
  return first >> 4 == 6 && left >= 40 && static_cast<int32_t>(p.half(at + 4)) + 40 <= left;
}

HEADRACE_SHADER bool has_right_ip4_checksum(const PacketBytes& p, int32_t at) {
  const int32_t header = static_cast<int32_t>(p.byte(at) & 15) * 4;
  if (at + header > static_cast<int32_t>(p.length)) return false;
  uint32_t sum = 0;
  for (int32_t i = 0; i < header; i += 2) sum += p.half(at + i);
  return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/// Whether a packet without marked headers begins with IP. If it begins with Ethernet instead, `type` is the Ethernet
/// type and `at` is where IP would begin.
HEADRACE_SHADER bool begins_with_ip(const PacketBytes& p, int32_t at, uint32_t type) {
  if (!could_be_ip(p, 0)) return false;
  const bool arp = type == 0x0806;
  const bool ethernet = arp || (at < static_cast<int32_t>(p.length) &&
                                ((type == 0x0800 && p.byte(at) >> 4 == 4) || (type == 0x86dd && p.byte(at) >> 4 == 6)));
  // Both are possible: the destination address of a frame may look like the beginning of an IP header, and the source
  // address of an IP packet like an Ethernet type.
  return !ethernet || (p.byte(0) >> 4 == 4 ? has_right_ip4_checksum(p, 0) : !arp && !could_be_ip(p, at));
}

}  // namespace detail

/// Finds the transport header of an IP packet whose header begins at `at` and that ends at or before `end`. `Bytes` has
/// the interface of PacketBytes. If `extensions` is false, nothing after the IPv6 header is read: an extension header
/// is then reported as the protocol, and no transport header is found.
template <typename Bytes>
HEADRACE_SHADER TransportPlace behind_ip(const Bytes& p, int32_t at, int32_t end, bool extensions = true) {
  TransportPlace none;
  none.at = at;
  none.end = end;
  if (at >= end) return none;
  const uint32_t version = p.byte(at) >> 4;
  return version == 4   ? detail::behind_ip4(p, at, end)
         : version == 6 ? detail::behind_ip6(p, at, end, extensions)
                        : none;
}

/// Finds the transport header of an Ethernet frame.
HEADRACE_SHADER TransportPlace find_transport_in_frame(const PacketBytes& p) {
  TransportPlace none;
  const int32_t end = static_cast<int32_t>(p.length);
  if (end < 14) return none;
  uint32_t type;
  none.at = behind_tags(p, 12, end, type);
  none.end = end;
  return type == 0x0800 || type == 0x86dd ? behind_ip(p, none.at, end) : none;
}

/// Finds the transport header: after the network header if one is marked, else after Ethernet with VLAN tags, or in a
/// packet that begins with IP. Handles IPv4 options and IPv6 extension headers.
HEADRACE_SHADER TransportPlace find_transport(const PacketBytes& p) {
  const int32_t end = static_cast<int32_t>(p.length);
  if (p.network != PacketBytes::kNone) return behind_ip(p, p.network, end);
  if (end < 14) return {};
  uint32_t type;
  const int32_t at = behind_tags(p, 12, end, type);
  return detail::begins_with_ip(p, at, type) ? behind_ip(p, 0, end) : find_transport_in_frame(p);
}

/// What identifies a flow: addresses, and ports or ESP's security parameters index. Fragments have addresses only,
/// since later fragments contain no ports.
struct FlowKey {
  const uint8_t* addresses = nullptr;  ///< source, then destination, in network order; null if it is not IP
  uint32_t address_bytes = 0;          ///< of both: 8 or 32
  const uint8_t* ports = nullptr;      ///< four bytes; null if there are none
};

HEADRACE_SHADER FlowKey flow_key(const PacketBytes& p, const TransportPlace& place) {
  if (place.protocol == TransportPlace::kNotIp) return {};
  const bool spi = place.has_header && place.protocol == ip_protocol::kEsp && place.at + 4 <= place.end;
  const uint8_t* const ports = !place.fragment && (place.has_ports() || spi) ? p.data + place.at : nullptr;
  return place.version == 4 ? FlowKey{p.data + place.network + 12, 8, ports}
                            : FlowKey{p.data + place.network + 8, 32, ports};
}

}  // namespace headrace
