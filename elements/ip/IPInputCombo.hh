#pragma once
#include <headrace/shader.hh>

#include "elements/ip/CheckIPHeader.hh"

namespace headrace {

/// Combines the input processing of an IP router in one element.
///
///     IPInputCombo(COLOR [, BADSRC, keyword INTERFACES, BADSRC, GOODDST, CHECKSUM])
///
/// Like Paint(COLOR) -> Strip(14) -> CheckIPHeader(...) -> GetIPAddress(16): input are Ethernet frames with IP packets,
/// output the good packets, painted, without their Ethernet header, with network header and destination address
/// annotation. The others are dropped and counted by reason, without a message.
///
/// COLOR: 0 to 255.
/// BADSRC, INTERFACES, GOODDST, CHECKSUM: as for CheckIPHeader.
///
/// Handlers: `drops` (r) bad packets.
struct IPInputCombo : Shader<IPInputCombo> {
  using Owner = CheckIPHeaderOwner;
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kData, 0, 65535 + 60>{}}, ReadWrite{meta::data}, ReadWrite{meta::length},
              Write{meta::network_header}, Set{anno::dst_ip}, Set{anno::paint});
  static constexpr auto kCounters = CheckIPHeader::kCounters;
  static constexpr int kEthernet = 14;

  CheckIPHeader check;
  uint8_t color = 0;

  Status configure(Args& args, CheckIPHeaderOwner& owner);
  void add_handlers(Handlers& handlers, CheckIPHeaderOwner& owner, ShaderElementBase& element);
  void mirror(Mirror& mirror, const CheckIPHeaderOwner& owner) { check.mirror(mirror, owner); }
  void move(Offsets& at) const {
    at.data += kEthernet;
    check.move(at);
  }
  Extent extent(Anchor anchor) const { return check.extent(anchor); }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (!p.pull(kEthernet)) [[unlikely]] {
      p.count(CheckIPHeader::kTiny);
      return kDrop;
    }
    if (check.shade(p) != 0) return kDrop;
    p.set(anno::paint, color);
    return 0;
  }
};

}  // namespace headrace
