#include "elements/ipsec/IPsecRoute.hh"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "elements/ipsec/esp_place.hh"
#include "headrace/fields.hh"
#include "headrace/headers.hh"

namespace headrace {

namespace {

Lpm6Key route_key(const uint8_t* address) {
  uint64_t halves[2];
  std::memcpy(halves, address, sizeof halves);
  return {__builtin_bswap64(halves[0]), __builtin_bswap64(halves[1])};
}

/// An IPv4 prefix is mapped into IPv6.
constexpr int kMappedBits = 96;

std::string prefix_text(const SecgwConfig::Route& route) {
  if (route.v6) return Ip6Prefix{route.prefix.network(), route.prefix.length}.unparse();
  return fmt::format("{}/{}", route.prefix.network().embedded_v4().unparse(), route.prefix.length - kMappedBits);
}

}  // namespace

Status IPsecRoute::configure(Args& args) {
  count_reasons({"no route", "no room", "not IP"});
  std::vector<std::string> addresses;
  if (!args.read_mp("DATABASE", database_).consume_rest(addresses).complete()) return Status::failed();
  Errors& errors = args.errors();
  Status status;
  hops_.resize(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i)
    if (!parse_argument(addresses[i], hops_[i].own, ArgContext(args.scope())))
      status &= errors.error("ETH{}: expected an Ethernet address", i);
  if (addresses.size() != static_cast<size_t>(noutputs()))
    status &=
        errors.error("expected an Ethernet address for each output, {} in all, got {}", noutputs(), addresses.size());
  if (!status) return status;
  // There will be no router. Lines with mistakes, which have been reported, would be missed here.
  if (!database_->files_are_whole()) return {};
  status &= take_neighbors(errors);
  status &= take_routes(errors);
  return status;
}

Status IPsecRoute::take_neighbors(Errors& errors) {
  Status status;
  for (const auto& [neighbor, where] : database_->neighbors()) {
    if (neighbor.port >= hops_.size()) {
      status &= errors.error_at(where, "'{}': expected a port from 0 to {}, those that are connected", neighbor.port,
                                hops_.size() - 1);
      continue;
    }
    Hop& hop = hops_[neighbor.port];
    if (hop.neighbor_line != 0) {
      status &=
          errors.error_at(where, "'{}': line {} has a neighbor of this port already", neighbor.port, hop.neighbor_line);
      continue;
    }
    hop.neighbor = neighbor.address;
    hop.neighbor_line = where.line;
    for (Header* header : {&hop.header4, &hop.header6}) {
      hop.neighbor.copy_to(header->data());
      hop.own.copy_to(header->data() + 6);
      const uint16_t type = header == &hop.header4 ? eth::kTypeIp4 : eth::kTypeIp6;
      (*header)[12] = static_cast<uint8_t>(type >> 8);
      (*header)[13] = static_cast<uint8_t>(type);
    }
  }
  return status;
}

Status IPsecRoute::take_routes(Errors& errors) {
  Status status;
  std::map<std::string, int> lines;
  for (const auto& [route, where] : database_->routes()) {
    const auto [first, added] = lines.emplace(prefix_text(route), where.line);
    if (route.port >= hops_.size()) {
      status &= errors.error_at(where, "'{}': expected a port from 0 to {}, those that are connected", route.port,
                                hops_.size() - 1);
    } else if (hops_[route.port].neighbor_line == 0) {
      status &= errors.error_at(where, "'{0}': port {0} lacks a line 'neigh port {0} ADDRESS'", route.port);
    } else if (!added) {
      status &= errors.error_at(where, "'{}': line {} has a route of this prefix already", first->first, first->second);
    } else if (route.v6) {
      (void)routes6_.set(route_key(route.prefix.address.data()), route.prefix.length, route.port);
    } else {
      (void)routes4_.set(route.prefix.address.embedded_v4().host_order(), route.prefix.length - kMappedBits,
                         route.port);
    }
  }
  return status;
}

void IPsecRoute::push(int, Batch& batch) {
  const int n = batch.size();
  // Both families are looked up as batches, so that lookups wait for memory together.
  uint32_t keys4[Batch::kCapacity], ports4[Batch::kCapacity], ports6[Batch::kCapacity];
  Lpm6Key keys6[Batch::kCapacity];
  uint8_t versions[Batch::kCapacity];
  size_t n4 = 0, n6 = 0;
  for (int i = 0; i < n; ++i) {
    Packet& p = *batch[i];
    versions[i] = 0;
    if (!p.has_network_header() || p.network_header_offset() < 0) continue;
    p.pull(static_cast<uint32_t>(p.network_header_offset()));
    const uint8_t* const ip = p.data();
    const uint8_t version = p.length() == 0 ? 0 : ip[0] >> 4;
    if (version == 4 && p.length() >= 20) {
      versions[i] = 4;
      keys4[n4++] = load_be32(ip + 16);
    } else if (version == 6 && p.length() >= 40) {
      versions[i] = 6;
      keys6[n6++] = route_key(ip + 24);
    }
  }
  if (n4 > 0) routes4_.view().lookup_batch(keys4, ports4, n4);
  if (n6 > 0) routes6_.view().lookup_batch(keys6, ports6, n6);

  Next nexts[Batch::kCapacity];
  Batch left;
  size_t next4 = 0, next6 = 0;
  for (int i = 0; i < n; ++i) {
    Packet* const p = batch[i];
    if (versions[i] == 0) {
      drop(p, kNotIp);
      continue;
    }
    const uint32_t port = versions[i] == 4 ? ports4[next4++] : ports6[next6++];
    if (port == Lpm4View::kMiss) {
      drop(p, kNoRoute);
      continue;
    }
    if (!p->push(14)) {
      drop(p, kNoRoom);
      continue;
    }
    const Hop& hop = hops_[port];
    const Header& header = versions[i] == 4 ? hop.header4 : hop.header6;
    std::memcpy(p->data(), header.data(), header.size());
    p->set_mac_header();
    nexts[left.size()] = static_cast<Next>(port);
    left.push_back(p);
  }
  batch.clear();
  push_split(left, nexts);
}

void IPsecRoute::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] {
    std::string out;
    for (const auto& [route, where] : database_->routes())
      out += fmt::format("{} port {} {}\n", prefix_text(route), route.port, hops_[route.port].neighbor.unparse());
    return out;
  });
}

std::string IPsecRoute::note() const {
  return fmt::format("{} routes", routes4_.route_count() + routes6_.route_count());
}

static_assert(Lpm4View::kMiss == Lpm6View::kMiss);

HEADRACE_ELEMENT(IPsecRoute)

}  // namespace headrace
