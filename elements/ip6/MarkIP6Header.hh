#pragma once
#include "elements/ip6/ip6_header.hh"

namespace headrace {

/// Marks the position of the IPv6 header.
///
///     MarkIP6Header([OFFSET])
///
/// Sets the network header annotation to OFFSET bytes into the packet, and the transport header annotation behind its
/// extension headers as CheckIP6Header does. Nothing is checked. A packet that ends before OFFSET has no header; it is
/// dropped and counted.
///
/// OFFSET: default 0.
struct MarkIP6Header : Shader<MarkIP6Header> {
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kData, 0, 128>{}}, Read{meta::length}, Write{meta::network_header});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no byte at OFFSET"));

  int32_t offset = 0;

  Status configure(Args& args);

  void move(Offsets& at) const {
    at.network = at.data + offset;
    at.transport = at.network + ip6::kHeaderLength;
  }
  Extent extent(Anchor) const { return {offset, offset + 8}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    const int end = static_cast<int>(p.length());
    if (offset >= end) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    int header = ip6::kHeaderLength;
    if (offset + header <= end) header = ip6::header_length(p, offset, end, p.load8(Anchor::kData, offset + 6));
    p.set_network_header(offset, header);
    return 0;
  }
};

HEADRACE_ELEMENT(MarkIP6Header)

}  // namespace headrace
