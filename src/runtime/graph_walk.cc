#include "headrace/graph_walk.hh"

#include <algorithm>
#include <set>

#include "graph/graph.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

class GraphWalk {
 public:
  GraphWalk(bool down, const std::function<bool(Element&)>& wanted) : down_(down), wanted_(wanted) {}

  /// Follows the connections of an output when the walk goes downstream, of an input when it goes upstream.
  void follow(const Element& e, int port) {
    for (const Router::Connection& c : e.router().connections()) {
      if (down_ && c.from == &e && c.from_port == port) visit(*c.to, c.to_port);
      if (!down_ && c.to == &e && c.to_port == port) visit(*c.from, c.from_port);
    }
  }

  std::vector<Element*> found;

 private:
  void visit(Element& e, int port) {
    if (!seen_.insert({&e, port}).second) return;
    if (wanted_(e)) {
      if (std::find(found.begin(), found.end(), &e) == found.end()) found.push_back(&e);
      return;
    }
    const char* flow = e.info().flow;
    for (int i = 0; i < (down_ ? e.noutputs() : e.ninputs()); ++i)
      if (down_ ? graph::flows(flow, port, i) : graph::flows(flow, i, port)) follow(e, i);
  }

  const bool down_;
  const std::function<bool(Element&)>& wanted_;
  std::set<std::pair<Element*, int>> seen_;
};

}  // namespace

std::vector<Element*> nearest_downstream(const Element& from, int output, const std::function<bool(Element&)>& wanted) {
  GraphWalk walk(true, wanted);
  walk.follow(from, output);
  return walk.found;
}

std::vector<Element*> nearest_upstream(const Element& from, int input, const std::function<bool(Element&)>& wanted) {
  GraphWalk walk(false, wanted);
  walk.follow(from, input);
  return walk.found;
}

}  // namespace headrace
