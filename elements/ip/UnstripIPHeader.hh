#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Restores the IP header that StripIPHeader removed.
///
///     UnstripIPHeader
///
/// Input: packets with a network header. A packet that still has its IP header passes unchanged.
struct UnstripIPHeader : Shader<UnstripIPHeader> {
  static constexpr auto kRegions = regions(ReadWrite{meta::data}, ReadWrite{meta::length}, Read{ip4::version_ihl});
  enum { kNoRoom };
  static constexpr auto kCounters = counters(reason("no room in front"));

  void move(Offsets& at) const { at.data = at.network; }

  HEADRACE_SHADER Next shade(auto& p) const {
    const int stripped = p.length_from(Anchor::kNetwork) - static_cast<int>(p.length());
    if (stripped <= 0 || p.push(static_cast<uint32_t>(stripped))) return 0;
    p.count(kNoRoom);
    return kDrop;
  }
};

HEADRACE_ELEMENT(UnstripIPHeader)

}  // namespace headrace
