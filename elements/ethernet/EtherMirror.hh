#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Exchanges the source and destination of Ethernet packets.
///
///     EtherMirror
///
/// Input: packets that begin with an Ethernet header. Shorter packets are dropped and counted.
struct EtherMirror : Shader<EtherMirror> {
  static constexpr Field<Anchor::kData, 0, EtherBytes> dst{};
  static constexpr Field<Anchor::kData, 6, EtherBytes> src{};
  static constexpr auto kRegions = regions(ReadWrite{dst}, ReadWrite{src}, Read{meta::length});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no Ethernet header"));

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.length() < 12) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    const EtherBytes to = p.get(dst);
    p.set(dst, p.get(src));
    p.set(src, to);
    return 0;
  }
};

HEADRACE_ELEMENT(EtherMirror)

}  // namespace headrace
