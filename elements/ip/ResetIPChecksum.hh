#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the checksum of IPv4 headers, and of TCP or UDP.
///
///     ResetIPChecksum([L4])
///
/// Input: packets with a network header. In FastClick this element leaves checksums to a DPDK device; here it computes
/// them, so it works with every device. Packets with a truncated header, and with L4 packets with inconsistent lengths,
/// are dropped and counted. The transport checksum of fragments is not changed.
///
/// L4 true: also sets the checksum of TCP and UDP. Default false.
///
/// Handlers: `drops` (r).
struct ResetIPChecksum : Shader<ResetIPChecksum> {
  static constexpr auto kRegions = regions(ReadWrite{ip4::whole_header}, Read{ip4::protocol}, Read{meta::length});
  enum { kBad };
  static constexpr auto kCounters = counters(reason("bad lengths"));

  bool transport = false;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers, ShaderElementBase& element);
  Next escape(Packet*& p, Emitter& emit) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    const int room = p.length_from(Anchor::kNetwork);
    const int length = room > 0 ? (p.load8(Anchor::kNetwork, 0) & 0xf) << 2 : 0;
    if (length < 20 || length > room) [[unlikely]] {
      p.count(kBad);
      return kDrop;
    }
    if (transport && (p.get(ip4::protocol) == ip_protocol::kTcp || p.get(ip4::protocol) == ip_protocol::kUdp))
      return kEscape;
    // What the checksum field adds is taken off again.
    const uint64_t sum =
        checksum_sum(p, Anchor::kNetwork, 0, length) + (0xffff - checksum_word(p.load16(Anchor::kNetwork, 10)));
    p.store16(Anchor::kNetwork, 10, checksum_of_sum(sum));
    return 0;
  }
};

HEADRACE_ELEMENT(ResetIPChecksum)

}  // namespace headrace
