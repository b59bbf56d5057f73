#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Marks IPv4 packets with "congestion experienced" (RFC 3168).
///
///     MarkIPCE([FORCE])
///
/// Input: packets with a network header. Both ECN bits are set, and the header checksum is updated (RFC 1624). Packets
/// that are not ECN-capable (both bits clear) are dropped and counted.
///
/// FORCE true: also marks those. Default false.
///
/// Handlers: `drops` (r) packets that were not ECN-capable.
struct MarkIPCE : Shader<MarkIPCE> {
  static constexpr auto kRegions = regions(ReadWrite{ip4::tos}, ReadWrite{ip4::checksum});
  enum { kNotCapable };
  static constexpr auto kCounters = counters(reason("not ECN-capable"));
  static constexpr uint8_t kCongestionExperienced = 3;

  bool force = false;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers, ShaderElement<MarkIPCE>& element);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint8_t before = p.get(ip4::tos);
    if ((before & kCongestionExperienced) == 0 && !force) {
      p.count(kNotCapable);
      return kDrop;
    }
    const auto after = static_cast<uint8_t>(before | kCongestionExperienced);
    if (after == before) return 0;
    p.set(ip4::tos, after);
    p.set(ip4::checksum, checksum_replace16(p.get(ip4::checksum), before, after));
    return 0;
  }
};

HEADRACE_ELEMENT(MarkIPCE)

}  // namespace headrace
