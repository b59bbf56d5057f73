// A flat configuration as text.

#include <unordered_map>
#include <vector>

#include "base/argument_text.hh"
#include "lang/lang.hh"

namespace headrace::lang {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

/// Which connection continues a chain behind each connection: one that leaves port 0 of the element that was reached at
/// port 0. Of several, the first that goes to a port 0 is taken, else the last.
std::vector<size_t> chain_connections(const std::vector<Connection>& connections) {
  struct Candidates {
    size_t first_to_zero = kNone, second_to_zero = kNone;
    size_t last = kNone, last_but_one = kNone;
  };
  std::unordered_map<int, Candidates> leaving;
  for (size_t i = 0; i < connections.size(); ++i) {
    if (connections[i].from.port != 0) continue;
    Candidates& candidates = leaving[connections[i].from.element];
    candidates.last_but_one = candidates.last;
    candidates.last = i;
    if (connections[i].to.port != 0) continue;
    if (candidates.first_to_zero == kNone) {
      candidates.first_to_zero = i;
    } else if (candidates.second_to_zero == kNone) {
      candidates.second_to_zero = i;
    }
  }
  std::vector<size_t> next(connections.size(), kNone);
  for (size_t i = 0; i < connections.size(); ++i) {
    if (connections[i].to.port != 0) continue;
    const auto found = leaving.find(connections[i].to.element);
    if (found == leaving.end()) continue;
    // A connection from an element to itself does not continue itself.
    const Candidates& c = found->second;
    next[i] = c.first_to_zero != i ? c.first_to_zero : c.second_to_zero;
    if (next[i] == kNone) next[i] = c.last != i ? c.last : c.last_but_one;
  }
  return next;
}

std::string unparse_connections(const Configuration& configuration) {
  const std::vector<Connection>& connections = configuration.connections;
  const auto name = [&](const PortRef& port) -> const std::string& {
    return configuration.elements[static_cast<size_t>(port.element)].name;
  };
  const std::vector<size_t> next = chain_connections(connections);
  std::vector<bool> continues(connections.size(), false);
  for (const size_t i : next) {
    if (i != kNone) continues[i] = true;
  }

  std::string text;
  std::vector<bool> done(connections.size(), false);
  const auto write_chain = [&](size_t first) {
    text += name(connections[first].from);
    if (const int port = connections[first].from.port) text += " [" + std::to_string(port) + "]";
    for (size_t i = first; i != kNone && !done[i]; i = next[i]) {
      text += i == first ? " -> " : "\n    -> ";
      if (const int port = connections[i].to.port) text += "[" + std::to_string(port) + "] ";
      text += name(connections[i].to);
      done[i] = true;
    }
    text += ";\n";
  };
  for (size_t i = 0; i < connections.size(); ++i) {
    if (!continues[i]) write_chain(i);
  }
  // What is left runs in circles.
  for (size_t i = 0; i < connections.size(); ++i) {
    if (!done[i]) write_chain(i);
  }
  return text;
}

}  // namespace

std::string unparse(const Configuration& configuration) {
  std::string text;
  for (const Requirement& requirement : configuration.requirements) {
    text += text.empty() ? "require(" : ", ";
    text += requirement.kind;
    if (!requirement.value.empty()) text += " " + quote(requirement.value);
  }
  if (!text.empty()) text += ");\n\n";

  for (const ElementDecl& element : configuration.elements) {
    text += element.name + " :: " + element.class_name;
    if (!element.config.empty()) text += "(" + element.config + ")";
    text += ";\n";
  }
  if (!configuration.elements.empty()) text += "\n";
  return text + unparse_connections(configuration);
}

}  // namespace headrace::lang
