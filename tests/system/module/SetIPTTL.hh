#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the time to live of IPv4 packets.
///
///     SetIPTTL(TTL)
///
/// Packets need a network header, as CheckIPHeader and MarkIPHeader mark it. The header checksum is repaired. TTL: 1 to
/// 255.
struct SetIPTTL : Shader<SetIPTTL> {
  static constexpr auto kRegions = regions(ReadWrite{ip4::ttl}, ReadWrite{ip4::checksum});

  uint8_t ttl = 64;
  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    // The TTL is the high byte of its 16-bit word; the protocol beside it stays as it is.
    const uint16_t before = p.get(ip4::ttl) << 8;
    const uint16_t after = ttl << 8;
    p.set(ip4::checksum, checksum_replace16(p.get(ip4::checksum), before, after));
    p.set(ip4::ttl, ttl);
    return 0;
  }
};
HEADRACE_ELEMENT(SetIPTTL)

}  // namespace headrace
