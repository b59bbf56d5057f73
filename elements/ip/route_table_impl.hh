#pragma once
/// \file
/// The functions of RouteTable, for the source of each family.

#include <fmt/format.h>

#include <algorithm>

#include "elements/ip/route_table.hh"
#include "headrace/grouped.hh"
#include "headrace/router.hh"
#include "headrace/text.hh"

namespace headrace {

template <typename Family>
bool RouteTable<Family>::parse(std::string_view text, const ArgContext& context, bool for_removal, Line& line) const {
  line = Line();
  // The problems of a word are not reported one by one: the caller says what a whole route looks like.
  const ArgContext quiet(context.scope());
  typename Family::Prefix prefix;
  if (!PrefixOrAddress{}.parse(next_word(text), prefix, quiet)) return false;
  line.length = Family::length(prefix);
  if (line.length < 0) return false;
  line.prefix = Family::key(prefix.network());
  std::string_view word = next_word(text);
  if (word == "-" || parse_argument(word, line.gateway, quiet)) word = next_word(text);
  if (word.empty() ? !for_removal : !parse_argument(word, line.port, quiet)) return false;
  return next_word(text).empty();
}

template <typename Family>
uint32_t RouteTable<Family>::hop_index(const Address& gateway, int port) {
  const auto key = std::make_pair(gateway, port);
  if (const auto it = hop_indices_.find(key); it != hop_indices_.end()) return it->second;
  const auto index = static_cast<uint32_t>(hop_indices_.size());
  if (index >= Family::kMaxHops) return Table::kMiss;
  // Written before any route can lead to it.
  Family::write_hop(hop(index), gateway, port);
  hop_indices_.emplace(key, index);
  return index;
}

template <typename Family>
Status RouteTable<Family>::load_file(const std::string& path, int spread, std::vector<Route>& routes, Errors& errors) {
  std::vector<typename Family::FileRoute> lines;
  const FileStamp stamp = FileStamp::of(path);  // before it is read
  if (!Family::read_file(path, lines, errors)) return Status::failed();
  Status status;
  int bad = 0;
  for (const auto& line : lines) {
    const auto [prefix, length, gateway] = Family::parts(line);
    const int port = line.port ? static_cast<int>(*line.port)
                               : static_cast<int>(Family::hash(prefix, length) % static_cast<uint32_t>(spread));
    if (port >= outputs_) {
      if (++bad <= 10)
        status &= errors.error("FILE: {}:{}: bad OUTPUT {}, this element has outputs 0 to {}", path, line.line, port,
                               outputs_ - 1);
      continue;
    }
    routes.push_back({prefix, length, hop_index(gateway, port)});
  }
  files_.emplace_back(stamp, lines.size());
  if (bad > 10) status &= errors.error("FILE: {}: {} more lines with a bad OUTPUT", path, bad - 10);
  return status;
}

template <typename Family>
Status RouteTable<Family>::configure(Args& args) {
  Errors& errors = args.errors();
  outputs_ = args.scope() ? args.scope()->noutputs() : 0;
  std::vector<std::string> files, rest;
  int spread = outputs_;
  args.read_all("FILE", files, InputFile{})
      .read("SPREAD", spread, Between{1, std::max(outputs_, 1)})
      .consume_rest(rest);
  Status status = args.complete();
  std::vector<Route> routes;
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
    routes.push_back({line.prefix, line.length, hop_index(line.gateway, line.port)});
  }
  if (!status.ok()) return status;
  if (!table_.build(routes)) return errors.error("too many next hops");
  for (const Route& route : routes) remember(route.prefix, route.length);
  const size_t replaced = routes.size() - table_.route_count();
  if (replaced > 0) errors.warning("{} {} replaced by later versions", replaced, replaced > 1 ? "routes" : "route");
  return status;
}

template <typename Family>
Status RouteTable<Family>::run(Command command, std::string_view text, const ArgContext& context, Errors& errors) {
  Line line;
  const bool removal = command == Command::kRemove;
  if (!parse(text, context, removal, line))
    return errors.error("expected 'ADDR/MASK [GATEWAY{}'", removal ? " OUTPUT]" : "] OUTPUT");
  if (line.port >= outputs_ || (!removal && line.port < 0)) return errors.error("bad OUTPUT");
  const std::optional<uint32_t> old = table_.find_exact(line.prefix, line.length);
  const auto name = [&] { return Family::unparse(line.prefix, line.length); };
  if (removal) {
    const bool matches =
        old && (line.port < 0 || (Family::port(hop(*old)) == line.port && Family::gateway(hop(*old)) == line.gateway));
    if (!matches)
      return errors.error("route '{} {} {}' not found", name(),
                          line.gateway ? line.gateway.unparse() : std::string("-"), line.port);
    table_.remove(line.prefix, line.length);
    added_.erase(order_of(line.prefix, line.length));
    return {};
  }
  if (command == Command::kAdd && old)
    return errors.error("conflict with existing route '{}'", unparse({line.prefix, line.length, *old}, false));
  const uint32_t index = hop_index(line.gateway, line.port);
  if (index == Table::kMiss || !table_.set(line.prefix, line.length, index))
    return errors.error("no memory to store route '{}'", name());
  remember(line.prefix, line.length);
  return {};
}

