#include "elements/ip/IPRouteTable.hh"

#include <fmt/format.h>

#include <algorithm>

#include "elements/ip/route_words.hh"
#include "headrace/router.hh"
#include "tables/lpm4/route_file.hh"

namespace headrace {

namespace {

/// Spreads prefixes evenly over outputs (the finaliser of MurmurHash3, A. Appleby).
uint32_t hash_prefix(uint32_t prefix, int length) {
  uint32_t h = prefix ^ static_cast<uint32_t>(length) * 0x9e3779b9u;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  h ^= h >> 16;
  return h;
}

}  // namespace

IPRouteTable::IPRouteTable() = default;

bool IPRouteTable::parse(std::string_view text, const ArgContext& context, bool for_removal, Line& line) const {
  line = Line();
  // The problems of a word are not reported one by one: the caller says what a whole route looks like.
  const ArgContext quiet(context.scope());
  if (!PrefixOrAddress{}.parse(next_word(text), line.prefix, quiet) || line.prefix.length() < 0) return false;
  line.prefix = line.prefix.normalized();
  std::string_view word = next_word(text);
  if (word == "-" || parse_argument(word, line.gateway, quiet)) word = next_word(text);
  if (word.empty() ? !for_removal : !parse_argument(word, line.port, quiet)) return false;
  return next_word(text).empty();
}

uint32_t IPRouteTable::hop_index(IpAddress gateway, int port) {
  const auto key = std::make_pair(gateway.host_order(), port);
  const auto it = hop_indices_.find(key);
  if (it != hop_indices_.end()) return it->second;
  const auto index = static_cast<uint32_t>(hop_indices_.size());
  if (index >= kMaxHops) return Lpm4::kMiss;
  // Written before any route can lead to it.
  hops_[index] = {gateway.host_order(), static_cast<uint16_t>(port), 0};
  hop_indices_.emplace(key, index);
  return index;
}

Status IPRouteTable::load_file(const std::string& path, int spread, std::vector<Lpm4::Route>& routes, Errors& errors) {
  std::vector<TextRoute> lines;
  const FileStamp stamp = FileStamp::of(path);  // before it is read
  if (!read_routes(path, lines, errors)) return Status::failed();
  Status status;
  int bad = 0;
  for (const TextRoute& line : lines) {
    const int port = line.port
                         ? static_cast<int>(*line.port)
                         : static_cast<int>(hash_prefix(line.prefix, line.length) % static_cast<uint32_t>(spread));
    if (port >= outputs_) {
      if (++bad <= 10)
        status &= errors.error("FILE: {}:{}: bad OUTPUT {}, this element has outputs 0 to {}", path, line.line, port,
                               outputs_ - 1);
      continue;
    }
    const IpAddress gateway = IpAddress::from_host_order(line.gateway.value_or(0));
    routes.push_back({line.prefix, line.length, hop_index(gateway, port)});
  }
  files_.emplace_back(stamp, lines.size());
  if (bad > 10) status &= errors.error("FILE: {}: {} more lines with a bad OUTPUT", path, bad - 10);
  return status;
}

Status IPRouteTable::configure(Args& args) {
  Errors& errors = args.errors();
  outputs_ = args.scope() ? args.scope()->noutputs() : 0;
  std::vector<std::string> files, rest;
  int spread = outputs_;
  args.read_all("FILE", files, InputFile{})
      .read("SPREAD", spread, Between{1, std::max(outputs_, 1)})
      .consume_rest(rest);
  Status status = args.complete();
  std::vector<Lpm4::Route> routes;
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
    routes.push_back({line.prefix.address.host_order(), line.prefix.length(), hop_index(line.gateway, line.port)});
  }
  if (!status.ok()) return status;
  if (!table_.build(routes)) return errors.error("too many next hops");
  for (const Lpm4::Route& route : routes) remember(route.prefix, route.length);
  const size_t replaced = routes.size() - table_.route_count();
  if (replaced > 0) errors.warning("{} {} replaced by later versions", replaced, replaced > 1 ? "routes" : "route");
  return status;
}

