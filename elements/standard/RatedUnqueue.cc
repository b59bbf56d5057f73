#include "elements/standard/RatedUnqueue.hh"

#include <algorithm>

#include "elements/standard/value_handlers.hh"

namespace headrace {

Status RatedUnqueue::configure(Args& args) {
  uint64_t rate = 0, tokens = 0;
  Bandwidth bandwidth;
  Interval duration = Interval::from_ms(20);
  bool duration_given = false, tokens_given = false;
  read_rate(args, rate, bandwidth);
  args.read_status("BURST_DURATION", duration, duration_given);
  args.read_status(burst_keyword(), tokens, Between{0, UINT32_MAX}, tokens_given);
  if (!args.complete()) return Status::failed();
  if (duration_given && tokens_given)
    return args.errors().error("cannot specify both BURST_DURATION and {}", burst_keyword());
  rate = std::max(rate, bandwidth.bytes_per_second);
  if (!tokens_given) tokens = static_cast<uint64_t>(std::min(static_cast<double>(rate) * duration.seconds(), 1e18));
  if (threshold() > 1) tokens += threshold();
  bucket_.assign(rate, std::max<uint64_t>(tokens, 1));
  if (task_.initialized()) task_.reschedule();
  return {};
}

Status RatedUnqueue::initialize(Errors&) {
  task_.initialize(true);
  timer_.initialize();
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

int RatedUnqueue::most() const {
  return static_cast<int>(std::clamp<uint64_t>(bucket_.rate() / 10000, 1, Batch::kCapacity));
}

bool RatedUnqueue::run_task(Task& task) {
  runs_ += 1;
  if (!active_) return false;
  bucket_.refill(clock::steady());
  if (!bucket_.contains(threshold())) {
    timer_.schedule_after(bucket_.time_until(threshold()));
    empty_runs_ += 1;
    return false;
  }
  Batch batch;
  for (int i = most(); i > 0 && bucket_.contains(threshold()); --i) {
    if (input(0).pull(batch, 1) == 0) break;
    bucket_.remove(cost(*batch[batch.size() - 1]));
  }
  if (batch.empty()) {
    failed_pulls_ += 1;
    if (!signal_.active()) return false;
    empty_runs_ += 1;
    task.fast_reschedule();
    return false;
  }
  pushes_ += static_cast<uint64_t>(batch.size());
  output(0).push(batch);
  task.fast_reschedule();
  return true;
}

void RatedUnqueue::add_handlers(Handlers& handlers) {
  handlers.argument("rate", "RATE", 0, true);
  handlers.read("rate", [this] { return unparse_rate(); });
  handlers.read("calls", [this] {
    return fmt::format("{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n", runs_.get(),
                       empty_runs_.get(), pushes_.get(), failed_pulls_.get());
  });
  read_write_value(handlers, "active", active_, [this] { task_.reschedule(); });
}

}  // namespace headrace
