#include "headrace/router.hh"

#include <algorithm>
#include <cctype>
#include <utility>

#include "headrace/rcu.hh"
#include "lang/lang.hh"
#include "offload/chain_plans.hh"
#include "offload/cpu_chains.hh"
#include "offload/engine.hh"
#include "runtime/name_scope.hh"
#include "runtime/router_graph.hh"
#include "runtime/router_shims.hh"
#include "runtime/runtime.hh"

namespace headrace {

namespace {

thread_local Router::UpdatesTogether* t_together = nullptr;

}  // namespace

Router::Router(Runtime& runtime, const RouterOptions& options, Router* predecessor)
    : runtime_(runtime),
      options_(options),
      predecessor_(predecessor),
      names_(std::make_unique<Names>()),
      graph_(std::make_unique<Graph>()) {
  for (int id = 0; id < runtime.threads(); ++id) workers_.push_back(std::make_unique<Worker>(runtime, id));
}

Router::~Router() {
  cpu_chains_.reset();
  engine_.reset();
  // In reverse, as later elements may refer to earlier ones.
  while (!order_.empty()) {
    elements_[order_.back()].reset();
    order_.pop_back();
  }
  rcu::synchronize();
}

void Router::leave_control() {
  for (const auto& element : elements_)
    if (element) element->leave_control();
}

bool Router::on_worker() const { return thread_id() >= 0 && thread_id() < threads(); }

void Router::drain() {
  if (engine_ && on_worker()) engine_->drain(thread_id());
}

void Router::take_over(Router& old) {
  Errors errors(Errors::Output::kStderr);
  for (const int i : order_) {
    Element& e = *elements_[static_cast<size_t>(i)];
    if (e.predecessor_) e.take_state(*e.predecessor_, errors);
    e.predecessor_ = nullptr;
  }
  for (const auto& e : old.elements_)
    if (const uint64_t lost = e->held_packets())
      past_drops_.push_back({e->name(), "inside when a new configuration took over", lost});
  predecessor_ = nullptr;
}

void Router::remember(const Router& old) {
  // What cannot be written out is a drop, too.
  for (const auto& e : old.elements_)
    if (auto* const port = dynamic_cast<DevicePort*>(e.get())) port->write_out();
  for (const PortRecord& p : old.ports()) past_ports_.push_back(p);
  for (const Drop& d : old.drops()) past_drops_.push_back(d);
  for (const Drop& d : old.discards()) past_discards_.push_back(d);
}

std::vector<PortRecord> Router::ports() const {
  std::vector<PortRecord> all;
  const auto add = [&all](const PortRecord& record) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const PortRecord& r) {
      return r.name == record.name && r.direction == record.direction;
    });
    if (same == all.end()) {
      all.push_back(record);
      return;
    }
    same->missed += record.missed;
    for (size_t t = 0; t < record.of_thread.size(); ++t) {
      same->of_thread[t].packets += record.of_thread[t].packets;
      same->of_thread[t].bytes += record.of_thread[t].bytes;
    }
  };
  for (const auto& e : elements_) {
    const auto* port = dynamic_cast<const DevicePort*>(e.get());
    if (!port) continue;
    for (const auto direction : {DevicePort::Direction::kIn, DevicePort::Direction::kOut}) {
      if (!port->moves(direction)) continue;
      const bool in = direction == DevicePort::Direction::kIn;
      PortRecord record{e->name(), direction, {}, in ? port->missed() : 0};
      for (int t = 0; t < thread_count(); ++t) record.of_thread.push_back(port->totals(direction, t));
      add(record);
    }
  }
  for (const PortRecord& p : past_ports_) add(p);
  return all;
}

