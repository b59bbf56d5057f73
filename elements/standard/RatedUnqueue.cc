#include "elements/standard/RatedUnqueue.hh"

#include <algorithm>

#include "elements/standard/bucket_args.hh"

namespace headrace {

Status RatedUnqueue::configure(Args& args) {
  BucketArgs bucket;
  if (!bucket.read(args, is_bandwidth())) return Status::failed();
  bucket_.assign(bucket.rate, bucket.capacity);
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
  const uint64_t threshold = is_bandwidth() ? BucketArgs::kBandwidthThreshold : 1;
  runs_ += 1;
  if (!active_) return false;
  bucket_.refill(clock::steady());
  if (!bucket_.contains(threshold)) {
    timer_.schedule_after(bucket_.time_until(threshold));
    empty_runs_ += 1;
    return false;
  }
  Batch batch;
  for (int i = most(); i > 0 && bucket_.contains(threshold); --i) {
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
  handlers.value("active", active_, [this] { task_.reschedule(); });
}

}  // namespace headrace
