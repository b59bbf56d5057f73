#include "elements/aqm/RED.hh"

#include <cmath>

#include "headrace/graph_walk.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {
constexpr uint32_t kMaxThreshold = 0xffff;
constexpr uint32_t kMaxStability = 16;
// While queues are empty, the average falls as if a packet came in each of these.
constexpr int64_t kIdleStep = 20000000;  // ns
}  // namespace

Status RED::read(Args& args, Parameters& parameters, std::vector<std::string>& queues) {
  args.read_mp("MIN_THRESH", parameters.min_thresh).read_mp("MAX_THRESH", parameters.max_thresh);
  args.read_mp("MAX_P", parameters.max_p, Between{0., 1.}).read("QUEUES", queues);
  args.read("STABILITY", parameters.stability, Between{0u, kMaxStability}).read("GENTLE", parameters.gentle);
  if (!args.complete()) return Status::failed();
  if (parameters.max_thresh > kMaxThreshold) return args.errors().error("MAX_THRESH must be <= {}", kMaxThreshold);
  if (parameters.min_thresh > parameters.max_thresh) return args.errors().error("MIN_THRESH must be <= MAX_THRESH");
  return {};
}

Status RED::configure(Args& args) {
  count_reasons({"marked by RED"});
  return read(args, parameters_, names_);
}

Status RED::initialize(Errors& errors) { return find_queues(errors); }

Status RED::live_reconfigure(Args& args) {
  // The queues stay: the graph does not change.
  std::vector<std::string> names;
  Parameters parameters;
  if (!read(args, parameters, names)) return Status::failed();
  parameters_ = parameters;
  return {};
}

Status RED::find_queues(Errors& errors) {
  const auto is_storage = [](Element& e) { return dynamic_cast<Storage*>(&e) != nullptr; };
  if (names_.empty()) {
    queues_ = output_is_push(0) ? nearest_downstream(*this, 0, is_storage) : nearest_upstream(*this, 0, is_storage);
    if (queues_.empty()) return errors.error("no nearby Queues");
  }
  Status status;
  for (const std::string& name : names_) {
    Element* e = router().find(name, this);
    if (!e)
      status &= errors.error("QUEUES: no element named '{}'", name);
    else if (!is_storage(*e))
      status &= errors.error("QUEUES: '{}' is not a Storage element", e->name());
    else
      queues_.push_back(e);
  }
  for (Element* e : queues_) storages_.push_back(dynamic_cast<Storage*>(e));
  return status;
}

uint64_t RED::length() const {
  uint64_t sum = 0;
  for (const Storage* s : storages_) sum += s->stored();
  return sum;
}

double RED::update(Average& state) {
  const auto length = static_cast<double>(this->length());
  if (parameters_.stability == 0) {
    state.average = length;
  } else if (length > 0) {
    state.average += std::ldexp(length - state.average, -static_cast<int>(parameters_.stability));
    state.empty_since = {};
  } else {
    const Timestamp now = clock::steady();
    const auto steps = state.empty_since ? static_cast<double>((now - state.empty_since).ns / kIdleStep) : 1.;
    if (steps > 0) {
      state.average = state.average * std::pow(1 - std::ldexp(1., -static_cast<int>(parameters_.stability)), steps);
      state.empty_since = now;
    }
  }
  state.used = true;
  return state.average;
}

bool RED::mark(Average& state) {
  const double average = update(state);
  const double min = parameters_.min_thresh, max = parameters_.max_thresh, most = parameters_.max_p;
  if (average <= min) {
    state.since_mark = -1;
    return false;
  }
  const bool gentle = parameters_.gentle && most < 1;
  if (average > (gentle ? 2 * max : max)) {
    state.since_mark = -1;
    return true;
  }
  // The interval from one mark to the next is uniform, from 1 to 1/p packets.
  const double p = average <= max ? most * (average - min) / (max - min) : most + (1 - most) * (average - max) / max;
  const bool marked = ++state.since_mark > 0 && p > 0 && state.since_mark * p > state.threshold;
  if (marked) state.since_mark = 0;
  if (state.since_mark == 0) state.threshold = static_cast<double>(random_.next()) * 0x1p-32;
  return marked;
}

Packet* RED::act(Packet* p, Emitter& emit) {
  if (!mark(averages_.local())) return p;
  drops_.add(0, 1);
  emit(1, p);
  return nullptr;
}

void RED::take_state(Element& old, Errors&) {
  const auto& before = static_cast<const RED&>(old);
  for (int t = 0; t < averages_.size() && t < before.averages_.size(); ++t) {
    averages_[t].average = before.averages_[t].average.get();
    averages_[t].used = before.averages_[t].used.get();
  }
}

double RED::average() const {
  double sum = 0;
  int n = 0;
  for (int t = 0; t < averages_.size(); ++t) {
    if (!averages_[t].used) continue;
    sum += averages_[t].average;
    ++n;
  }
  return n == 0 ? 0 : sum / n;
}

std::string RED::configuration() const {
  std::string names;
  for (const Element* e : queues_) names += " " + e->name();
  return fmt::format("{}, {}, {}, QUEUES{}, STABILITY {}{}", parameters_.min_thresh, parameters_.max_thresh,
                     parameters_.max_p, names, parameters_.stability, parameters_.gentle ? "" : ", GENTLE false");
}

void RED::add_handlers(Handlers& handlers) {
  handlers.argument("min_thresh", "MIN_THRESH", 0, true);
  handlers.argument("max_thresh", "MAX_THRESH", 1, true);
  handlers.argument("max_p", "MAX_P", 2, true);
  handlers.read("drops", [this] { return std::to_string(drops_.sum(0)); });
  handlers.read("queues", [this] {
    std::string lines;
    for (const Element* e : queues_) lines += e->name() + "\n";
    return lines;
  });
  handlers.read("avg_queue_size", [this] { return fmt::format("{:.3f}", average()); });
  handlers.read("stats", [this] {
    return fmt::format("{} current queue\n{:.3f} avg queue\n{} drops\n", length(), average(), drops_.sum(0));
  });
}

}  // namespace headrace
