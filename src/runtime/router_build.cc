// How a router is made of a configuration.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/argument_text.hh"
#include "base/device_addresses.hh"
#include "graph/graph.hh"
#include "headrace/compound.hh"
#include "headrace/router.hh"
#include "headrace/touches_machine.hh"
#include "lang/lang.hh"
#include "offload/chain_plans.hh"
#include "offload/cpu_chains.hh"
#include "offload/engine.hh"
#include "offload/placement.hh"
#include "runtime/name_scope.hh"
#include "runtime/packages.hh"
#include "runtime/router_graph.hh"
#include "runtime/router_shims.hh"
#include "runtime/runtime.hh"

namespace headrace {

std::unique_ptr<Router> Router::create(const lang::Configuration& configuration, Runtime& runtime, Errors& errors,
                                       const RouterOptions& options, Router* predecessor) {
  std::unique_ptr<Router> router(new Router(runtime, options, predecessor));
  const int before = errors.error_count();
  const Status status = router->build(configuration, errors);
  if (status.ok() && errors.error_count() == before) return router;
  errors.conclude("Router could not be initialized!");
  return nullptr;
}

bool Router::look_only() const { return options_.only_configure || runtime_.look_only(); }

Status Router::build(const lang::Configuration& configuration, Errors& errors) {
  source_ = configuration.source;
  for (const lang::Requirement& r : configuration.requirements) {
    requirements_.push_back(r.value.empty() ? r.kind : r.kind + " " + r.value);
    if (r.kind == "package") (void)load_package(r.value, r.landmark, errors);
  }
  if (!make_elements(configuration, errors)) return Status::failed();
  if (!connect(configuration, errors)) return Status::failed();
  add_root_handlers();
  if (!configure_all(errors)) return Status::failed();
  if (options_.profile) insert_probes();
  for (const auto& e : elements_) add_element_handlers(*e);
  if (options_.only_configure) return {};
  if (!initialize_all(errors)) return Status::failed();
  set_gates();
  graph_->check_annotations(*this, errors);
  if (!insert_engine(errors).ok()) return Status::failed();
  insert_cpu_chains();
  return {};
}

Status Router::make_elements(const lang::Configuration& configuration, Errors& errors) {
  Status status;
  for (const lang::ElementDecl& decl : configuration.elements) {
    const ElementInfo* info = find_element_info(decl.class_name);
    if (!info) {
      status &= errors.error_at(decl.landmark, "unknown element class '{}'{}", decl.class_name,
                                suggest_class(decl.class_name));
      continue;
    }
    if (is_compound(*info)) {
      status &= errors.error_at(decl.landmark, "'{} :: {}' is a compound element, and nothing has expanded it",
                                decl.name, decl.class_name);
      continue;
    }
    std::unique_ptr<Element> e = info->make();
    e->info_ = info;
    e->router_ = this;
    e->index_ = static_cast<int>(elements_.size());
    e->name_ = decl.name;
    e->configuration_ = decl.config;
    e->arguments_ = lang::split_arguments(decl.config);
    e->landmark_ = decl.landmark;
    if (predecessor_)
      if (Element* before = predecessor_->find(decl.name); before && before->info_ == info) e->predecessor_ = before;
    by_name_.emplace(decl.name, e.get());
    elements_.push_back(std::move(e));
  }
  home_threads_.assign(elements_.size(), -1);
  scopes_.resize(elements_.size());
  order_.resize(elements_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return elements_[a]->configure_phase() < elements_[b]->configure_phase(); });
  return status;
}

Status Router::connect(const lang::Configuration& configuration, Errors& errors) {
  std::vector<graph::Node> nodes;
  for (const auto& e : elements_)
    nodes.push_back({e->declaration(), e->info_->ports, e->info_->processing, e->info_->flow, e->landmark_});
  std::vector<graph::Edge>& edges = graph_->edges;
  for (const lang::Connection& c : configuration.connections)
    edges.push_back({{c.from.element, c.from.port}, {c.to.element, c.to.port}, c.landmark});
  graph::Resolved& resolved = graph_->resolved;
  if (!graph::resolve(nodes, edges, resolved, errors)) return Status::failed();

  for (size_t i = 0; i < elements_.size(); ++i) {
    Element& e = *elements_[i];
    const graph::NodePorts& ports = resolved.nodes[i];
    e.inputs_.resize(ports.inputs.size());
    e.outputs_.resize(ports.outputs.size());
    for (const graph::Mode m : ports.inputs) e.input_push_.push_back(m == graph::Mode::kPush);
    for (const graph::Mode m : ports.outputs) e.output_push_.push_back(m == graph::Mode::kPush);
  }
  for (const graph::Edge& edge : edges) {
    Element* from = elements_[edge.from.node].get();
    Element* to = elements_[edge.to.node].get();
    connections_.push_back({from, edge.from.port, to, edge.to.port});
    from->outputs_[edge.from.port] = Port(to, edge.to.port);
    to->inputs_[edge.to.port] = Port(from, edge.from.port);
  }
  for (const Connection& c : connections_) {
    auto* const from = dynamic_cast<ShaderElementBase*>(c.from);
    const auto* const to = dynamic_cast<const ShaderElementBase*>(c.to);
    if (from && to && c.from_port == 0 && to->prefetches()) from->prefetch_for(*to);
  }
  insert_back_edge_guards(resolved.back_edges);
  return {};
}

