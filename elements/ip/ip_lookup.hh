#pragma once
/// \file
/// The shader of all IP lookup elements. What it needs on the host is in ip4_routes.hh.

#include <headrace/shader.hh>

#include "tables/lpm4/lpm4_view.hh"

namespace headrace {

template <typename Family>
class RouteTable;
struct Ip4Family;

/// Where packets of a route go. Gateway in host order, 0: the destination is on the link. Read and written as one word.
struct IpNextHop {
  uint64_t word;

  /// What stands in front of the first next hop, for addresses without a route. It has a gateway, so that who looks for none
  /// finds neither.
  HEADRACE_SHADER static IpNextHop none() { return make(~0u, kDrop); }
  HEADRACE_SHADER static IpNextHop make(uint32_t gateway, uint16_t port) { return {uint64_t{port} << 32 | gateway}; }
  HEADRACE_SHADER uint32_t gateway() const { return static_cast<uint32_t>(word); }
  HEADRACE_SHADER uint16_t port() const { return static_cast<uint16_t>(word >> 32); }
};

/// The shader of every IP lookup element: the destination annotation decides the output and becomes the gateway.
template <typename Self>
struct IPLookupShader : Shader<Self> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(ReadWrite{anno::dst_ip});
  enum { kNoRoute };
  static constexpr auto kCounters = counters(reason("no route"));
  using Owner = RouteTable<Ip4Family>;
  static constexpr bool kKeepsOwner = true;

  Lpm4View table;
  const IpNextHop* hops = nullptr;

  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner, Element& element);
  auto note(const Owner& owner) const;
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);

  HEADRACE_SHADER Next shade(auto& p) const {
    const size_t entry = table.lookup_entry(p.get(anno::dst_ip));
    const IpNextHop hop{load_shared(&(hops + entry - 1)->word)};
    const Next port = hop.port();
    if (hop.gateway()) {
      if (port == kDrop) [[unlikely]] {
        p.count(kNoRoute);
        return kDrop;
      }
      p.set(anno::dst_ip, hop.gateway());
    }
    return port;
  }
  HEADRACE_SHADER void prefetch(const auto& p) const { table.prefetch(p.get(anno::dst_ip)); }
};

}  // namespace headrace
