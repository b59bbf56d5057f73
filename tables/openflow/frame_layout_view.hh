#pragma once
/// \file
/// Where the headers of an Ethernet frame lie, and which fields it has that can be set. Includes no standard header.
///
/// `Bytes` is a frame whose first byte is byte 0: `byte(at)`, `half(at)` and `word(at)` are its integers.

#include <headrace/shader_types.hh>

#include "headrace/headers_of.hh"
#include "tables/key/packet_key_view.hh"

namespace headrace::openflow {

/// Fields by OXM number (ONF TS-012, enum oxm_ofb_match_fields).
namespace oxm_field {
inline constexpr uint32_t kEthDst = 3, kEthSrc = 4, kEthType = 5, kVlanVid = 6, kVlanPcp = 7, kIpDscp = 8, kIpEcn = 9,
                          kIpProto = 10, kIp4Src = 11, kIp4Dst = 12, kTcpSrc = 13, kTcpDst = 14, kUdpSrc = 15,
                          kUdpDst = 16, kSctpSrc = 17, kSctpDst = 18, kIcmpType = 19, kIcmpCode = 20, kArpOp = 21,
                          kArpSpa = 22, kArpTpa = 23, kArpSha = 24, kArpTha = 25, kIp6Src = 26, kIp6Dst = 27,
                          kIp6Label = 28, kIcmp6Type = 29, kIcmp6Code = 30, kNdTarget = 31, kNdSll = 32, kNdTll = 33,
                          kMplsLabel = 34, kMplsTc = 35, kMplsBos = 36, kPbbIsid = 37, kTunnelId = 38;
}  // namespace oxm_field

/// A set of fields.
using FieldSet = uint64_t;
template <typename... Number>
HEADRACE_SHADER constexpr FieldSet fields_of(Number... number) {
  return ((FieldSet{1} << number) | ...);
}

inline constexpr FieldSet kAllFields = ~FieldSet{0};
/// Those that stays_on_device() names.
inline constexpr FieldSet kDeviceFields =
    fields_of(oxm_field::kEthDst, oxm_field::kEthSrc, oxm_field::kVlanVid, oxm_field::kVlanPcp, oxm_field::kIpDscp,
              oxm_field::kIpEcn, oxm_field::kIp4Src, oxm_field::kIp4Dst, oxm_field::kTcpSrc, oxm_field::kTcpDst,
              oxm_field::kUdpSrc, oxm_field::kUdpDst, oxm_field::kIp6Src, oxm_field::kIp6Dst, oxm_field::kIp6Label);

HEADRACE_SHADER bool is_vlan_type(uint32_t type) { return type == 0x8100 || type == 0x88a8 || type == 0x9100; }
HEADRACE_SHADER bool is_mpls_type(uint32_t type) { return type == 0x8847 || type == 0x8848; }
inline constexpr uint32_t kPbbType = 0x88e7;
/// Bytes of an I-TAG behind its type: TCI and both customer addresses.
inline constexpr int32_t kPbbBytes = 16;

/// Positions in a frame.
struct FrameLayout {
  int32_t end = 0;        ///< of the frame
  int32_t type_at = 12;   ///< of the Ethernet type behind all tags
  int32_t network = 14;   ///< of what follows it
  uint32_t type = 0;      ///< that type
  uint32_t version = 0;   ///< 4 or 6: a whole IP header is there, as parse_network() wants it
  uint32_t protocol = 0;  ///< of IP, behind IPv6's extension headers
  int32_t transport = 0;  ///< 0: none, as in later fragments
  int32_t transport_end = 0;
  bool fragment = false;  ///< the first one or a later one
  bool arp = false;       ///< a whole ARP packet about Ethernet and IPv4
  bool tag = false;       ///< there is a VLAN tag

