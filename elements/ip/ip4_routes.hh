#pragma once
/// \file
/// The host's part of all IPv4 lookup elements.

#include <tuple>
#include <vector>

#include "elements/ip/ip_lookup.hh"
#include "elements/ip/route_table.hh"
#include "tables/lpm4/lpm4.hh"
#include "tables/lpm4/route_file.hh"

namespace headrace {

/// IPv4 for RouteTable.
struct Ip4Family {
  using Address = IpAddress;
  using Prefix = IpPrefix;
  using Key = uint32_t;
  using Table = Lpm4;
  using View = Lpm4View;
  using Hop = IpNextHop;
  using FileRoute = TextRoute;
  /// Most distinct pairs of gateway and output.
  static constexpr size_t kMaxHops = size_t{1} << 24;
  /// Tabs from the beginning of a prefix to its gateway in a list.
  static constexpr size_t kPrefixTabs = 2;
  static constexpr const char* kAddressName = "IP address";

  static Key key(Address address) { return address.host_order(); }
  static Address address(Key key) { return Address::from_host_order(key); }
  static int length(const Prefix& prefix) { return prefix.length(); }
  static std::string unparse(Key prefix, int length) { return Prefix::of(address(prefix), length).unparse(); }
  static Hop no_hop() { return Hop::none(); }
  /// Atomic for readers that find the index while the table is being changed.
  static void write_hop(Hop& hop, Address gateway, int port);
  static Address gateway(const Hop& hop) { return Address::from_host_order(hop.gateway()); }
  static int port(const Hop& hop) { return hop.port(); }
  static uint32_t hash(Key prefix, int length);
  static bool read_file(const std::string& path, std::vector<FileRoute>& lines, Errors& errors);
  static std::tuple<Key, int, Address> parts(const FileRoute& line);
  static std::string describe(const Table& table);
};

extern template class RouteTable<Ip4Family>;

// --- The shader's part on the host

template <typename Self>
Status IPLookupShader<Self>::configure(Args& args, Owner& owner) {
  return owner.configure(args);
}

template <typename Self>
void IPLookupShader<Self>::add_handlers(Handlers& handlers, Owner& owner, Element& element) {
  owner.add_handlers(handlers, element);
}

template <typename Self>
auto IPLookupShader<Self>::note(const Owner& owner) const {
  return owner.note();
}

template <typename Self>
void IPLookupShader<Self>::refresh(const Owner& owner) {
  renew(table, owner.view());
  renew(hops, owner.hops());
}

template <typename Self>
void IPLookupShader<Self>::mirror(Mirror& mirror, const Owner& owner) {
  owner.mirror(mirror, table, hops);
}

}  // namespace headrace
