#pragma once
#include "elements/ip6/ip6_header.hh"

namespace headrace {

template <typename Family>
class RouteTable;
struct Ip6Family;

/// Where packets of a route go. Without a gateway the destination is on the link.
struct Ip6NextHop {
  alignas(8) Ip6Bytes gateway;
  uint32_t has_gateway;
  uint32_t port;
};

/// Looks up IPv6 routes.
///
///     LookupIP6Route(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ... [, keywords FILE, SPREAD])
///
/// Input: packets with an IPv6 destination annotation (CheckIP6Header, GetIP6Address). The longest matching route gives
/// the output; its gateway, if it has one, becomes the destination annotation. A packet without a route is dropped and
/// counted. A gateway of `::0` or `-` is none.
///
/// The table is a Poptrie (Asai, Ohara, SIGCOMM 2015) behind a first level of 24 bits: five memory accesses on average
/// for the routes of the Internet. Routes can change while packets are forwarded; a packet sees the old or the new
/// route.
///
/// FILE (repeatable): a text file of routes, one `ADDR/MASK [GW] [OUT]` a line, plain, .gz, .xz, .bz2 or .zst. Its
/// addresses are numbers: names of AddressInfo are for arguments and handlers.
/// SPREAD: lines without OUT get an output below this number, by a hash of the prefix. Default: all outputs.
///
/// Handlers: `lookup ADDR` (r) output and gateway of an address; `table`, `count` (r); `add`, `set`, `remove` (w) a
/// route; `ctrl` (w) such commands, one per line, applied all or none; `flush` (w) removes every route.
struct LookupIP6Route : Shader<LookupIP6Route> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(ReadWrite{anno::dst_ip6});
  enum { kNoRoute };
  static constexpr auto kCounters = counters(reason("no route"));
  using Owner = RouteTable<Ip6Family>;
  static constexpr bool kKeepsOwner = true;

  Lpm6View table;
  const Ip6NextHop* hops = nullptr;

  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner, Element& element);
  auto note(const Owner& owner) const;
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t index = table.lookup(ip6::key_of(p.get(anno::dst_ip6)));
    if (index == Lpm6View::kMiss) {
      p.count(kNoRoute);
      return kDrop;
    }
    const Ip6NextHop hop = hops[index];
    if (hop.has_gateway) p.set(anno::dst_ip6, hop.gateway);
    return static_cast<Next>(hop.port);
  }

  /// The same with all lookups of a batch under way together: they wait for memory, not for each other.
  void shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events) const;
};

}  // namespace headrace
