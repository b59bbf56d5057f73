#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Writes an IP address into packets.
///
///     StoreIPAddress(OFFSET)
///     StoreIPAddress(ADDR, OFFSET)
///
/// Output 0: packets into which the destination address annotation, or ADDR, was written. Without ADDR a packet whose
/// annotation is 0.0.0.0 passes unchanged. Output 1 (optional): packets too short, or without an IP header where one is
/// needed, unchanged; without it they are dropped and counted.
///
/// OFFSET: where the address goes; `src` or `dst` for that field of the IP header. Then the IP checksum, and the TCP or
/// UDP checksum if that header is present, are updated (RFC 1624). With a number, no checksum is updated.
struct StoreIPAddress : Shader<StoreIPAddress> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr bool kChecksHeaders = true;
  static constexpr Field<Anchor::kTransport, 16, uint16_t> tcp_checksum{};
  static constexpr auto kRegions =
      regions(ReadWrite{Span<Anchor::kData, 0, 64>{}}, Read{meta::length}, Read{anno::dst_ip}, ReadWrite{ip4::src},
              ReadWrite{ip4::dst}, ReadWrite{ip4::checksum}, Read{ip4::protocol}, Read{ip4::fragment},
              ReadWrite{udp::checksum}, ReadWrite{tcp_checksum});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no room for the address"));
  enum class Where : uint8_t { kOffset, kSource, kDestination };

  uint32_t address = 0;
  bool from_annotation = true;
  Where where = Where::kOffset;
  int32_t offset = 0;

  Status configure(Args& args);

  Extent extent(Anchor) const { return {offset, offset + 4}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t a = from_annotation ? p.get(anno::dst_ip) : address;
    if (from_annotation && a == 0) return 0;
    const bool in_header = where != Where::kOffset;
    if (in_header ? p.length_from(Anchor::kNetwork) < 20 || p.network_header_length() < 20
                  : static_cast<int>(p.length()) - 4 < offset) {
      p.count(kShort);
      return 1;
    }
    if (!in_header)
      p.store32(Anchor::kData, offset, a);
    else if (where == Where::kSource)
      replace(p, ip4::src, a);
    else
      replace(p, ip4::dst, a);
    return 0;
  }

 private:
  HEADRACE_SHADER static void replace(auto& p, auto field, uint32_t a) {
    const uint32_t old = p.get(field);
    p.set(field, a);
    p.set(ip4::checksum, checksum_replace32(p.get(ip4::checksum), old, a));
    if (p.get(ip4::fragment) & ip4::kOffsetMask) return;
    const int room = p.length_from(Anchor::kTransport);
    if (p.get(ip4::protocol) == ip_protocol::kTcp && room >= 20) {
      p.set(tcp_checksum, checksum_replace32(p.get(tcp_checksum), old, a));
    } else if (p.get(ip4::protocol) == ip_protocol::kUdp && room >= 8 && p.get(udp::checksum) != 0) {
      // Zero would say that there is no checksum (RFC 768).
      const uint16_t sum = checksum_replace32(p.get(udp::checksum), old, a);
      p.set(udp::checksum, sum ? sum : 0xffff);
    }
  }
};

HEADRACE_ELEMENT(StoreIPAddress)

}  // namespace headrace
