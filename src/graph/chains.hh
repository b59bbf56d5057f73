#pragma once
/// \file
/// Chains: which shaders can run together. Pure functions over values.

#include <vector>

#include "graph/graph.hh"

namespace headrace::graph {

/// A maximal connected group of shaders on push paths.
struct Chain {
  /// Nodes, each behind all that push to it.
  std::vector<int> nodes;
  /// Push connections by which packets come in from elsewhere (indices into the edges). Those from elements that the
  /// chain itself feeds are left out: what comes back is handled where it is.
  std::vector<int> entries;
};

/// Finds the chains of a graph.
/// \param shader for each node, whether it can be part of a chain
/// \param back_edges as Resolved has them: they are never part of a chain
std::vector<Chain> find_chains(const std::vector<bool>& shader, const std::vector<Edge>& edges,
                               const Resolved& resolved);

}  // namespace headrace::graph
