#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the checksum of IP headers.
///
///     SetIPChecksum
///
/// Input: packets with a network header, or that begin with an IP header. Packets with a truncated header are dropped
/// and counted.
///
/// Handlers: `drops` (r).
struct SetIPChecksum : Shader<SetIPChecksum> {
  static constexpr bool kChecksHeaders = true;
  static constexpr auto kRegions =
      regions(ReadWrite{ip4::whole_header}, ReadWrite{Span<Anchor::kData, 0, 60>{}}, Read{meta::length});
  enum { kBad };
  static constexpr auto kCounters = counters(reason("bad IP header length"));

  void add_handlers(Handlers& handlers, ShaderElementBase& element);

  HEADRACE_SHADER Next shade(auto& p) const {
    const Anchor at = p.has_network_header() ? Anchor::kNetwork : Anchor::kData;
    const int room = p.length_from(at);
    const int length = room > 0 ? (p.load8(at, 0) & 0xf) << 2 : 0;
    if (length < 20 || length > room) [[unlikely]] {
      p.count(kBad);
      return kDrop;
    }
    p.store16(at, 10, 0);
    p.store16(at, 10, checksum_of_sum(checksum_sum(p, at, 0, length)));
    return 0;
  }
};

HEADRACE_ELEMENT(SetIPChecksum)

}  // namespace headrace
