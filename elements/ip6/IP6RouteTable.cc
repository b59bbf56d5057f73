#include "elements/ip6/IP6RouteTable.hh"

#include <fmt/format.h>

#include <bit>

#include "elements/ip/route_words.hh"
#include "headrace/router.hh"
#include "tables/lpm6/route_file6.hh"

namespace headrace {

namespace {

Lpm6Key key_of(const Ip6Address& address) { return ip6::key_of(std::bit_cast<Ip6Bytes>(address.bytes())); }

Ip6Address address_of(Lpm6Key key) {
  Ip6Bytes bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.b[i] = static_cast<uint8_t>(key.high >> (56 - 8 * i));
    bytes.b[8 + i] = static_cast<uint8_t>(key.low >> (56 - 8 * i));
  }
  return Ip6Address::from_bytes(bytes.b);
}

/// Spreads prefixes evenly over outputs (the finaliser of MurmurHash3, A. Appleby).
uint32_t hash_prefix(Lpm6Key prefix, int length) {
  uint64_t h = prefix.high ^ prefix.low ^ static_cast<uint64_t>(length) * 0x9e3779b97f4a7c15u;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdu;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53u;
  return static_cast<uint32_t>(h >> 33);
}

}  // namespace

bool IP6RouteTable::parse(std::string_view text, const ArgContext& context, bool for_removal, Line& line) const {
  line = Line();
  // The problems of a word are not reported one by one: the caller says what a whole route looks like.
  const ArgContext quiet(context.scope());
  if (!PrefixOrAddress{}.parse(next_word(text), line.prefix, quiet)) return false;
  line.prefix.address = line.prefix.network();
  std::string_view word = next_word(text);
  if (word == "-" || parse_argument(word, line.gateway, quiet)) word = next_word(text);
  if (word.empty() ? !for_removal : !parse_argument(word, line.port, quiet)) return false;
  return next_word(text).empty();
}

uint32_t IP6RouteTable::hop_index(const Ip6Address& gateway, int port) {
  const auto key = std::make_pair(gateway, port);
  const auto it = hop_indices_.find(key);
  if (it != hop_indices_.end()) return it->second;
  const auto index = static_cast<uint32_t>(hop_indices_.size());
  if (index >= kMaxHops) return Lpm6::kMiss;
  // Written before any route can lead to it.
  hops_[index] = {std::bit_cast<Ip6Bytes>(gateway.bytes()), gateway ? 1u : 0u, static_cast<uint32_t>(port)};
  hop_indices_.emplace(key, index);
  return index;
}

uint32_t IP6RouteTable::find_hop(const Ip6Address& gateway, int port) const {
  const auto it = hop_indices_.find({gateway, port});
  return it == hop_indices_.end() ? Lpm6::kMiss : it->second;
}

Status IP6RouteTable::load_file(const std::string& path, int spread, std::vector<Lpm6::Route>& routes, Errors& errors) {
  std::vector<TextRoute6> lines;
  const FileStamp stamp = FileStamp::of(path);  // before it is read
  if (!read_routes6(path, lines, errors)) return Status::failed();
  Status status;
  int bad = 0;
  for (const TextRoute6& line : lines) {
    const Lpm6Key prefix = key_of(line.prefix.address);
    const int port = line.port
                         ? static_cast<int>(*line.port)
                         : static_cast<int>(hash_prefix(prefix, line.prefix.length) % static_cast<uint32_t>(spread));
    if (port >= outputs_) {
      if (++bad <= 10)
        status &= errors.error("FILE: {}:{}: bad OUTPUT {}, this element has outputs 0 to {}", path, line.line, port,
                               outputs_ - 1);
      continue;
    }
    routes.push_back({prefix, line.prefix.length, hop_index(line.gateway.value_or(Ip6Address()), port)});
  }
  files_.emplace_back(stamp, lines.size());
  if (bad > 10) status &= errors.error("FILE: {}: {} more lines with a bad OUTPUT", path, bad - 10);
  return status;
}

