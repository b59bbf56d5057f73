#include "lang/flatten.hh"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/argument_text.hh"
#include "lang/lexer.hh"
#include "lang/parser.hh"
#include "lang/scope.hh"

namespace headrace::lang {
namespace {

using ScopePtr = std::shared_ptr<const Scope>;

class Flattener {
 public:
  Flattener(Program& program, const Options& options, Configuration& out, Errors& errors)
      : program_(program), options_(options), out_(out), errors_(errors), text_budget_(options.limits.text_bytes) {}

  void run() {
    auto file_scope = std::make_shared<Scope>(nullptr, 0);
    const Definition& file = program_.definitions.front();
    for (const Variable& variable : file.variables) file_scope->define(variable.name, variable.text);
    for (const auto& [name, value] : options_.variables) file_scope->define(name, value);
    std::set<std::string, std::less<>> used;
    for (const Variable& variable : file.variables) used.insert(variable.name);
    file_scope->note_lookups(used);

    for (const DefinedElement& element : file.elements) {
      if (add(element, element.name) < 0) return;
      set_config(*file_scope, element);
      elements_.back().ports = element.ports;
    }
    for (const Tunnel& group : file.groups) add_tunnel(group);
    connections_ = file.connections;
    for (size_t i = file.elements.size(); i-- > 0;) pending_.push_back({static_cast<int>(i), file_scope});
    while (!pending_.empty() && !exhausted_) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      expand(next.element, next.scope);
    }
    out_.variables.assign(used.begin(), used.end());
    if (exhausted_) return;
    check_tunnels();
    write_elements();
    write_connections();
  }

 private:
  /// An element that may be compound, in the scope whose variables its configuration uses.
  struct Pending {
    int element;
    ScopePtr scope;
  };

  /// A port of a tunnel, as a key.
  static uint64_t key(PortRef port) {
    return static_cast<uint64_t>(static_cast<uint32_t>(port.element)) << 32 | static_cast<uint32_t>(port.port);
  }

  DefinedElement& element(int index) { return elements_[static_cast<size_t>(index)]; }
  const ElementClass& class_of(int index) { return program_.classes[static_cast<size_t>(element(index).type)]; }
  bool is_tunnel(int index) { return element(index).type == kTunnelClass; }
  bool is_primitive(int index) { return class_of(index).overloads.empty() && class_of(index).extends == kNoClass; }

  std::string expand_text(const Scope& scope, const std::string& text) {
    std::string expanded = scope.expand(text, text_budget_);
    charge(expanded.size());
    return expanded;
  }

  /// Sets the configuration of the element that was added last. Values are pasted as text, so a value may unbalance
  /// quotes or parentheses, which makes the result ambiguous.
  void set_config(const Scope& scope, const DefinedElement& defined) {
    DefinedElement& added = elements_.back();
    added.config = expand_text(scope, defined.config);
    if (added.config != defined.config && is_whole_config(defined.config) && !is_whole_config(added.config)) {
      (void)errors_.error_at(defined.landmark,
                             "variables unbalance the quotation marks or parentheses in the configuration of '{}'",
                             added.name);
    }
  }

  /// Counts bytes that the configuration grows by.
  void charge(size_t bytes) {
    text_budget_ -= std::min(text_budget_, bytes);
    if (text_budget_ == 0 && !exhausted_) {
      (void)errors_.error("configuration text too large: more than {} bytes", options_.limits.text_bytes);
      exhausted_ = true;
    }
  }

  /// Adds a copy of a defined element under a new name, still without configuration and ports; -1 at the limit.
  int add(const DefinedElement& defined, std::string name) {
    if (elements_.size() >= options_.limits.elements) {
      if (!exhausted_) {
        (void)errors_.error_at(defined.landmark, "too many elements: more than {}", options_.limits.elements);
      }
      exhausted_ = true;
      return -1;
    }
    charge(name.size());
    const int index = static_cast<int>(elements_.size());
    if (defined.type != kTunnelClass) names_[name] = index;
    elements_.push_back({std::move(name), false, defined.type, {}, defined.landmark, {}});
    return index;
  }