Element* Router::find(std::string_view name, const Element* context) const {
  std::string prefix;
  if (context) {
    const size_t slash = context->name().rfind('/');
    if (slash != std::string::npos) prefix = context->name().substr(0, slash + 1);
  }
  for (;;) {
    const auto it = by_name_.find(prefix + std::string(name));
    if (it != by_name_.end()) return it->second;
    if (prefix.empty()) return nullptr;
    prefix.pop_back();
    const size_t slash = prefix.rfind('/');
    prefix.resize(slash == std::string::npos ? 0 : slash + 1);
  }
}

const Handler* Router::find_handler(std::string_view name, const Element* context, Element*& element,
                                    Errors& errors) const {
  const size_t dot = name.find('.');
  element = nullptr;
  const Handlers* handlers = &root_handlers_;
  std::string handler_name(name);
  if (dot == std::string_view::npos) {
    // If the element has a handler of this name, it takes precedence over the router's.
    if (context && context->handlers_.find(handler_name)) {
      element = elements_[context->index_].get();
      handlers = &element->handlers_;
    }
  } else {
    handler_name = name.substr(dot + 1);
    if (const std::string_view element_name = name.substr(0, dot); !element_name.empty()) {
      element = find(element_name, context);
      if (!element &&
          std::all_of(element_name.begin(), element_name.end(), [](unsigned char c) { return std::isdigit(c); })) {
        const unsigned long n = std::strtoul(std::string(element_name).c_str(), nullptr, 10);
        if (n >= 1 && n <= elements_.size()) element = elements_[n - 1].get();
      }
      if (!element) {
        (void)errors.error("no element named '{}'", element_name);
        return nullptr;
      }
      handlers = &element->handlers_;
    }
  }
  const Handler* h = handlers->find(handler_name);
  if (!h) (void)errors.error("no '{}' handler", name);
  return h;
}

Status Router::call_read(const Handler& handler, const std::string& parameters, std::string& value,
                         Errors& errors) const {
  if (!handler.read) return errors.error("handler '{}' is not readable", handler.name);
  if (!parameters.empty() && !(handler.flags & Handler::kParameters))
    return errors.error("read handler '{}' does not take parameters", handler.name);
  return handler.read(parameters, value, errors);
}

Status Router::call_write(const Handler& handler, const std::string& value, Errors& errors) {
  if (!handler.write) return errors.error("handler '{}' is not writable", handler.name);
  if (thread_id() < 0)
    return errors.error("handler '{}' was written on a thread that does not belong to the router", handler.name);
  Status status;
  if (handler.flags & Handler::kThreadSafe) {
    status = handler.write(value, errors);
    if (t_together)
      t_together->owed_ = true;
    else
      status &= update_devices(errors);
  } else {
    runtime_.quiesce([&] {
      status = handler.write(value, errors);
      if (engine_) status &= engine_->update(true, errors);
      if (cpu_chains_) cpu_chains_->changed();
    });
  }
  return status;
}

Router::UpdatesTogether::UpdatesTogether(Runtime& runtime)
    : runtime_(runtime), outer_(std::exchange(t_together, this)) {}

Router::UpdatesTogether::~UpdatesTogether() {
  t_together = outer_;
  if (!owed_) return;
  Errors errors(Errors::Output::kStderr);
  (void)runtime_.current()->update_devices(errors);
}

Status Router::update_devices(Errors& errors) {
  if (!engine_) return {};
  if (!on_worker()) return engine_->update(false, errors);
  if (!engine_->behind()) return {};
  // A worker would wait for its own jobs, which it cannot poll here.
  Status status;
  runtime_.quiesce([&] { status = engine_->update(true, errors); });
  return status;
}

bool Router::stale_secrets() const { return engine_ && engine_->stale_secrets(); }

int Router::worker_count() const { return runtime_.threads(); }

int Router::threads() const { return runtime_.threads(); }

int Router::home_thread(const Element* element) const {
  const int thread = element ? home_threads_[element->index()] : -1;
  return thread < 0 ? 0 : thread;
}

void Router::set_home_thread(const Element* element, int thread) { home_threads_[element->index()] = thread; }