Status IP6RouteTable::configure(Args& args) {
  Errors& errors = args.errors();
  outputs_ = args.scope() ? args.scope()->noutputs() : 0;
  std::vector<std::string> files, rest;
  int spread = outputs_;
  args.read_all("FILE", files, InputFile{})
      .read("SPREAD", spread, Between{1, std::max(outputs_, 1)})
      .consume_rest(rest);
  Status status = args.complete();
  std::vector<Lpm6::Route> routes;
  if (status.ok())
    for (const std::string& file : files) status &= load_file(file, spread, routes, errors);
  for (size_t i = 0; i < rest.size(); ++i) {
    Line line;
    if (!parse(rest[i], args.context(), false, line)) {
      status &= errors.error("argument {} should be 'ADDR/MASK [GATEWAY] OUTPUT'", i + 1);
      continue;
    }
    if (line.port < 0 || line.port >= outputs_) {
      status &= errors.error("argument {} bad OUTPUT", i + 1);
      continue;
    }
    routes.push_back({key_of(line.prefix.address), line.prefix.length, hop_index(line.gateway, line.port)});
  }
  if (!status.ok()) return status;
  if (!table_.build(routes)) return errors.error("too many next hops");
  const size_t replaced = routes.size() - table_.route_count();
  if (replaced > 0) errors.warning("{} {} replaced by later versions", replaced, replaced > 1 ? "routes" : "route");
  return status;
}

Status IP6RouteTable::run(Command command, std::string_view text, const ArgContext& context, Errors& errors) {
  Line line;
  const bool removal = command == Command::kRemove;
  if (!parse(text, context, removal, line))
    return errors.error("expected 'ADDR/MASK [GATEWAY{}'", removal ? " OUTPUT]" : "] OUTPUT");
  if (line.port >= outputs_ || (!removal && line.port < 0)) return errors.error("bad OUTPUT");
  const Lpm6Key prefix = key_of(line.prefix.address);
  const int length = line.prefix.length;
  const std::optional<uint32_t> old = table_.find_exact(prefix, length);
  if (removal) {
    const bool matches = old && (line.port < 0 || *old == find_hop(line.gateway, line.port));
    if (!matches)
      return errors.error("route '{} {} {}' not found", line.prefix.unparse(),
                          line.gateway ? line.gateway.unparse() : std::string("-"), line.port);
    table_.remove(prefix, length);
    return {};
  }
  if (command == Command::kAdd && old)
    return errors.error("conflict with existing route '{}'", unparse({prefix, length, *old}, false));
  const uint32_t index = hop_index(line.gateway, line.port);
  if (index == Lpm6::kMiss || !table_.set(prefix, length, index))
    return errors.error("no memory to store route '{}'", line.prefix.unparse());
  return {};
}

Status IP6RouteTable::control(const std::string& text, const ArgContext& context, Errors& errors) {
  // What each line changed, so that a later error can take it back.
  std::vector<std::pair<Lpm6::Route, bool>> undo;  // route as it was, and whether there was one
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    std::string_view arguments = line;
    const std::string_view word = next_word(arguments);
    if (word.empty()) continue;
    Status status;
    Line parsed;
    if (word != "add" && word != "set" && word != "remove") {
      status = errors.error("bad command '{}'", word);
    } else {
      const Command command = word == "add" ? Command::kAdd : word == "set" ? Command::kSet : Command::kRemove;
      if (parse(arguments, context, true, parsed)) {
        const Lpm6Key prefix = key_of(parsed.prefix.address);
        const std::optional<uint32_t> old = table_.find_exact(prefix, parsed.prefix.length);
        undo.push_back({{prefix, parsed.prefix.length, old.value_or(0)}, old.has_value()});
      }
      status = run(command, arguments, context, errors);
    }
    if (status.ok()) continue;
    for (auto it = undo.rbegin(); it != undo.rend(); ++it) {
      if (it->second)
        table_.set(it->first.prefix, it->first.length, it->first.next_hop);
      else
        table_.remove(it->first.prefix, it->first.length);
    }
    return status;
  }
  return {};
}

