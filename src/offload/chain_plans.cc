#include "offload/chain_plans.hh"

#include <fmt/format.h>

#include <map>

#include "graph/annotations.hh"
#include "headrace/device/chain_entry.hh"

namespace headrace::offload {

namespace {

/// "a, b and 3 more"
std::string list(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

bool any(const std::vector<graph::Mode>& ports, graph::Mode mode) {
  return std::find(ports.begin(), ports.end(), mode) != ports.end();
}

}  // namespace

namespace {

/// Finds the chains of elements without an obstacle. Adds them to `all`.
/// \param shortest the fewest elements of a chain
graph::Chains find_plans(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                         const graph::Resolved& resolved, const std::vector<const char*>& obstacle, size_t shortest,
                         ChainPlans& all) {
  std::vector<bool> shader;
  for (const char* const o : obstacle) shader.push_back(o == nullptr);
  std::vector<bool> ends;
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto* e = dynamic_cast<const ShaderElementBase*>(elements[i]);
    ends.push_back(e && e->takes_packets());
  }
  graph::Chains found = graph::find_chains(shader, ends, edges, resolved);
  std::erase_if(found.chains, [&](const graph::Chain& chain) { return chain.nodes.size() < shortest; });
  std::vector<std::vector<RegionInfo>> annotations;
  for (const Element* e : elements) {
    annotations.push_back(e->annotations());
    // Everywhere packets are told apart by the hash that they came with.
    if (!e->info().shader) annotations.back().push_back(declared(Read{anno::rx_hash}).front());
  }
  const std::vector<uint64_t> live = graph::live_annotations(edges, annotations);
  for (const graph::Chain& chain : found.chains)
    all.plans.emplace_back(chain, elements, edges, resolved.back_edges, live, all.images);
  return found;
}

}  // namespace

ChainPlans plan_cpu_chains(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                           const graph::Resolved& resolved, int shortest) {
  std::vector<const char*> obstacle;
  for (const Element* e : elements)
    obstacle.push_back(!dynamic_cast<const ShaderElementBase*>(e) ? "host element"
                       : e->ninputs() != 1                        ? "several inputs"
                                                                  : nullptr);
  ChainPlans all;
  (void)find_plans(elements, edges, resolved, obstacle, static_cast<size_t>(shortest), all);
  return all;
}

ChainPlans plan_chains(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                       const graph::Resolved& resolved) {
  std::vector<const char*> obstacle;  // by node
  for (const Element* e : elements) obstacle.push_back(obstacle_to_offload(*e));
  ChainPlans all;
  const graph::Chains found = find_plans(elements, edges, resolved, obstacle, 1, all);
  std::vector<bool> planned(elements.size(), false);
  for (const graph::Chain& chain : found.chains)
    for (const int node : chain.nodes) planned[static_cast<size_t>(node)] = true;

  std::map<std::string, std::vector<std::string>> elements_by_reason;
  for (size_t i = 0; i < elements.size(); ++i) {
    const graph::NodePorts& ports = resolved.nodes[i];
    // Sources, sinks and queues do not process packets.
    const bool passes = any(ports.inputs, graph::Mode::kPush) && any(ports.outputs, graph::Mode::kPush);
    const bool is_shader = elements[i]->info().shader;
    if (planned[i] || (!is_shader && !passes) || dynamic_cast<const ChainEntry*>(elements[i])) continue;
    const char* why = !passes && is_shader && any(ports.inputs, graph::Mode::kPull) ? "on a pull path"
                      : obstacle[i]                                                 ? obstacle[i]
                                    : "receives only packets that come back from a chain";
    elements_by_reason[why].push_back(elements[i]->name());
  }
  for (const auto& [why, names] : elements_by_reason) all.on_cpu.push_back(fmt::format("{} ({})", list(names), why));

  std::map<graph::Bypass::Reason, std::vector<std::string>> connections_by_reason;
  for (const graph::Bypass& b : found.bypasses) {
    const graph::Edge& e = edges[static_cast<size_t>(b.edge)];
    const Element& from = *elements[static_cast<size_t>(e.from.node)];
    connections_by_reason[b.reason].push_back(fmt::format("{}{} to {}", from.name(),
                                                          from.noutputs() > 1 ? fmt::format(" [{}]", e.from.port) : "",
                                                          elements[static_cast<size_t>(e.to.node)]->name()));
  }
  for (const auto& [why, names] : connections_by_reason)
    all.on_cpu.push_back(fmt::format("packets from {} ({})", list(names),
                                     why == graph::Bypass::Reason::kComesBack
                                         ? "they come back from the chain that they would enter"
                                         : "they close a cycle in their chain"));
  return all;
}

}  // namespace headrace::offload
