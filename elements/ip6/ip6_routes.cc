#include "elements/ip6/ip6_routes.hh"

#include <array>
#include <bit>

#include "elements/ip/route_table_impl.hh"

namespace headrace {

Lpm6Key Ip6Family::key(const Address& address) { return ip6::key_of(std::bit_cast<Ip6Bytes>(address.bytes())); }

Ip6Address Ip6Family::address(const Key& key) {
  Ip6Bytes bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.b[i] = static_cast<uint8_t>(key.high >> (56 - 8 * i));
    bytes.b[8 + i] = static_cast<uint8_t>(key.low >> (56 - 8 * i));
  }
  return Address::from_bytes(bytes.b);
}

void Ip6Family::write_hop(Hop& hop, const Address& gateway, int port) {
  const auto halves = std::bit_cast<std::array<uint64_t, 2>>(gateway.bytes());
  for (size_t i = 0; i < halves.size(); ++i) __atomic_store_n(ip6_words(hop.gateway) + i, halves[i], __ATOMIC_RELAXED);
  __atomic_store_n(&hop.has_gateway, gateway ? 1u : 0u, __ATOMIC_RELAXED);
  __atomic_store_n(&hop.port, static_cast<uint32_t>(port), __ATOMIC_RELAXED);
}

/// Spreads prefixes evenly over outputs (the finaliser of MurmurHash3, A. Appleby).
uint32_t Ip6Family::hash(const Key& prefix, int length) {
  uint64_t h = prefix.high ^ prefix.low ^ static_cast<uint64_t>(length) * 0x9e3779b97f4a7c15u;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdu;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53u;
  return static_cast<uint32_t>(h >> 33);
}

bool Ip6Family::read_file(const std::string& path, std::vector<FileRoute>& lines, Errors& errors) {
  return read_routes6(path, lines, errors);
}

std::tuple<Lpm6Key, int, Ip6Address> Ip6Family::parts(const FileRoute& line) {
  return {key(line.prefix.address), line.prefix.length, line.gateway.value_or(Address())};
}

std::string Ip6Family::describe(const Table& table) {
  return fmt::format("{} nodes, {:.1f} MB", table.node_count(), static_cast<double>(table.table_bytes()) * 1e-6);
}

template class RouteTable<Ip6Family>;

}  // namespace headrace
