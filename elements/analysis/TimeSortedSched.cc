#include "elements/analysis/TimeSortedSched.hh"

#include <algorithm>
#include <utility>

#include "headrace/router.hh"
#include "headrace/value_handlers.hh"

namespace headrace {

TimeSortedSched::~TimeSortedSched() {
  for (const Held& held : heap_) held.packet->kill();
}

Status TimeSortedSched::configure(Args& args) {
  return args.read("STOP", stop_).read("BUFFER", buffer_, Between{1, 65536}).complete();
}

Status TimeSortedSched::initialize(Errors&) {
  relay_.initialize(false);
  for (int i = 0; i < ninputs(); ++i) signals_.push_back(Signal::upstream_nonempty(this, i, &relay_));
  held_.resize(signals_.size());
  heap_.reserve(signals_.size() * buffer_);
  return {};
}

bool TimeSortedSched::later(const Held& a, const Held& b) {
  const Timestamp first = a.packet->timestamp(), second = b.packet->timestamp();
  return first != second ? first > second : a.sequence > b.sequence;
}

void TimeSortedSched::fill() {
  for (size_t i = 0; i < held_.size(); ++i) {
    while (held_[i] < buffer_ && signals_[i].active()) {
      Packet* p = input(static_cast<int>(i)).pull();
      if (!p) break;
      heap_.push_back({p, static_cast<int>(i), sequence_++});
      std::push_heap(heap_.begin(), heap_.end(), later);
      ++held_[i];
    }
  }
}

bool TimeSortedSched::inputs_active() const {
  return std::any_of(signals_.begin(), signals_.end(), [](const Signal& s) { return s.active(); });
}

int TimeSortedSched::pull(int, Batch& batch, int max) {
  int n = 0;
  for (; n < max; ++n) {
    fill();
    if (heap_.empty()) break;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Held held = heap_.back();
    heap_.pop_back();
    --held_[static_cast<size_t>(held.input)];
    if (const Timestamp time = held.packet->timestamp()) {
      if (time < last_) well_ordered_ = false;
      last_ = time;
    }
    batch.push_back(held.packet);
  }
  if (n == 0 && !inputs_active()) {
    if (std::exchange(stop_, false)) router().request_stop();
    ready_.sleep();
    // An input may have become nonempty before we went to sleep.
    if (inputs_active()) ready_.wake();
  }
  return n;
}

Notifier* TimeSortedSched::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty ? &ready_ : nullptr;
}

void TimeSortedSched::add_handlers(Handlers& handlers) { read_value(handlers, "well_ordered", well_ordered_); }

}  // namespace headrace
