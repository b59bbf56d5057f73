#include "elements/standard/DelayUnqueue.hh"

namespace headrace {

DelayUnqueue::~DelayUnqueue() {
  if (held_) held_->kill();
}

Status DelayUnqueue::initialize(Errors&) {
  task_.initialize(true);
  timer_.initialize();
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

bool DelayUnqueue::run_task(Task& task) {
  bool worked = false;
  for (int n = 0; n < Batch::kCapacity; ++n) {
    if (!held_ && (held_ = input(0).pull())) {
      const Timestamp received = held_->timestamp();
      held_->set_timestamp((received.ns >= Timestamp::kSecond ? received : clock::now()) + delay_.timestamp());
    }
    if (!held_) {
      if (signal_.active()) task.fast_reschedule();
      return worked;
    }
    const Timestamp now = clock::now();
    if (held_->timestamp() > now) {
      timer_.schedule_after(held_->timestamp() - now);
      return worked;
    }
    output(0).push(std::exchange(held_, nullptr));
    worked = true;
  }
  task.fast_reschedule();
  return worked;
}

void DelayUnqueue::add_handlers(Handlers& handlers) { handlers.value("delay", delay_); }

}  // namespace headrace
