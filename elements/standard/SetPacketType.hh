#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the packet type annotation.
///
///     SetPacketType(TYPE)
///
/// TYPE: HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING, LOOPBACK or FASTROUTE, in any case.
struct SetPacketType : Shader<SetPacketType> {
  static constexpr auto kRegions = regions(Write{meta::packet_type});

  uint8_t type = 0;

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    p.set_packet_type(static_cast<PacketType>(type));
    return 0;
  }
};

}  // namespace headrace
