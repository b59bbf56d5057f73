#pragma once
#include "elements/ip6/ip6_header.hh"

namespace headrace {

/// Sets the IPv6 destination address annotation from bytes of the packet.
///
///     GetIP6Address(OFFSET)
///
/// OFFSET: position of the address in the packet; 24 for the destination in an IPv6 header at the beginning. A packet
/// that is too short passes with its annotation unchanged, and is counted.
struct GetIP6Address : Shader<GetIP6Address> {
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kData, 0, 128>{}}, Read{meta::length}, Write{anno::dst_ip6});
  enum { kShort };
  static constexpr auto kCounters = counters(headrace::counter("no address at OFFSET"));

  int32_t offset = 0;

  Status configure(Args& args);

  Extent extent(Anchor) const { return {offset, offset + 16}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (static_cast<int>(p.length()) - 16 < offset) [[unlikely]] {
      p.count(kShort);
      return 0;
    }
    p.set(anno::dst_ip6, ip6::bytes_of(ip6::load_words(p, offset)));
    return 0;
  }
};

HEADRACE_ELEMENT(GetIP6Address)

}  // namespace headrace
