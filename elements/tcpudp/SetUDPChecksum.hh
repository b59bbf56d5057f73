#pragma once
#include <headrace/shader.hh>

#include "elements/tcpudp/pseudo_header.hh"

namespace headrace {

/// Sets the checksum of UDP packets.
///
///     SetUDPChecksum
///
/// Input: UDP packets with a network header. Output 0: packets with their checksums. Output 1 (optional): fragments,
/// and packets shorter than their length field says, unchanged; without it they are dropped and counted.
struct SetUDPChecksum : Shader<SetUDPChecksum> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions =
      regions(ReadWrite{Span<Anchor::kNetwork, 0, 65535>{}}, Read{ip4::fragment}, Read{meta::length});
  enum { kBad };
  static constexpr auto kCounters = counters(reason("fragment or short packet"));

  HEADRACE_SHADER Next shade(auto& p) const {
    const Segment segment = find_segment(p);
    const int at = segment.header_length;
    const int length = segment.length >= 8 ? p.load16(Anchor::kNetwork, at + 4) : 0;
    if (length < 8 || length > segment.length || (p.get(ip4::fragment) & (ip4::kMoreFragments | ip4::kOffsetMask))) {
      p.count(kBad);
      return 1;
    }
    p.store16(Anchor::kNetwork, at + 6, 0);
    const uint16_t checksum =
        checksum_of_sum(pseudo_header_sum(p, at, length) + checksum_sum(p, Anchor::kNetwork, at, length));
    // Zero would say that there is no checksum (RFC 768).
    p.store16(Anchor::kNetwork, at + 6, checksum ? checksum : 0xffff);
    return 0;
  }
};

HEADRACE_ELEMENT(SetUDPChecksum)

}  // namespace headrace
