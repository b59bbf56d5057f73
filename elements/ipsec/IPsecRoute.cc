#include "elements/ipsec/IPsecRoute.hh"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "elements/ipsec/esp_place.hh"
#include "headrace/fields.hh"
#include "headrace/headers.hh"
#include "headrace/rcu.hh"

namespace headrace {

namespace {

Lpm6Key route_key(const uint8_t* address) {
  uint64_t halves[2];
  std::memcpy(halves, address, sizeof halves);
  return {__builtin_bswap64(halves[0]), __builtin_bswap64(halves[1])};
}

/// An IPv4 prefix is mapped into IPv6.
constexpr int kMappedBits = 96;

std::tuple<bool, Ip6Address, int> prefix_of(const SecgwConfig::Route& route) {
  return {route.v6, route.prefix.network(), route.prefix.length};
}

std::string prefix_text(const SecgwConfig::Route& route) {
  if (route.v6) return Ip6Prefix{route.prefix.network(), route.prefix.length}.unparse();
  return fmt::format("{}/{}", route.prefix.network().embedded_v4().unparse(), route.prefix.length - kMappedBits);
}

/// "line 5", or "FILE:5" where that is another file than `beside`.
std::string line_text(const Landmark& where, const Landmark& beside) {
  return where.file == beside.file ? fmt::format("line {}", where.line) : where.str();
}

}  // namespace

Status IPsecRoute::configure(Args& args) {
  count_reasons({"no route", "no room", "not IP"});
  std::vector<std::string> addresses;
  if (!args.read_mp("DATABASE", database_).consume_rest(addresses).complete()) return Status::failed();
  Errors& errors = args.errors();
  Status status;
  hops_ = std::vector<Hop>(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i)
    if (!parse_argument(addresses[i], hops_[i].own, ArgContext(args.scope())))
      status &= errors.error("ETH{}: expected an Ethernet address", i);
  if (addresses.size() != static_cast<size_t>(noutputs()))
    status &=
        errors.error("expected an Ethernet address for each output, {} in all, got {}", noutputs(), addresses.size());
  if (!status) return status;
  // There will be no router. Lines with mistakes, which have been reported, would be missed here.
  if (!database_->files_are_whole()) return {};
  Lines lines;
  lines.neighbors.resize(hops_.size());
  for (const auto& line : database_->neighbors()) status &= add_neighbor(Change::kAdd, line, lines, errors);
  for (const auto& line : database_->routes()) status &= add_route(Change::kAdd, line, lines, errors);
  if (status.ok()) apply(std::move(lines));
  return status;
}

Status IPsecRoute::check_port(uint32_t port, const Landmark& where, Errors& errors) const {
  if (port < hops_.size()) return {};
  return errors.error_at(where, "'{}': expected a port from 0 to {}, those that are connected", port, hops_.size() - 1);
}

Status IPsecRoute::add_neighbor(Change change, const IPsecDatabase::NeighborLine& line, Lines& lines,
                                Errors& errors) const {
  const uint32_t port = line.neighbor.port;
  if (!check_port(port, line.where, errors)) return Status::failed();
  std::optional<IPsecDatabase::NeighborLine>& mine = lines.neighbors[port];
  if (mine && change == Change::kAdd)
    return errors.error_at(line.where, "'{}': {} has a neighbor of this port already", port,
                           line_text(mine->where, line.where));
  mine = line;
  return {};
}

Status IPsecRoute::add_route(Change change, const IPsecDatabase::RouteLine& line, Lines& lines, Errors& errors) const {
  const auto& [route, where] = line;
  if (!check_port(route.port, where, errors)) return Status::failed();
  if (!lines.neighbors[route.port])
    return errors.error_at(where, "'{0}': port {0} lacks a line 'neigh port {0} ADDRESS'", route.port);
  const auto [mine, added] = lines.routes.try_emplace(prefix_of(route), line);
  if (!added && change == Change::kAdd)
    return errors.error_at(where, "'{}': {} has a route of this prefix already", prefix_text(route),
                           line_text(mine->second.where, where));
  mine->second = line;
  return {};
}

Status IPsecRoute::remove_route(const IPsecDatabase::RouteLine& line, Lines& lines, Errors& errors) {
  if (lines.routes.erase(prefix_of(line.route)) > 0) return {};
  return errors.error_at(line.where, "'{}': there is no route of this prefix", prefix_text(line.route));
}

Status IPsecRoute::remove_neighbor(const IPsecDatabase::NeighborLine& line, Lines& lines, Errors& errors) {
  const auto& [port, address, number] = line.neighbor;
  if (port >= lines.neighbors.size() || !lines.neighbors[port] || lines.neighbors[port]->neighbor.address != address)
    return errors.error_at(line.where, "'{}': port {} has no such neighbor", address.unparse(), port);
  for (const auto& [prefix, other] : lines.routes)
    if (other.route.port == port)
      return errors.error_at(line.where, "'{}': the route of {} leads to this port", port, prefix_text(other.route));
  lines.neighbors[port].reset();
  return {};
}

Status IPsecRoute::take(Change change, const std::string& handler, const std::string& text, Errors& errors) {
  SecgwConfig config;
  Status status;
  if (!read_secgw_text(text, handler, config, errors)) return Status::failed();
  for (const auto& policy : config.policies)
    status &= errors.error_at({handler, policy.line}, "'sp': policies are added by the handler 'add' of the database");
  for (const auto& association : config.associations)
    status &= errors.error_at({handler, association.line},
                              "'sa': associations are added by the handler 'add' of the database");
  const std::lock_guard hold(mutex_);
  Lines lines = lines_;
  if (change == Change::kRemove) {
    for (const auto& route : config.routes) status &= remove_route({route, {handler, route.line}}, lines, errors);
    for (const auto& neighbor : config.neighbors)
      status &= remove_neighbor({neighbor, {handler, neighbor.line}}, lines, errors);
  } else {
    for (const auto& neighbor : config.neighbors)
      status &= add_neighbor(change, {neighbor, {handler, neighbor.line}}, lines, errors);
    for (const auto& route : config.routes) status &= add_route(change, {route, {handler, route.line}}, lines, errors);
  }
  if (status.ok()) apply(std::move(lines));
  return status;
}

void IPsecRoute::apply(Lines lines) {
  // First all that routes may lead to, last what they have led to.
  for (uint32_t port = 0; port < hops_.size(); ++port) {
    const auto& line = lines.neighbors[port];
    if (line) set_neighbor(port, std::make_unique<const Frames>(hops_[port].own, line->neighbor.address));
  }
  for (const auto& [prefix, line] : lines.routes) {
    const auto& [v6, network, length] = prefix;
    if (v6) {
      (void)routes6_.set(route_key(network.data()), length, line.route.port);
    } else {
      (void)routes4_.set(network.embedded_v4().host_order(), length - kMappedBits, line.route.port);
    }
  }
  for (const auto& [prefix, line] : lines_.routes) {
    const auto& [v6, network, length] = prefix;
    if (lines.routes.contains(prefix)) continue;
    if (v6) {
      (void)routes6_.remove(route_key(network.data()), length);
    } else {
      (void)routes4_.remove(network.embedded_v4().host_order(), length - kMappedBits);
    }
  }
  for (uint32_t port = 0; port < hops_.size(); ++port)
    if (!lines.neighbors[port]) set_neighbor(port, nullptr);
  lines_ = std::move(lines);
}

void IPsecRoute::set_neighbor(uint32_t port, std::unique_ptr<const Frames> frames) {
  const Frames* const old = hops_[port].frames.exchange(frames.release(), std::memory_order_acq_rel);
  if (old) rcu::retire([old = std::shared_ptr<const Frames>(old)] {});
}

IPsecRoute::Frames::Frames(EtherAddress own, EtherAddress neighbor) {
  for (Header* header : {&header4, &header6}) {
    neighbor.copy_to(header->data());
    own.copy_to(header->data() + 6);
    const uint16_t type = header == &header4 ? eth::kTypeIp4 : eth::kTypeIp6;
    (*header)[12] = static_cast<uint8_t>(type >> 8);
    (*header)[13] = static_cast<uint8_t>(type);
  }
}

IPsecRoute::~IPsecRoute() {
  for (const Hop& hop : hops_) delete hop.frames.load(std::memory_order_relaxed);
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
    // A lookup that overlaps a change may find a port whose neighbor goes at this moment.
    const Frames* const frames = port == Lpm4View::kMiss ? nullptr : hops_[port].frames.load(std::memory_order_acquire);
    if (!frames) {
      drop(p, kNoRoute);
      continue;
    }
    if (!p->push(14)) {
      drop(p, kNoRoom);
      continue;
    }
    const Frames::Header& header = versions[i] == 4 ? frames->header4 : frames->header6;
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
    const std::lock_guard hold(mutex_);
    std::string out;
    for (const auto& [prefix, line] : lines_.routes)
      out += fmt::format("{} port {} {}\n", prefix_text(line.route), line.route.port,
                         lines_.neighbors[line.route.port]->neighbor.address.unparse());
    return out;
  });
  const auto writer = [this, &handlers](const char* name, Change change) {
    handlers.write(
        name, [this, name, change](const std::string& v, Errors& errors) { return take(change, name, v, errors); },
        Handler::kThreadSafe);
  };
  writer("add", Change::kAdd);
  writer("set", Change::kSet);
  writer("remove", Change::kRemove);
}

std::string IPsecRoute::note() const {
  const std::lock_guard hold(mutex_);
  return fmt::format("{} routes", routes4_.route_count() + routes6_.route_count());
}

static_assert(Lpm4View::kMiss == Lpm6View::kMiss);

HEADRACE_ELEMENT(IPsecRoute)

}  // namespace headrace
