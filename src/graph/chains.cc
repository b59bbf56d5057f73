#include "graph/chains.hh"

#include <algorithm>
#include <numeric>

namespace headrace::graph {

namespace {

/// Disjoint sets with path halving.
class Groups {
 public:
  explicit Groups(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(int a, int b) { parent_[find(a)] = find(b); }

 private:
  std::vector<int> parent_;
};

}  // namespace

std::vector<Chain> find_chains(const std::vector<bool>& shader, const std::vector<Edge>& edges,
                               const Resolved& resolved) {
  const size_t n = shader.size();
  std::vector<bool> usable(edges.size(), true);
  for (const int e : resolved.back_edges) usable[e] = false;
  for (size_t e = 0; e < edges.size(); ++e) {
    const Edge& edge = edges[e];
    if (resolved.nodes[edge.from.node].outputs[edge.from.port] != Mode::kPush) usable[e] = false;
  }
  // A shader on a pull path is in no chain, even if it pushes packets elsewhere.
  std::vector<bool> in_chain(n, false);
  for (size_t e = 0; e < edges.size(); ++e)
    if (shader[edges[e].to.node] && usable[e]) in_chain[edges[e].to.node] = true;
  const auto inside = [&](size_t e) { return usable[e] && in_chain[edges[e].from.node] && in_chain[edges[e].to.node]; };

  Groups groups(n);
  std::vector<int> waits(n, 0);
  for (size_t e = 0; e < edges.size(); ++e) {
    if (!inside(e)) continue;
    groups.join(edges[e].from.node, edges[e].to.node);
    ++waits[edges[e].to.node];
  }

  // Topological order of all nodes (Kahn), smallest number first, then divided into groups.
  std::vector<int> ready, order;
  for (size_t i = n; i-- > 0;)
    if (in_chain[i] && waits[i] == 0) ready.push_back(static_cast<int>(i));
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (size_t e = edges.size(); e-- > 0;)
      if (inside(e) && edges[e].from.node == node && --waits[edges[e].to.node] == 0) ready.push_back(edges[e].to.node);
  }
  std::vector<Chain> chains;
  std::vector<int> chain_of(n, -1);
  for (const int node : order) {
    const int group = groups.find(node);
    if (chain_of[group] < 0) {
      chain_of[group] = static_cast<int>(chains.size());
      chains.emplace_back();
    }
    chains[chain_of[group]].nodes.push_back(node);
  }

  for (Chain& chain : chains) {
    // Everything that packets from the chain can reach, over any connection.
    std::vector<bool> fed(n, false);
    std::vector<int> stack = chain.nodes;
    for (const int node : stack) fed[node] = true;
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      for (const Edge& e : edges) {
        if (e.from.node != node || fed[e.to.node]) continue;
        fed[e.to.node] = true;
        stack.push_back(e.to.node);
      }
    }
    for (size_t e = 0; e < edges.size(); ++e) {
      const bool mine = std::find(chain.nodes.begin(), chain.nodes.end(), edges[e].to.node) != chain.nodes.end();
      if (mine && usable[e] && !inside(e) && !fed[edges[e].from.node]) chain.entries.push_back(static_cast<int>(e));
    }
  }
  std::erase_if(chains, [](const Chain& c) { return c.entries.empty(); });
  return chains;
}

}  // namespace headrace::graph
