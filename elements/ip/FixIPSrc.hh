#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Fills in the IP source address of packets that ask for it.
///
///     FixIPSrc(IPADDR)
///
/// A packet with a network header whose Fix IP Source annotation is set gets the source address IPADDR; its checksum is
/// updated (RFC 1624) and the annotation cleared. Others pass unchanged. ICMPError sets the annotation, because the
/// source address of its packets must be that of the outgoing interface, which is known only after the route lookup.
struct FixIPSrc : Shader<FixIPSrc> {
  static constexpr bool kChecksHeaders = true;
  static constexpr auto kRegions = regions(ReadWrite{anno::fix_ip_src}, ReadWrite{ip4::src}, ReadWrite{ip4::checksum});

  uint32_t address = 0;

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.get(anno::fix_ip_src) == 0 || !p.has_network_header()) [[likely]]
      return 0;
    p.set(anno::fix_ip_src, 0);
    p.set(ip4::checksum, checksum_replace32(p.get(ip4::checksum), p.get(ip4::src), address));
    p.set(ip4::src, address);
    return 0;
  }
};

HEADRACE_ELEMENT(FixIPSrc)

}  // namespace headrace
