#pragma once
/// \file
/// The router's graph, for code that examines it as a whole.

#include <vector>

#include "graph/graph.hh"
#include "headrace/router.hh"

namespace headrace {

struct Router::Graph {
  std::vector<graph::Edge> edges;  // as Router::connections()
  graph::Resolved resolved;

  /// Warns about elements that use the same bytes of annotations for different things.
  void check_annotations(const Router& router, Errors& errors) const;

  static std::vector<Element*> nodes(const Router& router) {
    std::vector<Element*> all;
    for (const auto& e : router.elements()) all.push_back(e.get());
    return all;
  }
};

}  // namespace headrace
