#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the destination address annotation to one address.
///
///     SetIPAddress(IPADDR [, keyword ANNO])
///
/// ANNO: the four-byte annotation that is set. Default DST_IP.
///
/// Handlers: `addr` (rw).
struct SetIPAddress : Shader<SetIPAddress> {
  static constexpr auto kRegions = regions(Set{anno::any});

  uint32_t address = 0;
  int32_t annotation = anno::dst_ip.kOffset;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  Extent extent(Anchor) const { return {annotation, annotation + 4}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    p.store32(Anchor::kAnno, annotation, address);
    return 0;
  }
};

HEADRACE_ELEMENT(SetIPAddress)

}  // namespace headrace
