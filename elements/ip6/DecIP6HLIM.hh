#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Decrements the hop limit of IPv6 packets.
///
///     DecIP6HLIM
///
/// Input: IPv6 packets with a network header. Output 0: live packets, with the hop limit decremented. Output 1
/// (optional): packets whose hop limit was 0 or 1, unchanged; without it they are dropped and counted.
///
/// Handlers: `drops` (r) expired packets.
struct DecIP6HLIM : Shader<DecIP6HLIM> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(ReadWrite{ip6::hop_limit});
  enum { kExpired };
  static constexpr auto kCounters = counters(reason("hop limit expired"));

  void add_handlers(Handlers& handlers, ShaderElementBase& element);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint8_t left = p.get(ip6::hop_limit);
    if (left <= 1) {
      p.count(kExpired);
      return 1;
    }
    p.set(ip6::hop_limit, static_cast<uint8_t>(left - 1));
    return 0;
  }
};

HEADRACE_ELEMENT(DecIP6HLIM)

}  // namespace headrace