void Router::insert_back_edge_guards(const std::vector<int>& back_edges) {
  static const ElementInfo kInfo{"BackEdge", "1/1", "h/h", "x/x", "", false, nullptr};
  for (const int index : back_edges) {
    const Connection& c = connections_[index];
    auto guard = std::make_unique<BackEdge>();
    guard->info_ = &kInfo;
    guard->router_ = this;
    guard->name_ = c.to->name();
    guard->outputs_ = {Port(c.to, c.to_port)};
    guard->output_push_ = {true};
    c.from->outputs_[c.from_port] = Port(guard.get(), 0);
    guards_[index] = std::move(guard);
  }
}

Status Router::insert_engine(Errors& errors) {
  const int before = errors.error_count();
  std::vector<int> worker_nodes;
  for (int w = 0; w < threads(); ++w) worker_nodes.push_back(offload::node_of_cpu(runtime_.cpu_of(w)));
  engine_ = offload::Engine::create(graph_->nodes(*this), graph_->edges, graph_->resolved, options_.offload,
                                    worker_nodes, predecessor_ ? predecessor_->engine() : nullptr, errors);
  if (!engine_) return errors.error_count() == before ? Status() : Status::failed();
  for (const offload::Engine::Shim& shim : engine_->shims()) put_in_front(shim.edge, *shim.element);
  engine_->add_handlers(root_handlers_);
  if (engine_->opening()) runtime_.want_control_thread();
  engine_->start({.post = [this](std::function<void()> action) { runtime_.post_later(std::move(action)); },
                  .quiesce = [this](const std::function<void()>& action) { runtime_.quiesce(action); },
                  .measure = [this](int w, offload::LoadMeter* meter) { worker(w).set_meter(meter); }});
  return {};
}

int Router::add_gate(const Element& element) {
  const int gate = Task::kChainGates + static_cast<int>(gated_.size());
  if (gate == Task::kGates) return -1;
  gated_.push_back(&element);
  return gate;
}

void Router::set_gates() {
  std::vector<std::vector<size_t>> before(elements_.size()), behind(elements_.size());  // by push connections
  for (const Connection& c : connections_) {
    if (!c.from->output_is_push(c.from_port)) continue;
    behind[static_cast<size_t>(c.from->index_)].push_back(static_cast<size_t>(c.to->index_));
    before[static_cast<size_t>(c.to->index_)].push_back(static_cast<size_t>(c.from->index_));
  }
  const auto reach = [&](const Element& from, const std::vector<std::vector<size_t>>& by) {
    std::vector<bool> reached(elements_.size());
    std::vector<size_t> left = {static_cast<size_t>(from.index_)};
    while (!left.empty()) {
      const size_t at = left.back();
      left.pop_back();
      if (reached[at]) continue;
      reached[at] = true;
      left.insert(left.end(), by[at].begin(), by[at].end());
    }
    return reached;
  };
  for (size_t i = 0; i < gated_.size(); ++i) {
    const std::vector<bool> feeds = reach(*gated_[i], before), fed = reach(*gated_[i], behind);
    const uint64_t gate = uint64_t{1} << (Task::kChainGates + i);
    for (const auto& e : elements_)
      if (feeds[static_cast<size_t>(e->index_)] && !fed[static_cast<size_t>(e->index_)])
        for (Task* task : e->tasks()) task->add_gates(gate);
  }
}

void Router::put_in_front(int connection, ChainEntry& entry) {
  static const ElementInfo kInfo{"Offload", "1/1", "h/h", "x/x", "Offload", false, nullptr};
  const Connection& c = connections_[static_cast<size_t>(connection)];
  Element& e = entry;
  e.info_ = &kInfo;
  e.router_ = this;
  e.name_ = "(before " + c.to->name() + ")";
  // Behind a guard, so that it sees the packets that go to devices.
  const auto guard = guards_.find(connection);
  Port& port = guard == guards_.end() ? c.from->outputs_[c.from_port] : guard->second->outputs_[0];
  e.outputs_ = {port};
  e.output_push_ = {true};
  port = Port(&e, 0);
}

