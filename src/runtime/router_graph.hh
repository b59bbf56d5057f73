#pragma once
/// \file
/// What a router keeps of its graph for those who look at it as a whole.

#include <vector>

#include "graph/graph.hh"
#include "headrace/router.hh"

namespace headrace {

struct Router::Graph {
  std::vector<graph::Edge> edges;  // as Router::connections()
  graph::Resolved resolved;

  static std::vector<Element*> nodes(const Router& router) {
    std::vector<Element*> all;
    for (const auto& e : router.elements()) all.push_back(e.get());
    return all;
  }
};

}  // namespace headrace
