#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the differentiated services code point of IPv4 packets (RFC 2474).
///
///     SetIPDSCP(DSCP)
///
/// Input: packets with a network header. The ECN bits stay as they are, and the header checksum is updated (RFC 1624).
///
/// DSCP: 0 to 63.
///
/// Handlers: `dscp` (rw).
struct SetIPDSCP : Shader<SetIPDSCP> {
  static constexpr auto kRegions = regions(ReadWrite{ip4::tos}, ReadWrite{ip4::checksum});

  uint8_t dscp = 0;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint8_t before = p.get(ip4::tos);
    const auto after = static_cast<uint8_t>(dscp << 2 | (before & 3));
    p.set(ip4::tos, after);
    p.set(ip4::checksum, checksum_replace16(p.get(ip4::checksum), before, after));
    return 0;
  }
};

HEADRACE_ELEMENT(SetIPDSCP)

}  // namespace headrace
