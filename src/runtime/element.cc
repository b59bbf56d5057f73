#include "headrace/element.hh"

#include <fmt/format.h>

#include <algorithm>

#include "base/argument_text.hh"
#include "headrace/router.hh"
#include "headrace/shader.hh"
#include "runtime/runtime.hh"

namespace headrace {

// --- Registry

namespace {
std::map<std::string, ElementInfo, std::less<>>& registry() {
  static std::map<std::string, ElementInfo, std::less<>> infos;
  return infos;
}
}  // namespace

ElementRegistration::ElementRegistration(const ElementInfo& info) { registry().emplace(info.name, info); }

const ElementInfo* find_element_info(std::string_view name) {
  const auto it = registry().find(name);
  return it == registry().end() ? nullptr : &it->second;
}

std::vector<const ElementInfo*> all_element_infos() {
  std::vector<const ElementInfo*> all;
  for (const auto& [name, info] : registry()) all.push_back(&info);
  return all;
}

// --- Element

void Element::push(int port, Batch& batch) {
  (void)port;
  drop(batch);
}

int Element::pull(int, Batch&, int) { return 0; }

void Element::count_reasons(std::vector<std::string> names) {
  reasons_ = std::move(names);
  drops_.resize(static_cast<int>(reasons_.size()));
}

std::vector<Element::DropCount> Element::drop_counts() const {
  std::vector<DropCount> counts;
  for (size_t i = 0; i < reasons_.size(); ++i)
    if (const uint64_t n = drops_.sum(static_cast<int>(i))) counts.push_back({reasons_[i], n});
  return counts;
}

namespace {

/// Outputs with counts that fit into a register together.
constexpr int kFewWays = 4;

/// As push_split(), for few outputs, to all of which packets can go: two passes without a branch, and without a count that one
/// packet stores and the next one waits for. Ways are pushed to in the order in which they first come.
void deal(const Element& element, Batch& batch, const Next* nexts) {
  constexpr unsigned kBits = 16, kMask = (1u << kBits) - 1;
  const int n = batch.size();
  uint64_t counts = 0;
  for (int i = 0; i < n; ++i) counts += uint64_t{1} << (kBits * nexts[i]);
  unsigned order[kFewWays], ways = 0, known = 0, at = 0;
  uint64_t places = 0;
  for (int i = 0; at < static_cast<unsigned>(n); ++i) {
    const unsigned way = nexts[i];
    if (known >> way & 1) continue;
    known |= 1u << way;
    order[ways++] = way;
    places |= uint64_t{at} << (kBits * way);
    at += counts >> (kBits * way) & kMask;
  }
  Packet* dealt[Batch::kCapacity];
  for (int i = 0; i < n; ++i) {
    const unsigned shift = kBits * nexts[i];
    dealt[places >> shift & kMask] = batch[i];
    places += uint64_t{1} << shift;
  }
  batch.clear();
  Packet* const* from = dealt;
  for (unsigned w = 0; w < ways; ++w) {
    const auto count = static_cast<int>(counts >> (kBits * order[w]) & kMask);
    std::copy_n(from, count, batch.begin());
    batch.resize(count);
    from += count;
    element.output(static_cast<int>(order[w])).push(batch);
  }
  batch.clear();
}

}  // namespace

void Element::push_split(Batch& batch, Next* nexts) {
  int left = batch.size();
  // Mostly all go the same way; without a branch a packet, this is a few comparisons of vectors.
  unsigned differences = 0;
  for (int i = 1; i < left; ++i) differences |= static_cast<unsigned>(nexts[i] ^ nexts[0]);
  if (left > 0 && differences == 0 && nexts[0] < noutputs()) {
    output(nexts[0]).push(batch);
    batch.clear();
    return;
  }
  Packet** slots = batch.begin();
  Batch out;
  Next last = 0;
  for (int i = 0; i < left; ++i) last = std::max(last, nexts[i]);
  if (left > 0 && last < std::min(noutputs(), kFewWays)) {
    deal(*this, batch, nexts);
    return;
  }
  while (left > 0) {
    const Next next = nexts[0];
    // One pass takes the packets with the same next as the first one, and moves the rest together.
    int rest = 0, taken = 0;
    Packet** to = out.begin();
    for (int i = 0; i < left; ++i) {
      Packet* p = slots[i];
      const Next n = nexts[i];
      const bool mine = n == next;
      to[taken] = p;
      slots[rest] = p;
      nexts[rest] = n;
      taken += mine;
      rest += !mine;
    }
    left = rest;
    out.resize(taken);
    if (next < noutputs())
      output(next).push(out);
    else if (next != kConsumed)
      drop(out);
    out.clear();
  }
  batch.clear();
}

int Element::home_thread() const { return router_ ? router_->home_thread(this) : 0; }

void Element::select(int fd, int mask) { router_->worker(home_thread()).select(this, fd, mask); }

Status Element::reconfigure(const std::string& configuration, Errors& errors) {
  if (!can_live_reconfigure()) return errors.error("element does not support live reconfiguration");
  std::vector<std::string> arguments = lang::split_arguments(configuration);
  Args args(arguments, &router_->scope(this), errors);
  const Status status = live_reconfigure(args);
  if (status.ok()) {
    arguments_ = std::move(arguments);
    configuration_ = lang::unparse_arguments(arguments_);
  }
  return status;
}

// --- SimpleElement

void SimpleElement::push(int, Batch& batch) {
  Emitter emit(*this);
  for (Packet* p : batch)
    if (Packet* q = act(p, emit)) emit(0, q);
}

int SimpleElement::pull(int, Batch& batch, int max) {
  Batch pulled;
  if (input(0).pull(pulled, max) == 0) return 0;
  Emitter emit(*this);
  const int before = batch.size();
  for (Packet* p : pulled)
    if (Packet* q = act(p, emit)) batch.push_back(q);
  return batch.size() - before;
}

// --- ShaderElementBase

std::vector<RegionInfo> ShaderElementBase::annotations() const {
  std::vector<RegionInfo> all = regions();
  std::erase_if(all, [](const RegionInfo& r) { return r.anchor != Anchor::kAnno; });
  return all;
}

std::vector<Element::DropCount> ShaderElementBase::drop_counts() const {
  std::vector<DropCount> counts = Element::drop_counts();
  uint64_t dropped = 0;
  for (const DropCount& d : counts) dropped += d.packets;
  if (dropped == 0) return counts;
  // The shader's reasons explain the drops only if every packet that had a reason was dropped.
  uint64_t with_reason = 0;
  std::vector<DropCount> by_reason;
  for (int i = 0; i < counters_.count(); ++i) {
    if (!infos_[i].reason) continue;
    if (const uint64_t n = counters_.sum(i)) by_reason.push_back({infos_[i].name, n});
    with_reason += counters_.sum(i);
  }
  if (with_reason == 0 || with_reason > dropped) return counts;
  if (dropped > with_reason) by_reason.push_back({"dropped", dropped - with_reason});
  return by_reason;
}

void ShaderElementBase::finish(Batch& batch, Next* nexts) {
  bool escapes = false;
  for (int i = 0; i < batch.size(); ++i) escapes |= nexts[i] == kEscape || nexts[i] == kConsumed;
  if (!escapes) {
    push_split(batch, nexts);
    return;
  }
  Emitter emit(*this);
  for (int i = 0; i < batch.size(); ++i) {
    Packet* p = batch[i];
    Next next = nexts[i];
    if (next == kEscape) next = escape(p, emit);
    if (next != kConsumed) emit(next, p);
  }
  emit.flush();
}

void ShaderElementBase::leave(Batch& batch, Next next) {
  if (next < noutputs()) {
    output(next).push(batch);
    return;
  }
  Next nexts[Batch::kCapacity];
  std::fill_n(nexts, batch.size(), next);
  finish(batch, nexts);
}

void ShaderElementBase::finish_pull(Batch& batch, const Next* nexts) {
  Emitter emit(*this);
  int kept = 0;
  for (int i = 0; i < batch.size(); ++i) {
    Packet* p = batch[i];
    Next next = nexts[i];
    if (next == kEscape) next = escape(p, emit);
    if (next == 0)
      batch[kept++] = p;
    else if (next != kConsumed)
      emit(next, p);
  }
  batch.resize(kept);
}

// --- Task and Timer, the parts that know routers

Task::Task(Element* owner) : owner_(owner) { owner_->tasks_.push_back(this); }

Task::Task(Element* owner, std::function<bool(Task&)> body) : owner_(owner), body_(std::move(body)) {
  owner_->tasks_.push_back(this);
}

void Task::initialize(bool schedule, int thread) {
  Router& router = owner_->router();
  if (thread < 0) thread = owner_->home_thread();
  worker_ = &router.worker(std::min(thread, router.threads() - 1));
  worker_->attach(this);
  if (schedule) reschedule();
}

void Timer::initialize(int thread) {
  Router& router = owner_->router();
  if (thread < 0) thread = owner_->home_thread();
  worker_ = &router.worker(std::min(thread, router.threads() - 1));
}

// --- Notifiers

void Notifier::add_listener(Task* task) {
  if (task && std::find(listeners_.begin(), listeners_.end(), task) == listeners_.end()) listeners_.push_back(task);
}

void Notifier::wake() {
  active_.store(true, std::memory_order_seq_cst);
  for (Task* task : listeners_) task->reschedule();
}

}  // namespace headrace
