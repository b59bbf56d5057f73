#include "elements/standard/Discard.hh"

#include <algorithm>

namespace headrace {

Status Discard::configure(Args& args) {
  if (!args.read("ACTIVE", active_).read("BURST", burst_).complete()) return Status::failed();
  if (!active_ && input_is_push(0)) return args.errors().error("ACTIVE is meaningless in push context");
  if (burst_ == 0) burst_ = UINT32_MAX;
  return {};
}

Status Discard::initialize(Errors&) {
  if (input_is_pull(0)) {
    task_.initialize(active_);
    signal_ = Signal::upstream_nonempty(this, 0, &task_);
  }
  return {};
}

void Discard::push(int, Batch& batch) {
  discarded_.add(0, batch.size());
  batch.kill();
}

bool Discard::run_task(Task& task) {
  if (!active_) return false;
  uint32_t left = burst_;
  while (left > 0) {
    Batch batch;
    const int n = input(0).pull(batch, static_cast<int>(std::min<uint32_t>(left, Batch::kCapacity)));
    if (n == 0) break;
    batch.kill();
    discarded_.add(0, n);
    left -= n;
  }
  const bool worked = left < burst_;
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

void Discard::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(discarded()); });
  handlers.button("reset_counts", [this] { discarded_.reset(); });
  if (input_is_push(0)) return;
  handlers.value("active", active_, [this] { active_ ? task_.reschedule() : task_.unschedule(); });
}

}  // namespace headrace
