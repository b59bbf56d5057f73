#include "elements/standard/Unqueue.hh"

#include <algorithm>

#include "headrace/value_handlers.hh"

namespace headrace {

Status Unqueue::configure(Args& args) {
  return args.read_p("BURST", burst_).read("ACTIVE", active_).read("LIMIT", limit_).complete();
}

Status Unqueue::initialize(Errors& errors) {
  if (burst_ == 0) errors.warning("BURST size 0, no packets will be pulled");
  if (burst_ < 0) burst_ = INT32_MAX;
  task_.initialize(active_);
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

bool Unqueue::run_task(Task& task) {
  int64_t left = burst_;
  if (limit_ >= 0) left = std::min<int64_t>(left, int64_t{limit_} - count_);
  if (!active_ || (left <= 0 && burst_ > 0)) return false;
  bool worked = false;
  // What is pushed may end in a handler that stops this element.
  while (left > 0 && active_) {
    Batch batch;
    const int n = input(0).pull(batch, static_cast<int>(std::min<int64_t>(left, Batch::kCapacity)));
    if (n == 0) {
      if (!signal_.active()) return worked;
      break;
    }
    worked = true;
    left -= n;
    count_ += static_cast<uint32_t>(n);
    output(0).push(batch);
  }
  task.fast_reschedule();
  return worked;
}

void Unqueue::add_handlers(Handlers& handlers) {
  const auto changed = [this] {
    if (burst_ < 0) burst_ = INT32_MAX;
    if (active_ && (limit_ < 0 || count_ < static_cast<uint32_t>(limit_))) task_.reschedule();
  };
  const auto reset = [this, changed] {
    count_ = 0;
    changed();
  };
  read_value(handlers, "count", count_);
  handlers.button("reset", reset);
  handlers.button("reset_counts", reset, Handler::kUncommon);
  handlers.value("active", active_, changed);
  handlers.value("burst", burst_, changed);
  handlers.value("limit", limit_, changed);
}

}  // namespace headrace
