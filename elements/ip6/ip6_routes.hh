#pragma once
/// \file
/// The host's part of IPv6 lookup elements.

#include <tuple>
#include <vector>

#include "elements/ip/route_table.hh"
#include "elements/ip6/LookupIP6Route.hh"
#include "tables/lpm6/lpm6.hh"
#include "tables/lpm6/route_file6.hh"

namespace headrace {

/// The two words of a next hop's address, for atomic access: a route may be added while packets are forwarded.
using Ip6Word [[gnu::may_alias]] = uint64_t;
inline Ip6Word* ip6_words(Ip6Bytes& address) { return reinterpret_cast<Ip6Word*>(address.b); }
inline const Ip6Word* ip6_words(const Ip6Bytes& address) { return reinterpret_cast<const Ip6Word*>(address.b); }

/// IPv6 for RouteTable.
struct Ip6Family {
  using Address = Ip6Address;
  using Prefix = Ip6Prefix;
  using Key = Lpm6Key;
  using Table = Lpm6;
  using View = Lpm6View;
  using Hop = Ip6NextHop;
  using FileRoute = TextRoute6;
  static constexpr size_t kMaxHops = size_t{1} << 22;
  static constexpr size_t kPrefixTabs = 3;
  static constexpr const char* kAddressName = "IPv6 address";

  static Key key(const Address& address);
  static Address address(const Key& key);
  static int length(const Prefix& prefix) { return prefix.length; }
  static std::string unparse(const Key& prefix, int length) { return Prefix{address(prefix), length}.unparse(); }
  static Hop no_hop() { return {}; }
  static void write_hop(Hop& hop, const Address& gateway, int port);
  static Address gateway(const Hop& hop) { return hop.has_gateway ? Address::from_bytes(hop.gateway.b) : Address(); }
  static int port(const Hop& hop) { return static_cast<int>(hop.port); }
  static uint32_t hash(const Key& prefix, int length);
  static bool read_file(const std::string& path, std::vector<FileRoute>& lines, Errors& errors);
  static std::tuple<Key, int, Address> parts(const FileRoute& line);
  static std::string describe(const Table& table);
};

extern template class RouteTable<Ip6Family>;

}  // namespace headrace
