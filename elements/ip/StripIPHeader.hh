#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Removes the IP header and everything before it.
///
///     StripIPHeader
///
/// Input: packets with a network header. The header annotations stay, so UnstripIPHeader can restore the header. A
/// packet that ends before its transport header becomes empty.
struct StripIPHeader : Shader<StripIPHeader> {
  static constexpr auto kRegions = regions(ReadWrite{meta::data}, ReadWrite{meta::length}, Read{ip4::version_ihl});

  void move(Offsets& at) const { at.data += 20; }

  HEADRACE_SHADER Next shade(auto& p) const {
    const int length = static_cast<int>(p.length());
    const int offset = length - p.length_from(Anchor::kTransport);
    if (offset > 0) p.pull(static_cast<uint32_t>(offset < length ? offset : length));
    return 0;
  }
};

HEADRACE_ELEMENT(StripIPHeader)

}  // namespace headrace
