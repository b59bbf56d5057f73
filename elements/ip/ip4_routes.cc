#include "elements/ip/ip4_routes.hh"

#include "elements/ip/route_table_impl.hh"

namespace headrace {

void Ip4Family::write_hop(Hop& hop, Address gateway, int port) {
  __atomic_store_n(&hop.word, Hop::make(gateway.host_order(), static_cast<uint16_t>(port)).word, __ATOMIC_RELEASE);
}

/// Spreads prefixes evenly over outputs (the finaliser of MurmurHash3, A. Appleby).
uint32_t Ip4Family::hash(Key prefix, int length) {
  uint32_t h = prefix ^ static_cast<uint32_t>(length) * 0x9e3779b9u;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  h ^= h >> 16;
  return h;
}

bool Ip4Family::read_file(const std::string& path, std::vector<FileRoute>& lines, Errors& errors) {
  return read_routes(path, lines, errors);
}

std::tuple<Ip4Family::Key, int, Ip4Family::Address> Ip4Family::parts(const FileRoute& line) {
  return {line.prefix, line.length, Address::from_host_order(line.gateway.value_or(0))};
}

std::string Ip4Family::describe(const Table& table) {
  return fmt::format("{}-bit entries, {:.1f} MB", table.wide() ? 32 : 16,
                     static_cast<double>(table.memory_bytes()) * 1e-6);
}

template class RouteTable<Ip4Family>;

}  // namespace headrace
