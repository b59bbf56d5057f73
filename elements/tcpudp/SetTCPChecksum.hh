#pragma once
#include <headrace/shader.hh>

#include "elements/tcpudp/pseudo_header.hh"

namespace headrace {

/// Sets the checksum of TCP packets.
///
///     SetTCPChecksum([FIXOFF])
///
/// Input: TCP packets with a network header. Packets without a TCP header, or shorter than their IP header says, are
/// dropped and counted.
///
/// FIXOFF true: corrects a data offset that points into the header or beyond the packet first. Default false.
struct SetTCPChecksum : Shader<SetTCPChecksum> {
  static constexpr auto kRegions =
      regions(ReadWrite{Span<Anchor::kNetwork, 0, 65535>{}}, Read{ip4::fragment}, Read{meta::length});
  enum { kBad };
  static constexpr auto kCounters = counters(reason("bad lengths"));

  bool fix_offset = false;

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    const Segment segment = find_segment(p);
    const int at = segment.header_length;
    const int length = at ? p.load16(Anchor::kNetwork, 2) - at : 0;
    if (length < 20 || length > segment.length) {
      p.count(kBad);
      return kDrop;
    }
    if (fix_offset) {
      const uint8_t old = p.load8(Anchor::kNetwork, at + 12);
      const int header = old >> 4 << 2;
      const bool fragment = p.get(ip4::fragment) & (ip4::kMoreFragments | ip4::kOffsetMask);
      if (header < 20)
        p.store8(Anchor::kNetwork, at + 12, static_cast<uint8_t>(5 << 4 | (old & 0xf)));
      else if (header > length && !fragment)
        p.store8(Anchor::kNetwork, at + 12, static_cast<uint8_t>(length >> 2 << 4 | (old & 0xf)));
    }
    p.store16(Anchor::kNetwork, at + 16, 0);
    p.store16(Anchor::kNetwork, at + 16,
              checksum_of_sum(pseudo_header_sum(p, at, length) + checksum_sum(p, Anchor::kNetwork, at, length)));
    return 0;
  }
};

HEADRACE_ELEMENT(SetTCPChecksum)

}  // namespace headrace
