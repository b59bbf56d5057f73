#pragma once
/// \file
/// Chains: which shaders can run together. Pure functions over values.

#include <vector>

#include "graph/graph.hh"

namespace headrace::graph {

/// A maximal connected group of shaders on push paths.
struct Chain {
  /// Nodes, each after all nodes that push to it.
  std::vector<int> nodes;
  /// Push connections by which packets enter from elsewhere (indices into the edges). Connections from elements that
  /// the chain itself feeds are left out: packets that come back are processed on the CPU.
  std::vector<int> entries;
};

/// Finds the chains of a graph.
/// \param shader for each node, whether it can be part of a chain
/// \param resolved its back edges are never part of a chain
std::vector<Chain> find_chains(const std::vector<bool>& shader, const std::vector<Edge>& edges,
                               const Resolved& resolved);

}  // namespace headrace::graph