bool Router::set_home_thread(std::string_view name, const Element* context, int thread) {
  if (Element* e = find(name, context)) {
    set_home_thread(e, thread);
    return true;
  }
  // The name of a compound stands for those of its elements that have not been set by a more specific name.
  std::string prefix;
  if (context) {
    const size_t slash = context->name().rfind('/');
    if (slash != std::string::npos) prefix = context->name().substr(0, slash + 1);
  }
  for (;;) {
    const std::string inside = prefix + std::string(name) + "/";
    bool any = false;
    for (const auto& e : elements_) {
      if (!e->name().starts_with(inside)) continue;
      any = true;
      if (home_threads_[e->index()] < 0) home_threads_[e->index()] = thread;
    }
    if (any) return true;
    if (prefix.empty()) return false;
    prefix.pop_back();
    const size_t slash = prefix.rfind('/');
    prefix.resize(slash == std::string::npos ? 0 : slash + 1);
  }
}

NameScope& Router::scope(const Element* element) {
  std::unique_ptr<Scope>& s = scopes_[element->index()];
  if (!s) s = std::make_unique<Scope>(*this, element);
  return *s;
}

std::string Router::flat_configuration() const {
  lang::Configuration flat;
  for (const std::string& r : requirements_) {
    const size_t space = r.find(' ');
    flat.requirements.push_back({r.substr(0, space), space == std::string::npos ? "" : r.substr(space + 1), {}});
  }
  for (const auto& e : elements_)
    flat.elements.push_back({e->name(), e->class_name(), e->configuration(), e->landmark_});
  for (const Connection& c : connections_)
    flat.connections.push_back({{c.from->index(), c.from_port}, {c.to->index(), c.to_port}, {}});
  return lang::unparse(flat);
}

ElementProfile Router::profile(const Element* element) const {
  if (profiles_.empty()) return {};
  const ThreadCounters& c = *profiles_[element->index()];
  ElementProfile all{c.sum(Probe::kCycles), c.sum(Probe::kPackets), c.sum(Probe::kBatches)};
  if (cpu_chains_) {
    const offload::CpuChains::Profile in_chains = cpu_chains_->profile(*element);
    all.cycles += static_cast<uint64_t>(in_chains.cycles);
    all.packets += in_chains.packets;
    all.batches += in_chains.batches;
  }
  return all;
}

void Router::reset_profile() {
  for (auto& c : profiles_) c->reset();
  if (cpu_chains_) cpu_chains_->reset_profile();
}

void Router::add_past(std::vector<Drop>& all, const std::vector<Drop>& past) {
  for (const Drop& before : past) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Drop& d) {
      return d.element == before.element && d.reason == before.reason;
    });
    if (same != all.end())
      same->packets += before.packets;
    else
      all.push_back(before);
  }
}

std::vector<Router::Drop> Router::drops() const {
  std::vector<Drop> all;
  const auto add = [&all](const Element& e) {
    for (Element::DropCount& d : e.drop_counts()) all.push_back({e.name(), std::move(d.reason), d.packets});
  };
  for (const auto& e : elements_) add(*e);
  for (const auto& [edge, guard] : guards_) add(*guard);
  add_past(all, past_drops_);
  return all;
}

std::vector<Router::Drop> Router::discards() const {
  std::vector<Drop> all;
  for (const auto& e : elements_)
    if (const auto* const sink = dynamic_cast<const PacketSink*>(e.get()); sink && sink->discarded() > 0)
      all.push_back({e->name(), "discarded", sink->discarded()});
  add_past(all, past_discards_);
  return all;
}

std::vector<Router::Drop> Router::kept_or_discarded() const {
  std::vector<Drop> all = discards();
  for (const auto& e : elements_)
    if (const uint64_t held = e->held_packets()) all.push_back({e->name(), "still inside", held});
  return all;
}

}  // namespace headrace