void Router::insert_cpu_chains() {
  if (options_.compile.mode == CompileOptions::Mode::kOff || look_only()) return;
  if (!engine_)
    cpu_plans_ = std::make_unique<offload::ChainPlans>(
        offload::plan_cpu_chains(graph_->nodes(*this), graph_->edges, graph_->resolved, options_.compile.shortest));
  const std::vector<offload::Plan>& plans = engine_ ? engine_->plans() : cpu_plans_->plans;
  if (plans.empty()) return;
  cpu_chains_ = std::make_unique<offload::CpuChains>(plans, engine_ ? engine_->images() : cpu_plans_->images, threads(),
                                                     options_.compile, options_.profile);
  for (size_t p = 0; p < plans.size(); ++p)
    for (size_t e = 0; e < plans[p].entries().size(); ++e) {
      const int edge = plans[p].entries()[e].edge;
      ChainEntry* entry = engine_ ? engine_->entry(edge) : nullptr;
      if (!entry) entry = dynamic_cast<ChainEntry*>(connections_[static_cast<size_t>(edge)].from);
      if (!entry) {
        cpu_entries_.push_back(std::make_unique<ChainEntry>());
        entry = cpu_entries_.back().get();
        put_in_front(edge, *entry);
        // A compiled chain passes by the probe behind the entry.
        auto* const probe = dynamic_cast<Probe*>(entry->outputs_[0].element());
        if (ThreadCounters* const source = probe ? probe->release_source() : nullptr) {
          const Connection& c = connections_[static_cast<size_t>(edge)];
          entry_profiles_.push_back(std::make_unique<ThreadCounters>(Probe::kCounters));
          probes_.push_back(std::make_unique<Probe>(entry, 0, *entry_profiles_.back(), source));
          c.from->outputs_[c.from_port] = Port(probes_.back().get(), 0);
        }
      }
      cpu_chains_->add_entry(*entry, static_cast<int>(p), static_cast<int>(e));
    }
  root_handlers_.read("chains", [this] { return cpu_chains_->describe() + '\n'; });
  cpu_chains_->start();
}

void Router::insert_probes() {
  for (size_t i = 0; i < elements_.size(); ++i) profiles_.push_back(std::make_unique<ThreadCounters>(Probe::kCounters));
  const auto wrap = [this](const Element* owner, Port& port) {
    if (!port.connected() || port.element()->index_ < 0) return;  // guards are not profiled
    ThreadCounters* source = owner->ninputs() == 0 ? profiles_[owner->index_].get() : nullptr;
    auto probe = std::make_unique<Probe>(port.element(), port.port(), *profiles_[port.element()->index_], source);
    port = Port(probe.get(), 0);
    probes_.push_back(std::move(probe));
  };
  for (const auto& e : elements_) {
    for (int i = 0; i < e->ninputs(); ++i)
      if (e->input_is_pull(i)) wrap(e.get(), e->inputs_[i]);
    for (int i = 0; i < e->noutputs(); ++i)
      if (e->output_is_push(i)) wrap(e.get(), e->outputs_[i]);
  }
}

Status Router::configure_all(Errors& errors) {
  const DeviceSnapshot devices;
  Status status;
  for (const int i : order_) {
    Element& e = *elements_[i];
    Errors::Context context(errors, e.landmark_, fmt::format("While configuring '{}':", e.declaration()));
    const int before = errors.error_count();
    Args args(e.arguments_, &scope(&e), errors);
    const Status one = e.configure(args);
    if (!one.ok() && errors.error_count() == before) (void)errors.error("unspecified error");
    status &= one;
  }
  return status;
}

Status Router::initialize_all(Errors& errors) {
  for (const int i : order_) {
    Element& e = *elements_[i];
    if (look_only() && dynamic_cast<const TouchesMachine*>(&e)) continue;
    Errors::Context context(errors, e.landmark_, fmt::format("While initializing '{}':", e.declaration()));
    const int before = errors.error_count();
    const Status one = e.initialize(errors);
    if (!one.ok() && errors.error_count() == before) (void)errors.error("unspecified error");
    if (!one.ok()) return one;
    if (options_.profile)
      for (Task* task : e.tasks_) task->profile_ = profiles_[i].get();
  }
  return {};
}

}  // namespace headrace
