#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Keeps link-level broadcasts and multicasts from being forwarded (RFC 1812, 5.3.4).
///
///     DropBroadcasts
///
/// Output 0: packets whose packet type annotation is neither BROADCAST nor MULTICAST. Output 1 (optional): the others;
/// without it they are dropped and counted. Device sources and HostEtherFilter set the annotation.
///
/// Handlers: `drops` (r) broadcasts and multicasts so far.
struct DropBroadcasts : Shader<DropBroadcasts> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Read{meta::packet_type});
  enum { kBroadcast };
  static constexpr auto kCounters = counters(reason("link broadcast or multicast"));

  void add_handlers(Handlers& handlers, ShaderElementBase& element);

  HEADRACE_SHADER Next shade(auto& p) const {
    // BROADCAST is 1 and MULTICAST is 2.
    const bool drop = static_cast<uint8_t>(p.packet_type() - 1) < 2;
    if (drop) p.count(kBroadcast);
    return drop;
  }
};

HEADRACE_ELEMENT(DropBroadcasts)

}  // namespace headrace
