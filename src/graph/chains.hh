#pragma once
/// \file
/// Chains: which shaders can run together. Pure functions over values.

#include <vector>

#include "graph/graph.hh"

namespace headrace::graph {

/// A maximal group of shaders on push paths that packets pass without leaving it. A shader is in several chains if
/// packets come to it both directly and by way of a host element that the first chain feeds: in
///
///     lookup -> encap;  lookup[1] -> HostElement -> cipher -> encap
///
/// the chains are {lookup, encap} and {cipher, encap}.
struct Chain {
  /// Nodes, each after all nodes that push to it.
  std::vector<int> nodes;
  /// Push connections by which packets enter from elsewhere (indices into the edges).
  std::vector<int> entries;
};

/// A push connection to a shader of a chain whose packets are processed on the CPU.
struct Bypass {
  enum class Reason : unsigned char {
    kComesBack,   ///< only packets that have passed the chain come by it
    kClosesCycle  ///< it leads back to an earlier element of the chain
  };
  int edge;
  Reason reason;
  bool operator==(const Bypass&) const = default;
};

struct Chains {
  std::vector<Chain> chains;
  std::vector<Bypass> bypasses;
};

/// Finds the chains of a graph. A connection is an entry if packets can come by it that have not passed its chain
/// before, even if others come back to it.
/// \param shader for each node, whether it can be part of a chain
/// \param ends for each node, whether chains end behind it: the host decides which packets go on
/// \param resolved its back edges connect no elements of a chain, but may be entries
Chains find_chains(const std::vector<bool>& shader, const std::vector<bool>& ends, const std::vector<Edge>& edges,
                   const Resolved& resolved);

}  // namespace headrace::graph
