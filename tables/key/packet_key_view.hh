#pragma once
/// \file
/// The header fields of a packet as a row of words, for matching, and the parser that makes it. Read by the host compiler
/// and by NVRTC. Includes no standard header.
///
/// Fields are those of OpenFlow 1.3 (ONF TS-012, section 7.2.3.7). Fields that no packet has together share bits: a match
/// on one of them also matches what it requires, such as the Ethernet type. tables/key/key_fields.hh has the places.

#include "headrace/headers_of.hh"
#include "headrace/ip_protocol.hh"
#include "headrace/shader_types.hh"

namespace headrace {

/// The words of a PacketKey. The first 4 are enough for IPv4 and its ports, the first 12 for all fields of OpenFlow 1.0.
namespace key_word {
inline constexpr uint32_t kIp4Src = 0;  ///< or the sender's address of ARP
inline constexpr uint32_t kIp4Dst = 1;  ///< or the target's address of ARP
inline constexpr uint32_t kPorts = 2;   ///< source and destination, ICMP type and code, or ARP operation and 0
inline constexpr uint32_t kTypes = 3;   ///< Ethernet type, IP protocol, DSCP and ECN
inline constexpr uint32_t kInPort = 4;
inline constexpr uint32_t kMac = 5;        ///< three words: destination, source
inline constexpr uint32_t kVlan = 8;       ///< TCI with bit 12 set if there is a tag; IPv6 extension headers
inline constexpr uint32_t kLabel = 9;      ///< MPLS label, class and bottom of stack; PBB I-SID; IPv6 flow label
inline constexpr uint32_t kMetadata = 10;  ///< two words
inline constexpr uint32_t kTunnelId = 12;  ///< two words
inline constexpr uint32_t kInPhyPort = 14;
inline constexpr uint32_t kIp6Src = 16;     ///< four words
inline constexpr uint32_t kIp6Dst = 20;     ///< four words
inline constexpr uint32_t kNdTarget = 24;   ///< four words
inline constexpr uint32_t kLinkLayer = 28;  ///< three words: SLL and TLL of neighbor discovery, or SHA and THA of ARP
inline constexpr uint32_t kCount = 32;
}  // namespace key_word

/// A packet's fields, each as an integer in host order; absent ones are 0.
struct PacketKey {
  uint32_t w[key_word::kCount];
};

/// What a switch knows of a packet that is not in its bytes.
struct PacketKeyContext {
  uint32_t in_port = 0;
  uint32_t in_phy_port = 0;
  uint64_t metadata = 0;
  uint64_t tunnel_id = 0;
};

/// Bits of IPV6_EXTHDR (ONF TS-012, enum ofp_ipv6exthdr_flags).
namespace ip6_exthdr {
inline constexpr uint32_t kNoNext = 1, kEsp = 2, kAuth = 4, kDest = 8, kFrag = 16, kRouter = 32, kHop = 64,
                          kUnrep = 128, kUnseq = 256;
}  // namespace ip6_exthdr

namespace detail {

template <typename Bytes>
HEADRACE_SHADER uint32_t key_load(const Bytes& p, int32_t at) {
  return p.half(at) << 16 | p.half(at + 2);
}

/// Ports, or type and code, of the header at `at`.
template <typename Bytes>
HEADRACE_SHADER uint32_t transport_word(const Bytes& p, uint32_t protocol, int32_t at, int32_t end) {
  if (protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp)
    return at + 4 <= end ? key_load(p, at) : 0;
  if ((protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmp6) && at + 2 <= end)
    return p.byte(at) << 16 | p.byte(at + 1);
  return 0;
}

template <typename Bytes>
HEADRACE_SHADER void parse_arp(const Bytes& p, int32_t at, int32_t end, PacketKey& key) {
  // Ethernet and IPv4, with addresses of 6 and 4 bytes (RFC 826).
  if (end - at < 28 || p.half(at) != 1 || p.half(at + 2) != 0x0800 || p.half(at + 4) != 0x0604) return;
  key.w[key_word::kPorts] = p.half(at + 6) << 16;
  key.w[key_word::kIp4Src] = key_load(p, at + 14);
  key.w[key_word::kIp4Dst] = key_load(p, at + 24);
  key.w[key_word::kLinkLayer] = key_load(p, at + 8);
  key.w[key_word::kLinkLayer + 1] = p.half(at + 12) << 16 | p.half(at + 18);
  key.w[key_word::kLinkLayer + 2] = key_load(p, at + 20);
}

template <typename Bytes>
HEADRACE_SHADER void parse_ip4(const Bytes& p, int32_t at, int32_t end, PacketKey& key) {
  const TransportPlace place = behind_ip4(p, at, end);
  if (place.version != 4) return;
  key.w[key_word::kTypes] |= place.protocol << 8 | p.byte(at + 1);
  key.w[key_word::kIp4Src] = key_load(p, at + 12);
  key.w[key_word::kIp4Dst] = key_load(p, at + 16);
  if (place.has_header) key.w[key_word::kPorts] = transport_word(p, place.protocol, place.at, place.end);
}

/// The order in which RFC 8200, section 4.1, wants extension headers.
HEADRACE_SHADER uint32_t exthdr_rank(uint32_t flag, bool again) {
  using namespace ip6_exthdr;
  return flag == kHop      ? 1
         : flag == kDest   ? (again ? 6 : 2)
         : flag == kRouter ? 3
         : flag == kFrag   ? 4
         : flag == kAuth   ? 5
         : flag == kEsp    ? 7
                           : 8;
}

template <typename Bytes>
HEADRACE_SHADER void parse_neighbor(const Bytes& p, int32_t at, int32_t end, PacketKey& key) {
  // Neighbor solicitation and advertisement (RFC 4861, sections 4.3 and 4.4).
  if (end - at < 24 || (p.byte(at) != 135 && p.byte(at) != 136) || p.byte(at + 1) != 0) return;
  for (uint32_t i = 0; i < 4; ++i) key.w[key_word::kNdTarget + i] = key_load(p, at + 8 + static_cast<int32_t>(i) * 4);
  for (at += 24; end - at >= 8;) {
    const uint32_t type = p.byte(at);
    const int32_t length = static_cast<int32_t>(p.byte(at + 1)) * 8;
    if (length == 0 || length > end - at) return;
    if (length == 8 && type == 1) {
      key.w[key_word::kLinkLayer] = key_load(p, at + 2);
      key.w[key_word::kLinkLayer + 1] = p.half(at + 6) << 16 | (key.w[key_word::kLinkLayer + 1] & 0xffff);
    } else if (length == 8 && type == 2) {
      key.w[key_word::kLinkLayer + 1] = (key.w[key_word::kLinkLayer + 1] & 0xffff0000) | p.half(at + 2);
      key.w[key_word::kLinkLayer + 2] = key_load(p, at + 4);
    }
    at += length;
  }
}

template <typename Bytes>
HEADRACE_SHADER void parse_ip6(const Bytes& p, int32_t at, int32_t end, PacketKey& key) {
  if (end - at < 40 || p.byte(at) >> 4 != 6) return;
  const uint32_t first = key_load(p, at);
  const int32_t length = static_cast<int32_t>(p.half(at + 4));
  if (length != 0 && at + 40 + length < end) end = at + 40 + length;
  for (uint32_t i = 0; i < 8; ++i) key.w[key_word::kIp6Src + i] = key_load(p, at + 8 + static_cast<int32_t>(i) * 4);
  key.w[key_word::kLabel] = first << 12;
  uint32_t next = p.byte(at + 6), flags = 0, last_rank = 0;
  bool later_fragment = false;
  at += 40;
  for (;;) {
    const uint32_t flag = next == ip_protocol::kHopByHop             ? ip6_exthdr::kHop
                          : next == ip_protocol::kRouting            ? ip6_exthdr::kRouter
                          : next == ip_protocol::kFragment           ? ip6_exthdr::kFrag
                          : next == ip_protocol::kDestinationOptions ? ip6_exthdr::kDest
                          : next == ip_protocol::kAuthentication     ? ip6_exthdr::kAuth
                          : next == ip_protocol::kEsp                ? ip6_exthdr::kEsp
                          : next == 59                               ? ip6_exthdr::kNoNext
                                                                     : 0;
    if (flag == 0 && !is_ip6_extension(next)) break;
    const bool again = (flags & flag) != 0;
    const uint32_t rank = exthdr_rank(flag, again || last_rank > 2);
    if (again && flag != ip6_exthdr::kDest) flags |= ip6_exthdr::kUnrep;
    if (rank < last_rank) flags |= ip6_exthdr::kUnseq;
    flags |= flag;
    last_rank = rank;
    if (flag == ip6_exthdr::kEsp || flag == ip6_exthdr::kNoNext || later_fragment || end - at < 8) break;
    const uint32_t after = p.byte(at);
    if (next == ip_protocol::kFragment) {
      later_fragment = (p.half(at + 2) & 0xfff8) != 0;
      at += 8;
    } else {
      at += next == ip_protocol::kAuthentication ? static_cast<int32_t>(p.byte(at + 1) + 2) * 4
                                                 : static_cast<int32_t>(p.byte(at + 1) + 1) * 8;
    }
    next = after;
    if (later_fragment || at > end) break;
  }
  key.w[key_word::kVlan] |= flags;
  key.w[key_word::kTypes] |= next << 8 | (first >> 20 & 0xff);
  if (later_fragment || at > end) return;
  key.w[key_word::kPorts] = transport_word(p, next, at, end);
  if (next == ip_protocol::kIcmp6) parse_neighbor(p, at, end, key);
}

}  // namespace detail

/// Parses what follows an Ethernet type, from `at` up to `end`. `Bytes` has the interface of PacketBytes. Truncated and
/// invalid headers leave their fields 0.
template <typename Bytes>
HEADRACE_SHADER void parse_network(const Bytes& p, uint32_t type, int32_t at, int32_t end, PacketKey& key) {
  key.w[key_word::kTypes] |= type << 16;
  if (type == 0x0800) {
    detail::parse_ip4(p, at, end, key);
  } else if (type == 0x86dd) {
    detail::parse_ip6(p, at, end, key);
  } else if (type == 0x0806 || type == 0x8035) {
    detail::parse_arp(p, at, end, key);
  } else if ((type == 0x8847 || type == 0x8848 || type == 0x88e7) && end - at >= 4) {
    // MPLS (RFC 3032): 20 bits of label, 3 of class, bottom of stack. PBB (IEEE 802.1ah): flags, then the I-SID.
    const uint32_t word = detail::key_load(p, at);
    key.w[key_word::kLabel] = type == 0x88e7 ? word << 8 : word & 0xffffff00;
  }
}

/// Parses an Ethernet frame, whose first byte is byte 0 of `p` and whose end is `end`. Of several tags the outermost is
/// matched, and the Ethernet type behind the last one (ONF TS-012, table 12); a length field stands for type 0x05ff.
template <typename Bytes>
HEADRACE_SHADER PacketKey parse_frame(const Bytes& p, int32_t end, const PacketKeyContext& context) {
  PacketKey key{};
  key.w[key_word::kInPort] = context.in_port;
  key.w[key_word::kInPhyPort] = context.in_phy_port;
  key.w[key_word::kMetadata] = static_cast<uint32_t>(context.metadata >> 32);
  key.w[key_word::kMetadata + 1] = static_cast<uint32_t>(context.metadata);
  key.w[key_word::kTunnelId] = static_cast<uint32_t>(context.tunnel_id >> 32);
  key.w[key_word::kTunnelId + 1] = static_cast<uint32_t>(context.tunnel_id);
  if (end < 14) return key;
  for (int32_t i = 0; i < 3; ++i) key.w[key_word::kMac + static_cast<uint32_t>(i)] = detail::key_load(p, i * 4);
  uint32_t type = p.half(12);
  if ((type == 0x8100 || type == 0x88a8 || type == 0x9100) && end >= 18)
    key.w[key_word::kVlan] = ((p.half(14) & 0xefff) | 0x1000) << 16;
  const int32_t at = behind_tags(p, 12, end, type);
  parse_network(p, type < 0x600 ? 0x05ff : type, at, end, key);
  return key;
}

/// The first `words` words, at least 8, of the key of what most frames are: TCP or UDP over IPv4, whole, without tags and
/// options; as parse_frame() makes it, and several times as fast. False: it is another one, and `key` has anything.
/// `Bytes` needs `word(at)` only.
template <typename Bytes>
HEADRACE_SHADER bool parse_usual_frame(const Bytes& p, int32_t end, uint32_t in_port, uint32_t words, uint32_t* key) {
  if (end < 38) return false;
  const uint32_t types = p.word(12), length_and_id = p.word(16), fragment = p.word(20);
  const uint32_t protocol = fragment & 0xff;
  if (types >> 8 != 0x080045 || length_and_id >> 16 < 24 || (fragment >> 16 & 0x3fff) != 0 ||
      (protocol != ip_protocol::kTcp && protocol != ip_protocol::kUdp))
    return false;
  key[key_word::kIp4Src] = p.word(26);
  key[key_word::kIp4Dst] = p.word(30);
  key[key_word::kPorts] = p.word(34);
  key[key_word::kTypes] = 0x08000000 | protocol << 8 | (types & 0xff);
  key[key_word::kInPort] = in_port;
  for (uint32_t i = 0; i < 3; ++i) key[key_word::kMac + i] = p.word(static_cast<int32_t>(i) * 4);
  for (uint32_t i = key_word::kVlan; i < words; ++i) key[i] = 0;
  if (words > key_word::kInPhyPort) key[key_word::kInPhyPort] = in_port;
  return true;
}
static_assert(key_word::kInPort == 4 && key_word::kMac == 5 && key_word::kVlan == 8);

/// Parses an IP packet without a link-layer header, from `at` up to `end`.
template <typename Bytes>
HEADRACE_SHADER PacketKey parse_ip(const Bytes& p, int32_t at, int32_t end) {
  PacketKey key{};
  if (at < end) parse_network(p, p.byte(at) >> 4 == 6 ? 0x86dd : 0x0800, at, end, key);
  return key;
}

}  // namespace headrace
