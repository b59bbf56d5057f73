#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Marks the position of the IP header.
///
///     MarkIPHeader([OFFSET])
///
/// Sets the network header annotation to OFFSET bytes into the packet, and the transport header annotation behind it by
/// the header's own length field. Nothing else is checked: use CheckIPHeader for that. A packet that ends before OFFSET
/// has no header; it is dropped and counted.
///
/// OFFSET: default 0.
struct MarkIPHeader : Shader<MarkIPHeader> {
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kData, 0, 64>{}}, Read{meta::length}, Write{meta::network_header});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no byte at OFFSET"));

  uint32_t offset = 0;

  Status configure(Args& args);

  void move(Offsets& at) const {
    at.network = at.data + static_cast<int>(offset);
    at.transport = at.network + 20;
  }
  Extent extent(Anchor) const { return {static_cast<int>(offset), static_cast<int>(offset) + 1}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (offset >= p.length()) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    const int at = static_cast<int>(offset);
    p.set_network_header(at, (p.load8(Anchor::kData, at) & 0xf) << 2);
    return 0;
  }
};

HEADRACE_ELEMENT(MarkIPHeader)

}  // namespace headrace
