#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Makes packets begin with their network header.
///
///     StripToNetworkHeader
///
/// Input: packets with a network header. Bytes before it are removed; a stripped header is restored.
struct StripToNetworkHeader : Shader<StripToNetworkHeader> {
  static constexpr auto kRegions = regions(ReadWrite{meta::data}, ReadWrite{meta::length}, Read{ip4::version_ihl});
  enum { kNoRoom };
  static constexpr auto kCounters = counters(reason("no room in front"));

  void move(Offsets& at) const { at.data = at.network; }

  HEADRACE_SHADER Next shade(auto& p) const {
    const int offset = static_cast<int>(p.length()) - p.length_from(Anchor::kNetwork);
    const bool good = offset >= 0 ? p.pull(static_cast<uint32_t>(offset)) : p.push(static_cast<uint32_t>(-offset));
    if (good) [[likely]]
      return 0;
    p.count(kNoRoom);
    return kDrop;
  }
};

HEADRACE_ELEMENT(StripToNetworkHeader)

}  // namespace headrace