  void add_tunnel(const Tunnel& tunnel) {
    if (tunnel.outside < 0 || tunnel.input < 0 || tunnel.output < 0) return;
    tunnels_.push_back(tunnel);
    for (const int part : {tunnel.outside, tunnel.input, tunnel.output}) tunnel_of_[part] = tunnels_.size() - 1;
  }

  void expand(int index, const ScopePtr& scope);
  const Definition* choose(int index, std::vector<std::string>& values);
  const Definition* shipped(int index);
  void instantiate(int index, const Definition& definition, const ScopePtr& scope);

  void check_tunnels();
  void write_elements();
  void write_connections();
  const Tunnel* tunnel_of(int index) const;
  std::optional<PortRef> behind(PortRef to) const;
  std::optional<PortRef> before(PortRef from) const;

  Program& program_;
  const Options& options_;
  Configuration& out_;
  Errors& errors_;
  size_t text_budget_;
  bool exhausted_ = false;

  std::vector<DefinedElement> elements_;
  std::unordered_map<std::string, int> names_;
  std::vector<Connection> connections_;
  std::vector<Tunnel> tunnels_;
  std::unordered_map<int, size_t> tunnel_of_;
  std::vector<Pending> pending_;  ///< a stack: the contents of a compound element precede those of its neighbor
  std::vector<int> written_;      ///< the index of each element in the result, or -1
};

void Flattener::expand(int index, const ScopePtr& scope) {
  if (is_tunnel(index)) return;
  std::vector<std::string> values;
  const Definition* definition = is_primitive(index) ? nullptr : choose(index, values);
  if (!definition && is_primitive(index)) definition = shipped(index);
  if (!definition) return;

  auto inner = std::make_shared<Scope>(Scope::enclosing(scope, definition->depth), definition->depth);
  for (size_t i = 0; i < definition->formals; ++i) {
    inner->define_argument(definition->variables[i].name, std::move(values[i]));
  }
  for (size_t i = definition->formals; i < definition->variables.size(); ++i) {
    const Variable& variable = definition->variables[i];
    inner->define(variable.name, expand_text(*inner, variable.text));
  }
  instantiate(index, *definition, inner);
}

/// The definition of a compound element that comes with the program; null if the element is none, or after an error.
const Definition* Flattener::shipped(int index) {
  if (!options_.shipped || class_of(index).unknown) return nullptr;
  const DefinedElement& used = element(index);
  const std::string class_name = class_of(index).name;
  const auto body = options_.shipped(
      {used.name, class_name, used.config, used.landmark, used.ports[Side::kInput], used.ports[Side::kOutput]},
      errors_);
  if (!body) return nullptr;
  const int added = Parser(options_, errors_).parse_body(*body, class_name, used.landmark, program_);
  return &program_.definitions[static_cast<size_t>(added)];
}

/// The definition for a compound element. Without one the element gets the primitive class that `...` extends, or stays
/// as it is after an error. A definition that takes the arguments but has other ports is better than nothing: messages
/// about the ports are clearer than one about the class.
const Definition* Flattener::choose(int index, std::vector<std::string>& values) {
  const std::vector<std::string> arguments = split_arguments(element(index).config);
  const PortCounts used = element(index).ports;
  const std::string name = class_of(index).name;
  std::vector<const Definition*> candidates;
  const Definition* closest = nullptr;
  ClassId type = element(index).type;
  while (type != kNoClass) {
    const ElementClass& element_class = program_.classes[static_cast<size_t>(type)];
    if (element_class.unknown) break;
    if (element_class.overloads.empty() && element_class.extends == kNoClass) {
      element(index).type = type;
      return nullptr;
    }
    for (const int overload : element_class.overloads) {
      const Definition& definition = program_.definitions[static_cast<size_t>(overload)];
      candidates.push_back(&definition);
      auto assigned = assign_arguments(arguments, definition);
      if (!assigned) continue;
      const bool exact = definition.inputs == used[Side::kInput] && definition.outputs == used[Side::kOutput];
      if (!exact && closest) continue;
      closest = &definition;
      values = std::move(*assigned);
      if (exact) return closest;
    }
    type = element_class.extends;
  }

  if (candidates.size() != 1 || !closest) {
    const std::string wanted = (name.empty() ? "<anonymous>" : name) +
                               port_signature(used[Side::kInput], used[Side::kOutput], arguments.size());
    (void)errors_.error_at(element(index).landmark, "no match for '{}'", wanted);
    const auto line = [](const Landmark& where, const std::string& text) {
      const std::string at = where.str();
      return at.empty() ? text : at + ": " + text;
    };
    if (!candidates.empty()) errors_.message("{}", line(candidates.front()->landmark, "candidates are:"));
    for (const Definition* candidate : candidates) {
      errors_.message("{}", line(candidate->landmark, "  " + candidate->signature()));
    }
  }
  return closest;
}

void Flattener::instantiate(int index, const Definition& definition, const ScopePtr& scope) {
  const std::string prefix = element(index).name + "/";
  const Landmark landmark = element(index).landmark;
  element(index).type = kTunnelClass;

  std::vector<int> map(definition.elements.size(), -1);
  for (size_t i = 0; i < definition.elements.size(); ++i) {
    const DefinedElement& defined = definition.elements[i];
    std::string name = prefix + defined.name;
    const bool tunnel = defined.type == kTunnelClass;
    if (!tunnel) {
      if (const auto found = names_.find(name); found != names_.end()) {
        (void)errors_.error_at(landmark, "redeclaration of element '{}'", name);
        (void)errors_.error_at(element(found->second).landmark, "'{}' previously declared here", name);
        continue;
      }
      if (options_.is_class && options_.is_class(name)) {
        (void)errors_.error_at(landmark, "'{}' is an element class", name);
      }
    }
    map[i] = add(defined, std::move(name));
    if (map[i] < 0) return;
    if (!tunnel) set_config(*scope, defined);
  }

  add_tunnel({index, map[0], map[1]});
  for (const Tunnel& group : definition.groups) {
    add_tunnel({map[static_cast<size_t>(group.outside)], map[static_cast<size_t>(group.input)],
                map[static_cast<size_t>(group.output)]});
  }
  for (const Connection& connection : definition.connections) {
    const int from = map[static_cast<size_t>(connection.from.element)];
    const int to = map[static_cast<size_t>(connection.to.element)];
    if (from < 0 || to < 0) continue;
    if (connections_.size() >= options_.limits.connections) {
      (void)errors_.error_at(landmark, "too many connections: more than {}", options_.limits.connections);
      exhausted_ = true;
      return;
    }
    connections_.push_back({{from, connection.from.port}, {to, connection.to.port}, connection.landmark});
    element(from).ports.use(Side::kOutput, connection.from.port);
    element(to).ports.use(Side::kInput, connection.to.port);
  }
  for (size_t i = map.size(); i-- > 2;) {
    if (map[i] >= 0) pending_.push_back({map[i], scope});
  }
}

const Tunnel* Flattener::tunnel_of(int index) const {
  const auto found = tunnel_of_.find(index);
  return found == tunnel_of_.end() ? nullptr : &tunnels_[found->second];
}

/// The port at which a connection into a tunnel goes on.
std::optional<PortRef> Flattener::behind(PortRef to) const {
  const Tunnel* tunnel = tunnel_of(to.element);
  if (tunnel && to.element == tunnel->outside) return PortRef{tunnel->input, to.port};
  if (tunnel && to.element == tunnel->output) return PortRef{tunnel->outside, to.port};
  return std::nullopt;
}

/// The port at which a connection out of a tunnel entered it.
std::optional<PortRef> Flattener::before(PortRef from) const {
  const Tunnel* tunnel = tunnel_of(from.element);
  if (tunnel && from.element == tunnel->input) return PortRef{tunnel->outside, from.port};
  if (tunnel && from.element == tunnel->outside) return PortRef{tunnel->output, from.port};
  return std::nullopt;
}

/// Reports ports of groups and compound elements that are used on one side only.
void Flattener::check_tunnels() {
  std::unordered_set<uint64_t> sending, receiving;
  for (const Connection& connection : connections_) {
    if (is_tunnel(connection.from.element)) sending.insert(key(connection.from));
    if (is_tunnel(connection.to.element)) receiving.insert(key(connection.to));
  }
  // What was reported counts as used from then on.
  const auto check = [&](PortRef end, Side side, std::optional<PortRef> other, auto& used) {
    if (!other || !used.insert(key(*other)).second) return;
    const int outside = tunnel_of(end.element)->outside;
    const Landmark& where = element(outside).landmark;
    if (end.element == outside) {
      (void)errors_.error_at(where, "'{}' has no {} {}", element(outside).name, side_name(side), end.port);
    } else {
      (void)errors_.error_at(where, "'{}' {} {} unused", element(outside).name, side_name(side), end.port);
    }
  };
  for (const Connection& connection : connections_) {
    const auto& [from, to, landmark] = connection;
    if (const Tunnel* tunnel = tunnel_of(from.element)) {
      check(from, from.element == tunnel->outside ? Side::kOutput : Side::kInput, before(from), receiving);
    }
    if (const Tunnel* tunnel = tunnel_of(to.element)) {
      check(to, to.element == tunnel->outside ? Side::kInput : Side::kOutput, behind(to), sending);
    }
  }
}

void Flattener::write_elements() {
  written_.assign(elements_.size(), -1);
  for (size_t i = 0; i < elements_.size(); ++i) {
    DefinedElement& defined = elements_[i];
    if (defined.type == kTunnelClass) continue;
    written_[i] = static_cast<int>(out_.elements.size());
    const std::string& class_name = program_.classes[static_cast<size_t>(defined.type)].name;
    charge(class_name.size());
    out_.elements.push_back({std::move(defined.name), class_name, std::move(defined.config), defined.landmark});
  }
}

/// Follows each connection of a real element through tunnels to the real elements behind them.
void Flattener::write_connections() {
  std::unordered_map<uint64_t, std::vector<size_t>> leaving_tunnel;
  for (size_t i = 0; i < connections_.size(); ++i) {
    if (is_tunnel(connections_[i].from.element)) leaving_tunnel[key(connections_[i].from)].push_back(i);
  }

  size_t steps_left = options_.limits.connections;
  std::vector<PortRef> open;
  std::unordered_set<uint64_t> seen;
  for (const Connection& connection : connections_) {
    if (is_tunnel(connection.from.element)) continue;
    open.assign(1, connection.to);
    seen.clear();
    while (!open.empty()) {
      const PortRef to = open.back();
      open.pop_back();
      if (!is_tunnel(to.element)) {
        out_.connections.push_back({{written_[static_cast<size_t>(connection.from.element)], connection.from.port},
                                    {written_[static_cast<size_t>(to.element)], to.port},
                                    connection.landmark});
      } else if (const auto next = behind(to); next && seen.insert(key(*next)).second) {
        if (const auto found = leaving_tunnel.find(key(*next)); found != leaving_tunnel.end()) {
          for (const size_t i : found->second) open.push_back(connections_[i].to);
        }
      }
      if (steps_left-- == 0) {
        (void)errors_.error_at(connection.landmark, "too many connections: more than {}", options_.limits.connections);
        out_.connections.clear();
        return;
      }
    }
  }

  // The first of equal connections stays, with its landmark.
  const auto order = [](const Connection& a, const Connection& b) {
    return std::tie(a.to, a.from) < std::tie(b.to, b.from);
  };
  const auto equal = [](const Connection& a, const Connection& b) { return a.to == b.to && a.from == b.from; };
  std::stable_sort(out_.connections.begin(), out_.connections.end(), order);
  out_.connections.erase(std::unique(out_.connections.begin(), out_.connections.end(), equal), out_.connections.end());
}

}  // namespace

void flatten(Program& program, const Options& options, Configuration& out, Errors& errors) {
  out.requirements = program.requirements;
  Flattener(program, options, out, errors).run();
}

}  // namespace headrace::lang
