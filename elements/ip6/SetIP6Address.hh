#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the IPv6 destination address annotation to one address.
///
///     SetIP6Address(IPADDR)
///
/// Handlers: `addr` (rw).
struct SetIP6Address : Shader<SetIP6Address> {
  static constexpr auto kRegions = regions(Set{anno::dst_ip6});

  Ip6Bytes address{};

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    p.set(anno::dst_ip6, address);
    return 0;
  }
};

HEADRACE_ELEMENT(SetIP6Address)

}  // namespace headrace