template <typename Family>
Status RouteTable<Family>::control(std::string_view text, const ArgContext& context, Errors& errors) {
  // What each line changed, so that a later error can take it back.
  std::vector<Before> undo;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view arguments = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view word = next_word(arguments);
    if (word.empty()) continue;
    Status status;
    Line line;
    if (word != "add" && word != "set" && word != "remove") {
      status = errors.error("bad command '{}'", word);
    } else {
      const Command command = word == "add" ? Command::kAdd : word == "set" ? Command::kSet : Command::kRemove;
      if (parse(arguments, context, true, line)) {
        const std::optional<uint32_t> old = table_.find_exact(line.prefix, line.length);
        undo.push_back({{line.prefix, line.length, old.value_or(0)}, old.has_value()});
      }
      status = run(command, arguments, context, errors);
    }
    if (status.ok()) continue;
    for (auto it = undo.rbegin(); it != undo.rend(); ++it) put_back(*it);
    return status;
  }
  return {};
}

template <typename Family>
void RouteTable<Family>::put_back(const Before& before) {
  const Route& route = before.route;
  if (before.existed) {
    table_.set(route.prefix, route.length, route.next_hop);
    remember(route.prefix, route.length);
  } else {
    table_.remove(route.prefix, route.length);
    added_.erase(order_of(route.prefix, route.length));
  }
}

template <typename Family>
std::string RouteTable<Family>::unparse(const Route& route, bool tabs) const {
  const Hop& hop = this->hop(route.next_hop);
  const Address gateway_address = Family::gateway(hop);
  const std::string prefix = Family::unparse(route.prefix, route.length);
  const std::string gateway = gateway_address ? gateway_address.unparse() : "-";
  if (!tabs) return fmt::format("{} {} {}", prefix, gateway, Family::port(hop));
  // Click's columns.
  const size_t wide = std::max<size_t>(prefix.size() / 8, 1) - 1;
  const size_t column = Family::kPrefixTabs - std::min(wide, Family::kPrefixTabs - 1);
  return fmt::format("{}{}{}{}{}", prefix, std::string(column, '\t'), gateway, gateway.size() < 8 ? "\t\t" : "\t",
                     Family::port(hop));
}

template <typename Family>
std::string RouteTable<Family>::list() const {
  std::string s;
  auto routes = table_.routes();
  if (in_order_)
    std::sort(routes.begin(), routes.end(), [this](const Route& a, const Route& b) {
      return added_.at(order_of(a.prefix, a.length)) < added_.at(order_of(b.prefix, b.length));
    });
  for (const Route& route : routes) {
    s += unparse(route, true);
    s += '\n';
  }
  return s;
}

template <typename Family>
std::string RouteTable<Family>::lookup(const Address& address) const {
  const std::optional<Route> route = table_.match(Family::key(address));
  if (!route) return "-1";
  const Hop& hop = this->hop(route->next_hop);
  const Address gateway = Family::gateway(hop);
  if (!gateway) return std::to_string(Family::port(hop));
  return fmt::format("{} {}", Family::port(hop), gateway.unparse());
}

template <typename Family>
std::string RouteTable<Family>::note() const {
  std::string text = fmt::format("{} routes, {} next hops, {}", grouped(table_.route_count()),
                                 grouped(hop_indices_.size()), Family::describe(table_));
  for (const auto& [file, count] : files_) text += fmt::format("; {} of them from {}", grouped(count), file.path);
  return text;
}

template <typename Family>
void RouteTable<Family>::add_handlers(Handlers& handlers, Element& element) {
  const auto context = [&element](Errors& errors) { return ArgContext(&element.router().scope(&element), &errors); };
  handlers.read_with("lookup", [this, context](const std::string& text, std::string& value, Errors& errors) {
    Address address;
    if (!parse_argument(text, address, context(errors))) return errors.error("expected {}", Family::kAddressName);
    const std::lock_guard guard(lock_);
    value = lookup(address);
    return Status();
  });
  handlers.read(
      "table",
      [this] {
        const std::lock_guard guard(lock_);
        return list();
      },
      Handler::kExpensive);
  handlers.read("count", [this] {
    const std::lock_guard guard(lock_);
    return std::to_string(table_.route_count());
  });
  // Readers never wait for a change, so these need no quiescent point.
  const auto change = [&](const char* name, Command command) {
    handlers.write(
        name,
        [this, context, command](const std::string& text, Errors& errors) {
          const std::lock_guard guard(lock_);
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
        const std::lock_guard guard(lock_);
        return control(text, context(errors), errors);
      },
      Handler::kThreadSafe);
  handlers.button(
      "flush",
      [this] {
        const std::lock_guard guard(lock_);
        table_.clear();
        added_.clear();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
