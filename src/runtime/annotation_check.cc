#include "graph/annotations.hh"
#include "runtime/router_graph.hh"

namespace headrace {

void Router::Graph::check_annotations(const Router& router, Errors& errors) const {
  const std::vector<Element*> elements = nodes(router);
  std::vector<graph::Node> graph_nodes;
  std::vector<std::vector<RegionInfo>> annotations;
  for (const Element* e : elements) {
    graph_nodes.push_back({e->declaration(), e->info().ports, e->info().processing, e->info().flow, e->landmark()});
    annotations.push_back(e->annotations());
  }
  for (const graph::AnnotationClash& c : graph::find_annotation_clashes(graph_nodes, edges, annotations)) {
    const Element& reader = *elements[static_cast<size_t>(c.reader)];
    errors.warning_at(reader.landmark(), "'{}' reads annotation {}, but '{}' has written {} there",
                      reader.declaration(), graph::annotation_text(c.read),
                      elements[static_cast<size_t>(c.writer)]->declaration(), graph::annotation_text(c.written));
  }
}

}  // namespace headrace
