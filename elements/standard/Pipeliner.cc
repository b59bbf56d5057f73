#include "elements/standard/Pipeliner.hh"

#include <algorithm>

#include "headrace/value_handlers.hh"

namespace headrace {

namespace {
constexpr int32_t kDefaultRing = 1024, kLeastRing = 4, kMostRing = 1 << 22;
}  // namespace

Pipeliner::~Pipeliner() {
  Batch batch;
  while (const uint32_t n = ring_ ? ring_->dequeue(batch.begin(), Batch::kCapacity) : 0) {
    batch.resize(static_cast<int>(n));
    batch.kill();
  }
}

Status Pipeliner::configure(Args& args) {
  int32_t capacity = kDefaultRing;
  bool blocking = false, ignored = false;
  args.read_p("CAPACITY", capacity).read_p("BURST", burst_).read_p("BLOCKING", blocking).read("ACTIVE", active_);
  args.read("ALWAYS_UP", always_up_).read("DIRECT_TRAVERSAL", direct_);
  for (const char* keyword : {"NOUSELESS", "VERBOSE", "PREFETCH"}) args.read(keyword, ignored);
  if (!args.complete()) return Status::failed();
  if (blocking) return args.errors().error("BLOCKING true is not supported");
  if (capacity <= 0) capacity = kDefaultRing;
  if (capacity < kLeastRing) return args.errors().error("CAPACITY must be at least {}", kLeastRing);
  if (capacity > kMostRing) return args.errors().error("CAPACITY too large, maximum is {}", kMostRing);
  if (burst_ <= 0) burst_ = INT32_MAX;
  ring_ = std::make_unique<Ring<Packet*>>(static_cast<uint32_t>(capacity), static_cast<uint32_t>(capacity));
  count_reasons({"no room in the ring"});
  return {};
}

Status Pipeliner::initialize(Errors&) {
  task_.initialize(active_);
  return {};
}

void Pipeliner::push(int, Batch& batch) {
  if (direct_ && active_ && thread_id() == task_.home_thread() && ring_->size() == 0) {
    output(0).push(batch);
    return;
  }
  const uint32_t stored = ring_->enqueue(batch.begin(), static_cast<uint32_t>(batch.size()));
  counts_.add(kStored, stored);
  for (int i = static_cast<int>(stored); i < batch.size(); ++i) drop(batch[i]);
  counts_.add(kDropped, static_cast<uint64_t>(batch.size()) - stored);
  meet();
  if (active_ && !task_.scheduled()) task_.reschedule();
}

bool Pipeliner::run_task(Task& task) {
  if (!active_) return false;
  highwater_ = std::max(highwater_.get(), ring_->size());
  int32_t left = burst_;
  while (left > 0) {
    Batch batch;
    const uint32_t n = ring_->dequeue(batch.begin(), static_cast<uint32_t>(std::min<int32_t>(left, Batch::kCapacity)));
    if (n == 0) break;
    batch.resize(static_cast<int>(n));
    left -= static_cast<int32_t>(n);
    output(0).push(batch);
  }
  const bool worked = left < burst_;
  if (!worked) meet();
  if (worked || always_up_ || ring_->size() > 0) task.fast_reschedule();
  return worked;
}

void Pipeliner::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kStored)); });
  handlers.read("dropped", [this] { return std::to_string(counts_.sum(kDropped)); });
  handlers.value("active", active_, [this] { active_ ? task_.reschedule() : task_.unschedule(); });
  read_value(handlers, "highwater", highwater_);
}

}  // namespace headrace