  HEADRACE_SHADER bool has_transport(int32_t bytes) const {
    return transport != 0 && transport + bytes <= transport_end;
  }
  /// Where the checksum lies that covers ports, or type and code; 0: there is none, or it is of another kind.
  HEADRACE_SHADER int32_t checksum() const {
    if (protocol == ip_protocol::kTcp) return has_transport(18) ? transport + 16 : 0;
    if (protocol == ip_protocol::kUdp) return has_transport(8) ? transport + 6 : 0;
    if (protocol == (version == 4 ? ip_protocol::kIcmp : ip_protocol::kIcmp6))
      return has_transport(4) ? transport + 2 : 0;
    return 0;
  }
  /// That checksum covers addresses and protocol, too.
  HEADRACE_SHADER bool has_pseudo_header() const { return protocol != ip_protocol::kIcmp; }
  HEADRACE_SHADER bool mpls() const { return is_mpls_type(type) && end - network >= 4; }
  HEADRACE_SHADER bool pbb() const { return type == kPbbType && end - network >= 4; }
};

/// Finds the headers of a frame.
template <typename Bytes>
HEADRACE_SHADER FrameLayout locate_headers(const Bytes& p, int32_t end) {
  FrameLayout at;
  at.end = end;
  if (end < 14) return at;
  at.tag = is_vlan_type(p.half(12)) && end >= 18;
  at.network = behind_tags(p, 12, end, at.type);
  at.type_at = at.network - 2;
  TransportPlace place;
  if (at.type == 0x0800) {
    place = detail::behind_ip4(p, at.network, end);
  } else if (at.type == 0x86dd && end - at.network >= 40 && p.byte(at.network) >> 4 == 6) {
    place = detail::behind_ip6(p, at.network, end, true);
  } else if (at.type == 0x0806 || at.type == 0x8035) {
    at.arp = end - at.network >= 28 && p.half(at.network) == 1 && p.half(at.network + 2) == 0x0800 &&
             p.half(at.network + 4) == 0x0604;
  }
  if (place.version == 0) return at;
  at.version = place.version;
  at.protocol = place.protocol;
  at.transport = place.has_header ? place.at : 0;
  at.transport_end = place.end;
  at.fragment = place.fragment;
  return at;
}

/// The options of neighbor discovery that hold link-layer addresses (RFC 4861, section 4.6.1): of each kind the last, as
/// the parser takes them. 0: there is none.
struct NeighborOptions {
  int32_t source = 0, target = 0;
};
template <typename Bytes>
HEADRACE_SHADER NeighborOptions find_neighbor_options(const Bytes& p, const FrameLayout& at) {
  NeighborOptions found;
  int32_t length;
  for (int32_t option = at.transport + 24; at.transport_end - option >= 8; option += length) {
    length = static_cast<int32_t>(p.byte(option + 1)) * 8;
    if (length == 0 || length > at.transport_end - option) break;
    if (length == 8 && p.byte(option) == 1) found.source = option;
    if (length == 8 && p.byte(option) == 2) found.target = option;
  }
  return found;
}

/// The fields of a frame that can be set: those of headers that it has, whole. A tunnel's id is not in the frame.
/// \tparam kPossible the fields that the caller wants to know about
template <FieldSet kPossible, typename Bytes>
HEADRACE_SHADER FieldSet settable_fields(const Bytes& p, const FrameLayout& at) {
  using namespace oxm_field;
  if (at.end < 14) return kPossible & fields_of(kTunnelId);
  FieldSet set = fields_of(kEthDst, kEthSrc, kEthType, kTunnelId);
  if (at.tag) set |= fields_of(kVlanVid, kVlanPcp);
  if (at.arp) set |= fields_of(kArpOp, kArpSpa, kArpTpa, kArpSha, kArpTha);
  if (at.mpls()) set |= fields_of(kMplsLabel, kMplsTc, kMplsBos);
  if (at.pbb()) set |= fields_of(kPbbIsid);
  if (at.version == 0) return set & kPossible;
  set |= fields_of(kIpDscp, kIpEcn, kIpProto);
  set |= at.version == 4 ? fields_of(kIp4Src, kIp4Dst) : fields_of(kIp6Src, kIp6Dst, kIp6Label);
  if (at.has_transport(4)) {
    if (at.protocol == ip_protocol::kTcp) set |= fields_of(kTcpSrc, kTcpDst);
    if (at.protocol == ip_protocol::kUdp) set |= fields_of(kUdpSrc, kUdpDst);
    if (at.protocol == ip_protocol::kSctp) set |= fields_of(kSctpSrc, kSctpDst);
  }
  if (at.version == 4 && at.protocol == ip_protocol::kIcmp && at.has_transport(2))
    set |= fields_of(kIcmpType, kIcmpCode);
  if (at.version == 6 && at.protocol == ip_protocol::kIcmp6 && at.has_transport(2)) {
    set |= fields_of(kIcmp6Type, kIcmp6Code);
    if constexpr ((kPossible & fields_of(kNdTarget, kNdSll, kNdTll)) == 0) return set & kPossible;
    const uint32_t type = p.byte(at.transport);
    if ((type == 135 || type == 136) && p.byte(at.transport + 1) == 0 && at.has_transport(24)) {
      set |= fields_of(kNdTarget);
      const NeighborOptions options = find_neighbor_options(p, at);
      if (type == 135 && options.source != 0) set |= fields_of(kNdSll);
      if (type == 136 && options.target != 0) set |= fields_of(kNdTll);
    }
  }
  return set & kPossible;
}

}  // namespace headrace::openflow