std::string IP6RouteTable::unparse(const Lpm6::Route& route, bool tabs) const {
  const Ip6NextHop& hop = hops_[route.next_hop];
  const std::string prefix = Ip6Prefix{address_of(route.prefix), route.length}.unparse();
  const std::string gateway = hop.has_gateway ? Ip6Address::from_bytes(hop.gateway.b).unparse() : "-";
  if (!tabs) return fmt::format("{} {} {}", prefix, gateway, hop.port);
  // Columns that line up with tabs of eight.
  return fmt::format("{}\t{}{}\t{}{}", prefix,
                     prefix.size() < 16   ? "\t\t"
                     : prefix.size() < 24 ? "\t"
                                          : "",
                     gateway, gateway.size() < 8 ? "\t" : "", hop.port);
}

std::string IP6RouteTable::list() const {
  std::string s;
  for (const Lpm6::Route& route : table_.routes()) {
    s += unparse(route, true);
    s += '\n';
  }
  return s;
}

std::string IP6RouteTable::lookup(const Ip6Address& address) const {
  const std::optional<Lpm6::Route> route = table_.match(key_of(address));
  if (!route) return "-1";
  const Ip6NextHop& hop = hops_[route->next_hop];
  if (!hop.has_gateway) return std::to_string(hop.port);
  return fmt::format("{} {}", hop.port, Ip6Address::from_bytes(hop.gateway.b).unparse());
}

std::string IP6RouteTable::note() const {
  const auto grouped = [](size_t n) {
    std::string s = std::to_string(n);
    for (int at = static_cast<int>(s.size()) - 3; at > 0; at -= 3) s.insert(static_cast<size_t>(at), ",");
    return s;
  };
  std::string text = fmt::format("{} routes, {} next hops, {} nodes, {:.1f} MB", grouped(table_.route_count()),
                                 grouped(hop_indices_.size()), grouped(table_.node_count()),
                                 static_cast<double>(table_.table_bytes()) * 1e-6);
  for (const auto& [file, count] : files_) text += fmt::format("; {} of them from {}", grouped(count), file.path);
  return text;
}

void IP6RouteTable::add_handlers(Handlers& handlers, Element& element) {
  const auto context = [&element](Errors& errors) { return ArgContext(&element.router().scope(&element), &errors); };
  handlers.read_with("lookup", [this, context](const std::string& text, std::string& value, Errors& errors) {
    Ip6Address address;
    if (!parse_argument(text, address, context(errors))) return errors.error("expected IP6 address");
    std::lock_guard guard(lock_);
    value = lookup(address);
    return Status();
  });
  handlers.read(
      "table",
      [this] {
        std::lock_guard guard(lock_);
        return list();
      },
      Handler::kExpensive);
  handlers.read("count", [this] {
    std::lock_guard guard(lock_);
    return std::to_string(table_.route_count());
  });
  // Readers never wait for a change, so these need no quiescent point.
  const auto change = [&](const char* name, Command command) {
    handlers.write(
        name,
        [this, context, command](const std::string& text, Errors& errors) {
          std::lock_guard guard(lock_);
          return run(command, text, context(errors), errors);
        },
        Handler::kThreadSafe);
  };
  change("add", Command::kAdd);
  change("set", Command::kSet);
  change("remove", Command::kRemove);
  handlers.write(
      "ctrl",
      [this, context](const std::string& text, Errors& errors) {
        std::lock_guard guard(lock_);
        return control(text, context(errors), errors);
      },
      Handler::kThreadSafe);
  handlers.button(
      "flush",
      [this] {
        std::lock_guard guard(lock_);
        table_.clear();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
