#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Exchanges the source and destination of IPv4 packets.
///
///     IPMirror([DST_ANNO])
///
/// Input: packets with a network header; those shorter than an IP header are dropped and counted. Exchanges the
/// addresses, in TCP and UDP packets also the ports, and in TCP packets also the sequence and acknowledgment numbers.
/// Later fragments have no ports. The checksums remain valid.
///
/// DST_ANNO false: leaves the destination address annotation as it is. Default true: it is set to the new destination.
struct IPMirror : Shader<IPMirror> {
  // Fragments may have no transport header.
  static constexpr bool kChecksHeaders = true;
  static constexpr Field<Anchor::kTransport, 4, uint32_t> sequence{};
  static constexpr Field<Anchor::kTransport, 8, uint32_t> acknowledgment{};
  static constexpr auto kRegions =
      regions(ReadWrite{ip4::src}, ReadWrite{ip4::dst}, Read{ip4::protocol}, Read{ip4::fragment},
              ReadWrite{udp::src_port}, ReadWrite{udp::dst_port}, ReadWrite{sequence}, ReadWrite{acknowledgment},
              Write{anno::dst_ip}, Read{meta::length});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no IP header"));

  bool annotate = true;

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.length_from(Anchor::kNetwork) < 20) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    const uint32_t source = p.get(ip4::src);
    p.set(ip4::src, p.get(ip4::dst));
    p.set(ip4::dst, source);
    if (annotate) p.set(anno::dst_ip, source);

    const uint8_t protocol = p.get(ip4::protocol);
    const int room = p.length_from(Anchor::kTransport);
    if ((protocol != ip_protocol::kTcp && protocol != ip_protocol::kUdp) ||
        (p.get(ip4::fragment) & ip4::kOffsetMask) != 0 || room < 8)
      return 0;
    const uint16_t port = p.get(udp::src_port);
    p.set(udp::src_port, p.get(udp::dst_port));
    p.set(udp::dst_port, port);
    if (protocol == ip_protocol::kTcp && room >= 12) {
      const uint32_t number = p.get(sequence);
      p.set(sequence, p.get(acknowledgment));
      p.set(acknowledgment, number);
    }
    return 0;
  }
};

HEADRACE_ELEMENT(IPMirror)

}  // namespace headrace
