#pragma once
#include <headrace/shader.hh>

namespace headrace {

struct RouterAddresses;

/// Combines the output processing of an IP router in one element.
///
///     IPOutputCombo(COLOR, IPADDR, MTU)
///
/// Like DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) -> DecIPTTL -> CheckLength(MTU),
/// whose pages explain more. Input: IP packets with a network header. Output 0: packets for the link. Output 1: copies
/// of packets whose paint is COLOR, that is, that leave by the interface where they came in. Output 2: packets with a
/// bad IP option. Output 3: packets whose TTL was 0 or 1. Output 4: packets longer than MTU, for IPFragmenter. Link
/// broadcasts and multicasts are dropped and counted, as are packets for those of outputs 2 to 4 that are not
/// connected.
///
/// COLOR: 0 to 255.
/// IPADDR: the address of the interface.
/// MTU: in bytes, of IP packets.
struct IPOutputCombo : Shader<IPOutputCombo> {
  using Owner = RouterAddresses;
  static constexpr Ports kPorts{"1/1-5"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions =
      regions(Read{meta::packet_type}, Read{meta::length}, Read{anno::paint}, ReadWrite{anno::fix_ip_src},
              Read{ip4::version_ihl}, ReadWrite{ip4::ttl}, ReadWrite{ip4::checksum}, ReadWrite{ip4::src});
  enum { kBroadcast, kBadHeader, kBadOption, kExpired, kLong, kNoCopy, kEvents };
  static constexpr auto kCounters =
      counters(reason("link broadcast or multicast"), reason("bad IP header length"), reason("bad IP option"),
               reason("ttl expired"), reason("longer than MTU"), headrace::counter("no buffer for the copy"));
  enum Output { kToLink, kCopies, kToParameterProblem, kToExpired, kToFragmenter };

  uint32_t address = 0;
  uint32_t mtu = 0;
  uint8_t color = 0;

  Status configure(Args& args, RouterAddresses& owner);
  Next escape(Packet*& p, Emitter& emit, RouterAddresses& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    // BROADCAST is 1 and MULTICAST is 2.
    if (static_cast<uint8_t>(p.packet_type() - 1) < 2) {
      p.count(kBroadcast);
      return kDrop;
    }
    // Copies and options are for the host.
    if (p.get(anno::paint) == color || (p.get(ip4::version_ihl) & 0xf) > 5) return kEscape;
    return finish(p);
  }

 private:
  /// The part behind the options.
  HEADRACE_SHADER Next finish(auto& p) const {
    const uint8_t ttl = p.get(ip4::ttl);
    uint16_t checksum = p.get(ip4::checksum);
    if (p.get(anno::fix_ip_src) != 0) {
      checksum = checksum_replace32(checksum, p.get(ip4::src), address);
      p.set(anno::fix_ip_src, 0);
      p.set(ip4::src, address);
      p.set(ip4::checksum, checksum);
    }
    if (ttl <= 1) {
      p.count(kExpired);
      return kToExpired;
    }
    p.set(ip4::ttl, ttl - 1);
    p.set(ip4::checksum,
          checksum_replace16(checksum, static_cast<uint16_t>(ttl << 8), static_cast<uint16_t>((ttl - 1) << 8)));
    if (p.length() <= mtu) return kToLink;
    p.count(kLong);
    return kToFragmenter;
  }
};

}  // namespace headrace
