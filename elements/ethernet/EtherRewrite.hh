#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Replaces both addresses of Ethernet packets.
///
///     EtherRewrite(SRC, DST)
///
/// Input: packets with a MAC header. A packet with a truncated header is dropped and counted. The Ethernet type stays
/// as it is.
///
/// SRC, DST: Ethernet addresses.
///
/// Handlers: `src`, `dst` (rw).
struct EtherRewrite : Shader<EtherRewrite> {
  struct AddressPair {
    uint8_t b[12];
  };
  static constexpr Field<Anchor::kMac, 0, AddressPair> both{};
  static constexpr auto kRegions = regions(Write{both}, Read{meta::length});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no Ethernet header"));

  AddressPair addresses{};

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.length_from(Anchor::kMac) < 14) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    p.set(both, addresses);
    return 0;
  }
};

HEADRACE_ELEMENT(EtherRewrite)

}  // namespace headrace
