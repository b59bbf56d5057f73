#include "elements/standard/TimedUnqueue.hh"

#include <algorithm>

namespace headrace {

Status TimedUnqueue::configure(Args& args) {
  return args.read_mp("INTERVAL", interval_).read_p("BURST", burst_, Between{1, INT32_MAX}).complete();
}

Status TimedUnqueue::initialize(Errors&) {
  task_.initialize(true);
  timer_.initialize();
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

bool TimedUnqueue::run_task(Task&) {
  // A queue that became nonempty woke us before it was time.
  if (timer_.scheduled()) return false;
  int32_t left = burst_;
  while (left > 0) {
    Batch batch;
    const int n = input(0).pull(batch, std::min<int32_t>(left, Batch::kCapacity));
    if (n == 0) break;
    left -= n;
    output(0).push(batch);
  }
  const bool moved = left < burst_;
  if (!moved && !signal_.active()) {
    running_ = false;
    return false;
  }
  if (running_)
    timer_.reschedule_after(interval_.timestamp());
  else
    timer_.schedule_after(interval_.timestamp());
  running_ = true;
  return moved;
}

}  // namespace headrace