Status IPRouteTable::run(Command command, std::string_view text, const ArgContext& context, Errors& errors) {
  Line line;
  const bool removal = command == Command::kRemove;
  if (!parse(text, context, removal, line))
    return errors.error("expected 'ADDR/MASK [GATEWAY{}'", removal ? " OUTPUT]" : "] OUTPUT");
  if (line.port >= outputs_ || (!removal && line.port < 0)) return errors.error("bad OUTPUT");
  const uint32_t prefix = line.prefix.address.host_order();
  const int length = line.prefix.length();
  const std::optional<uint32_t> old = table_.find_exact(prefix, length);
  if (removal) {
    const bool matches =
        old && (line.port < 0 || (hops_[*old].port == line.port && hops_[*old].gateway == line.gateway.host_order()));
    if (!matches)
      return errors.error("route '{} {} {}' not found", line.prefix.unparse(),
                          line.gateway ? line.gateway.unparse() : std::string("-"), line.port);
    table_.remove(prefix, length);
    added_.erase({prefix, length});
    return {};
  }
  if (command == Command::kAdd && old)
    return errors.error("conflict with existing route '{}'", unparse({prefix, length, *old}, false));
  const uint32_t index = hop_index(line.gateway, line.port);
  if (index == Lpm4::kMiss || !table_.set(prefix, length, index))
    return errors.error("no memory to store route '{}'", line.prefix.unparse());
  remember(prefix, length);
  return {};
}

Status IPRouteTable::control(const std::string& text, const ArgContext& context, Errors& errors) {
  // What each line changed, so that a later error can take it back.
  std::vector<std::pair<Lpm4::Route, bool>> undo;  // route as it was, and whether there was one
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
        const uint32_t prefix = parsed.prefix.address.host_order();
        const std::optional<uint32_t> old = table_.find_exact(prefix, parsed.prefix.length());
        undo.push_back({{prefix, parsed.prefix.length(), old.value_or(0)}, old.has_value()});
      }
      status = run(command, arguments, context, errors);
    }
    if (status.ok()) continue;
    for (auto it = undo.rbegin(); it != undo.rend(); ++it) {
      const auto& [route, was_there] = *it;
      if (was_there) {
        table_.set(route.prefix, route.length, route.next_hop);
        remember(route.prefix, route.length);
      } else {
        table_.remove(route.prefix, route.length);
        added_.erase({route.prefix, route.length});
      }
    }
    return status;
  }
  return {};
}

std::string IPRouteTable::unparse(const Lpm4::Route& route, bool tabs) const {
  const IpNextHop& hop = hops_[route.next_hop];
  const std::string prefix = IpPrefix::of(IpAddress::from_host_order(route.prefix), route.length).unparse();
  const std::string gateway = hop.gateway ? IpAddress::from_host_order(hop.gateway).unparse() : "-";
  if (!tabs) return fmt::format("{} {} {}", prefix, gateway, hop.port);
  // Columns that line up with tabs of eight.
  return fmt::format("{}\t{}{}\t{}{}", prefix, prefix.size() < 16 ? "\t" : "", gateway, gateway.size() < 8 ? "\t" : "",
                     hop.port);
}

std::string IPRouteTable::list() const {
  std::string s;
  auto routes = table_.routes();
  if (in_order_)
    std::sort(routes.begin(), routes.end(), [this](const Lpm4::Route& a, const Lpm4::Route& b) {
      return added_.at({a.prefix, a.length}) < added_.at({b.prefix, b.length});
    });
  for (const Lpm4::Route& route : routes) {
    s += unparse(route, true);
    s += '\n';
  }
  return s;
}

std::string IPRouteTable::lookup(IpAddress address) const {
  const std::optional<Lpm4::Route> route = table_.match(address.host_order());
  if (!route) return "-1";
  const IpNextHop& hop = hops_[route->next_hop];
  if (!hop.gateway) return std::to_string(hop.port);
  return fmt::format("{} {}", hop.port, IpAddress::from_host_order(hop.gateway).unparse());
}

std::string IPRouteTable::note() const {
  const auto grouped = [](size_t n) {
    std::string s = std::to_string(n);
    for (int at = static_cast<int>(s.size()) - 3; at > 0; at -= 3) s.insert(static_cast<size_t>(at), ",");
    return s;
  };
  std::string text = fmt::format("{} routes, {} next hops, {}-bit entries, {:.1f} MB", grouped(table_.route_count()),
                                 grouped(hop_indices_.size()), table_.wide() ? 32 : 16,
                                 static_cast<double>(table_.memory_bytes()) * 1e-6);
  for (const auto& [file, count] : files_) text += fmt::format("; {} of them from {}", grouped(count), file.path);
  return text;
}

void IPRouteTable::add_handlers(Handlers& handlers, Element& element) {
  const auto context = [&element](Errors& errors) { return ArgContext(&element.router().scope(&element), &errors); };
  handlers.read_with("lookup", [this, context](const std::string& text, std::string& value, Errors& errors) {
    IpAddress address;
    if (!parse_argument(text, address, context(errors))) return errors.error("expected IP address");
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
        added_.clear();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
