#include "elements/standard/Counter.hh"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "headrace/router.hh"
#include "headrace/single_writer.hh"

namespace headrace {

namespace {

/// One part of the average is renewed in each epoch, a millisecond.
constexpr int64_t kEpoch = 1000000;
constexpr double kEpochsPerSecond = 1000;
constexpr double kShare = 1. / 16;

int64_t epoch_now() { return clock::steady().ns / kEpoch; }

/// An average as of epoch `now`. `pending` events came in epoch `epoch`, none after it.
double average_at(double average, double pending, int64_t epoch, int64_t now) {
  if (now <= epoch) return average;
  average += (pending - average) * kShare;
  return average * std::pow(1 - kShare, static_cast<double>(now - epoch - 1));
}

/// A count that makes something happen.
class Trigger {
 public:
  /// Reads "N HANDLER [VALUE]"; HANDLER may be missing.
  Status read(const std::string& text, const std::string& keyword, Errors& errors) {
    std::vector<std::string> words;
    uint64_t at;
    const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (!parse_argument(text.substr(0, end), at, ArgContext())) return errors.error("{} type mismatch", keyword);
    at_ = at;
    call_ = HandlerCall(text.substr(std::min(text.find_first_not_of(" \t\n", end), text.size())));
    fired_.store(false, std::memory_order_relaxed);
    return {};
  }
  Status bind(Element& element, Errors& errors) {
    return call_.empty() ? Status() : call_.bind(element.router(), &element, true, errors);
  }
  bool active() const { return call_.bound(); }
  void rearm() { fired_.store(false, std::memory_order_relaxed); }
  bool due(uint64_t count) const { return active() && count >= at_ && !fired_.load(std::memory_order_relaxed); }
  void fire() {
    if (fired_.exchange(true, std::memory_order_relaxed)) return;
    Errors errors(Errors::Output::kStderr);
    (void)call_.write(errors);
  }
  std::string unparse() const { return active() ? std::to_string(at_) : ""; }

 private:
  uint64_t at_ = std::numeric_limits<uint64_t>::max();
  HandlerCall call_;
  std::atomic<bool> fired_ = false;
};

}  // namespace

struct CounterOwner {
  enum { kRates = 2 };
  /// What one thread knows of its rates. Others may read it.
  struct Rates {
    SingleWriter<int64_t> epoch = 0;
    SingleWriter<uint64_t> counted[kRates] = {0, 0};  // up to the beginning of `epoch`
    SingleWriter<double> average[kRates] = {0., 0.};  // in an epoch
  };

  ShaderElementBase* element = nullptr;
  mutable PerThread<Rates> rates;
  std::string call_text[kRates];
  Trigger triggers[kRates];
  /// Counts that all workers share, kept while there is a trigger.
  std::atomic<uint64_t> shared[kRates] = {};

  bool calls() const { return triggers[0].active() || triggers[1].active(); }

  uint64_t pending(int thread, int rate) const {
    const uint64_t count = element->counter_of_thread(thread, rate);
    const uint64_t before = rates[thread].counted[rate];
    return count >= before ? count - before : count;
  }

  /// Called by each thread before it counts anything.
  void begin_batch() const {
    const int thread = thread_id();
    Rates& r = rates[thread];
    const int64_t now = epoch_now();
    if (now == r.epoch) return;
    for (int i = 0; i < kRates; ++i) {
      r.average[i] = average_at(r.average[i], static_cast<double>(pending(thread, i)), r.epoch, now);
      r.counted[i] = element->counter_of_thread(thread, i);
    }
    r.epoch = now;
  }

  double per_second(int rate) const {
    const int64_t now = epoch_now();
    double sum = 0;
    for (int t = 0; t < rates.size(); ++t)
      sum += average_at(rates[t].average[rate], static_cast<double>(pending(t, rate)), rates[t].epoch, now);
    return sum * kEpochsPerSecond;
  }

  void set_shared() {
    for (int i = 0; i < kRates; ++i) shared[i].store(element->counter(i), std::memory_order_relaxed);
  }

  void reset() {
    element->reset_counters();
    for (int t = 0; t < rates.size(); ++t) {
      rates[t].epoch = 0;
      for (int i = 0; i < kRates; ++i) {
        rates[t].counted[i] = 0;
        rates[t].average[i] = 0.;
      }
    }
    for (int i = 0; i < kRates; ++i) {
      shared[i].store(0, std::memory_order_relaxed);
      triggers[i].rearm();
    }
  }
};

Status Counter::configure(Args& args, CounterOwner& owner) {
  static constexpr const char* kKeywords[] = {"COUNT_CALL", "BYTE_COUNT_CALL"};
  if (!args.read(kKeywords[0], owner.call_text[0], AnyArg())
           .read(kKeywords[1], owner.call_text[1], AnyArg())
           .complete())
    return Status::failed();
  Status status;
  for (int i = 0; i < CounterOwner::kRates; ++i)
    if (!owner.call_text[i].empty()) status &= owner.triggers[i].read(owner.call_text[i], kKeywords[i], args.errors());
  return status;
}

Status Counter::initialize(Errors& errors, CounterOwner& owner, ShaderElementBase& element) {
  Status status;
  for (Trigger& trigger : owner.triggers) status &= trigger.bind(element, errors);
  return status;
}

void Counter::refresh(const CounterOwner& owner) {
  calls = owner.calls();
  owner.begin_batch();
}

void Counter::mirror(Mirror&, const CounterOwner& owner) { calls = owner.calls(); }

Next Counter::escape(Packet*& p, Emitter& emit, CounterOwner& owner) const {
  const uint64_t counts[] = {owner.shared[kPackets].fetch_add(1, std::memory_order_relaxed) + 1,
                             owner.shared[kBytes].fetch_add(p->length(), std::memory_order_relaxed) + p->length()};
  for (int i = 0; i < CounterOwner::kRates; ++i) {
    if (!owner.triggers[i].due(counts[i])) continue;
    emit.flush();  // what the call changes must not concern packets that came before
    owner.triggers[i].fire();
  }
  return 0;
}

void Counter::add_handlers(Handlers& handlers, CounterOwner& owner, ShaderElementBase& element) {
  owner.element = &element;
  const auto rate = [&owner](int which, double factor) {
    return
        [&owner, which, factor] { return fmt::format("{}", std::round(owner.per_second(which) * factor * 1e3) / 1e3); };
  };
  handlers.read("count", [&element] { return std::to_string(element.counter(kPackets)); });
  handlers.read("byte_count", [&element] { return std::to_string(element.counter(kBytes)); });
  handlers.read("rate", rate(kPackets, 1));
  handlers.read("byte_rate", rate(kBytes, 1));
  handlers.read("bit_rate", rate(kBytes, 8));
  handlers.button("reset", [&owner] { owner.reset(); });
  handlers.button(
      "reset_counts", [&owner] { owner.reset(); }, Handler::kUncommon);
  const auto set_call = [&owner, &element](int which, const char* name) {
    return [&owner, &element, which, name](const std::string& value, Errors& errors) {
      Trigger& trigger = owner.triggers[which];
      if (!trigger.read(value, name, errors) || !trigger.bind(element, errors)) return Status::failed();
      owner.set_shared();
      return Status();
    };
  };
  handlers.read("count_call", [&owner] { return owner.triggers[kPackets].unparse(); });
  handlers.write("count_call", set_call(kPackets, "count_call"));
  handlers.write("byte_count_call", set_call(kBytes, "byte_count_call"));
}

HEADRACE_ELEMENT(Counter)
HEADRACE_ELEMENT_ALIAS(CounterMP, Counter)

}  // namespace headrace
