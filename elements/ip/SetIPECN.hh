#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the ECN bits of IPv4 packets (RFC 3168).
///
///     SetIPECN(ECN)
///
/// Input: packets with a network header. The DSCP stays as it is, and the header checksum is updated (RFC 1624).
///
/// ECN: 0 to 3, or a name: `no` or `-` (not ECN-capable), `ect1` or `ECT(1)`, `ect2` or `ECT(0)`, `ce` (congestion
/// experienced).
///
/// Handlers: `ecn` (rw).
struct SetIPECN : Shader<SetIPECN> {
  static constexpr auto kRegions = regions(ReadWrite{ip4::tos}, ReadWrite{ip4::checksum});

  uint8_t ecn = 0;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint8_t before = p.get(ip4::tos);
    const auto after = static_cast<uint8_t>((before & ~3) | ecn);
    p.set(ip4::tos, after);
    p.set(ip4::checksum, checksum_replace16(p.get(ip4::checksum), before, after));
    return 0;
  }
};

HEADRACE_ELEMENT(SetIPECN)

}  // namespace headrace
