#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the destination address annotation from bytes of the packet.
///
///     GetIPAddress(OFFSET [, ANNO])
///     GetIPAddress([ANNO,] IP src|dst)
///
/// OFFSET: position of the address in the packet; 16 for the destination in an IP header at the beginning. A packet
/// that is too short passes with its annotation unchanged, and is counted.
/// IP: takes the address from the marked IP header. A packet without one is dropped and counted.
/// ANNO: the four-byte annotation that is set. Default DST_IP.
struct GetIPAddress : Shader<GetIPAddress> {
  static constexpr bool kChecksHeaders = true;
  static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 64>{}}, Read{meta::length}, Read{ip4::src},
                                           Read{ip4::dst}, ReadWrite{anno::any});
  enum { kShort, kNoHeader };
  static constexpr auto kCounters = counters(headrace::counter("no address at OFFSET"), reason("no IP header"));

  Anchor anchor = Anchor::kData;
  int32_t offset = 0;
  int32_t annotation = anno::dst_ip.kOffset;

  Status configure(Args& args);

  Extent extent(Anchor a) const {
    const int first = a == Anchor::kAnno ? annotation : offset;
    return {first, first + 4};
  }

  HEADRACE_SHADER Next shade(auto& p) const {
    const int room = p.length_from(anchor);
    if (room - 4 < offset) [[unlikely]] {
      if (anchor == Anchor::kNetwork) {
        p.count(kNoHeader);
        return kDrop;
      }
      p.count(kShort);
      return 0;
    }
    p.store32(Anchor::kAnno, annotation, p.load32(anchor, offset));
    return 0;
  }
};

HEADRACE_ELEMENT(GetIPAddress)

}  // namespace headrace
