#include "graph/chains.hh"

#include <algorithm>
#include <numeric>

namespace headrace::graph {

namespace {

using Nodes = std::vector<bool>;  // a set of nodes

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

class Finder {
 public:
  Finder(const std::vector<bool>& shader, const std::vector<bool>& ends, const std::vector<Edge>& edges,
         const Resolved& resolved)
      : n_(shader.size()),
        ends_(ends),
        edges_(edges),
        push_(edges.size()),
        inner_(edges.size()),
        in_chain_(n_, false),
        leaving_(n_) {
    for (size_t e = 0; e < edges.size(); ++e) leaving_[edges[e].from.node].push_back(static_cast<int>(e));
    for (size_t e = 0; e < edges.size(); ++e)
      push_[e] = resolved.nodes[edges[e].from.node].outputs[edges[e].from.port] == Mode::kPush;
    // A shader on a pull path is in no chain, even if it pushes packets elsewhere.
    for (size_t e = 0; e < edges.size(); ++e)
      if (push_[e] && shader[edges[e].to.node]) in_chain_[edges[e].to.node] = true;
    for (size_t e = 0; e < edges.size(); ++e)
      inner_[e] = push_[e] && in_chain_[edges[e].from.node] && in_chain_[edges[e].to.node] && !ends[edges[e].from.node];
    for (const int e : resolved.back_edges) inner_[e] = false;
    find_roots();
  }

  Chains run() {
    Groups groups(n_);
    for (size_t e = 0; e < edges_.size(); ++e)
      if (inner_[e]) groups.join(edges_[e].from.node, edges_[e].to.node);
    order_ = sort();
    std::vector<bool> seen(n_, false);
    for (const int first : order_) {
      if (seen[first]) continue;
      Nodes group(n_, false);
      for (const int node : order_)
        if (groups.find(node) == groups.find(first)) group[node] = seen[node] = true;
      std::vector<int> arriving;
      for (size_t e = 0; e < edges_.size(); ++e)
        if (push_[e] && group[edges_[e].to.node] && !inner_[e]) arriving.push_back(static_cast<int>(e));
      divide(group, arriving);
    }
    std::sort(out_.bypasses.begin(), out_.bypasses.end(),
              [](const Bypass& a, const Bypass& b) { return a.edge < b.edge; });
    return std::move(out_);
  }

 private:
  /// Packets appear at nodes without an input. In a part of the graph that none of these reaches, they may appear
  /// anywhere.
  void find_roots() {
    std::vector<int> entered(n_, 0);
    for (const Edge& e : edges_) ++entered[e.to.node];
    for (size_t i = 0; i < n_; ++i)
      if (entered[i] == 0) roots_.push_back(static_cast<int>(i));
    const Nodes reached = reach(roots_, Nodes(n_, false));
    for (size_t i = 0; i < n_; ++i)
      if (!reached[i]) roots_.push_back(static_cast<int>(i));
  }

  /// Topological order of all nodes of chains (Kahn), smallest number first.
  std::vector<int> sort() const {
    std::vector<int> waits(n_, 0), ready, order;
    for (size_t e = 0; e < edges_.size(); ++e) waits[edges_[e].to.node] += inner_[e];
    for (size_t i = n_; i-- > 0;)
      if (in_chain_[i] && waits[i] == 0) ready.push_back(static_cast<int>(i));
    while (!ready.empty()) {
      const int node = ready.back();
      ready.pop_back();
      order.push_back(node);
      for (size_t i = leaving_[node].size(); i-- > 0;) {
        const int e = leaving_[node][i];
        if (inner_[e] && --waits[edges_[e].to.node] == 0) ready.push_back(edges_[e].to.node);
      }
    }
    return order;
  }

  /// The nodes that packets at `from` can come to, over any connection but into nodes of `without`.
  Nodes reach(const std::vector<int>& from, const Nodes& without) const {
    Nodes reached(n_, false);
    std::vector<int> stack;
    const auto visit = [&](int node) {
      if (reached[node] || without[node]) return;
      reached[node] = true;
      stack.push_back(node);
    };
    for (const int node : from) visit(node);
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      for (const int e : leaving_[node]) visit(edges_[e].to.node);
    }
    return reached;
  }

  /// The shaders that packets from `entries` pass before they leave for another element.
  Nodes passed(const std::vector<int>& entries) const {
    Nodes all(n_, false);
    for (const int e : entries) all[edges_[e].to.node] = true;
    for (const int node : order_)
      if (all[node])
        for (const int e : leaving_[node])
          if (inner_[e]) all[edges_[e].to.node] = true;
    return all;
  }

  /// True if packets can come by each of `entries` that have not passed `members`.
  bool fresh(const std::vector<int>& entries, const Nodes& members) const {
    const Nodes reached = reach(roots_, members);
    return std::all_of(entries.begin(), entries.end(), [&](int e) { return reached[edges_[e].from.node]; });
  }

  struct Draft {
    std::vector<int> entries;
    Nodes members;

    bool meets(const Draft& other) const {
      for (size_t i = 0; i < members.size(); ++i)
        if (members[i] && other.members[i]) return true;
      return false;
    }
  };

  /// Makes chains for the packets that arrive at a group of connected shaders: one if possible.
  void divide(const Nodes& group, const std::vector<int>& arriving) {
    std::vector<Draft> drafts;
    for (const int e : arriving) {
      if (group[edges_[e].from.node] && !ends_[edges_[e].from.node]) {
        out_.bypasses.push_back({e, Bypass::Reason::kClosesCycle});
        continue;
      }
      Draft draft{{e}, passed({e})};
      if (!fresh(draft.entries, draft.members)) {
        out_.bypasses.push_back({e, Bypass::Reason::kComesBack});
        continue;
      }
      for (size_t i = 0; i < drafts.size();) {
        Draft both{drafts[i].entries, {}};
        both.entries.insert(both.entries.end(), draft.entries.begin(), draft.entries.end());
        both.members = passed(both.entries);
        if (!draft.meets(drafts[i]) || !fresh(both.entries, both.members)) {
          ++i;
          continue;
        }
        draft = std::move(both);
        drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(i));
        i = 0;
      }
      drafts.push_back(std::move(draft));
    }
    for (Draft& draft : drafts) {
      Chain chain;
      for (const int node : order_)
        if (draft.members[node]) chain.nodes.push_back(node);
      chain.entries = std::move(draft.entries);
      std::sort(chain.entries.begin(), chain.entries.end());
      out_.chains.push_back(std::move(chain));
    }
  }

  const size_t n_;
  const std::vector<bool>& ends_;
  const std::vector<Edge>& edges_;
  std::vector<bool> push_, inner_;  // by edge
  Nodes in_chain_;
  std::vector<std::vector<int>> leaving_;  // edges, by node
  std::vector<int> roots_, order_;
  Chains out_;
};

}  // namespace

Chains find_chains(const std::vector<bool>& shader, const std::vector<bool>& ends, const std::vector<Edge>& edges,
                   const Resolved& resolved) {
  return Finder(shader, ends, edges, resolved).run();
}

}  // namespace headrace::graph
