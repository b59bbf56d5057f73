#include <set>

#include "graph/graph.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

/// Walks from a port against (or along) the connections until storage elements answer. If a path ends without a
/// notifier, its state is unknown, so the signal is always active.
class Search {
 public:
  Search(NotifierKind kind, Task* listener) : kind_(kind), listener_(listener) {}

  void upstream(const Element* element, int input) {
    bool any = false;
    for (const Router::Connection& c : element->router().connections()) {
      if (c.to != element || c.to_port != input) continue;
      any = true;
      visit(c.from, c.from_port, true);
    }
    if (!any) open_end_ = true;
  }
  void downstream(const Element* element, int output) {
    bool any = false;
    for (const Router::Connection& c : element->router().connections()) {
      if (c.from != element || c.from_port != output) continue;
      any = true;
      visit(c.to, c.to_port, false);
    }
    if (!any) open_end_ = true;
  }

  std::vector<Notifier*> result() { return open_end_ ? std::vector<Notifier*>{} : found_; }

 private:
  void visit(Element* e, int port, bool is_output) {
    if (!seen_.insert({e, port}).second) return;
    if (Notifier* n = e->notifier(kind_, is_output, port)) {
      n->add_listener(listener_);
      found_.push_back(n);
      return;
    }
    bool went_on = false;
    if (is_output) {
      if (e->output_is_push(port)) {
        open_end_ = true;
        return;
      }
      for (int i = 0; i < e->ninputs(); ++i)
        if (e->input_is_pull(i) && graph::flows(e->info().flow, i, port)) {
          upstream(e, i);
          went_on = true;
        }
    } else {
      for (int o = 0; o < e->noutputs(); ++o)
        if (e->output_is_push(o) && graph::flows(e->info().flow, port, o)) {
          downstream(e, o);
          went_on = true;
        }
    }
    if (!went_on) open_end_ = true;
  }

  NotifierKind kind_;
  Task* listener_;
  std::set<std::pair<Element*, int>> seen_;
  std::vector<Notifier*> found_;
  bool open_end_ = false;
};

}  // namespace

Signal Signal::upstream_nonempty(Element* element, int input, Task* listener) {
  Search search(NotifierKind::kNonempty, listener);
  search.upstream(element, input);
  Signal signal;
  signal.notifiers_ = search.result();
  return signal;
}

Signal Signal::downstream_nonfull(Element* element, int output, Task* listener) {
  Search search(NotifierKind::kNonfull, listener);
  search.downstream(element, output);
  Signal signal;
  signal.notifiers_ = search.result();
  return signal;
}

}  // namespace headrace
