#include "elements/standard/LinkUnqueue.hh"

#include <algorithm>

#include "headrace/value_handlers.hh"

namespace headrace {

namespace {

constexpr uint64_t kSlowestLink = 100;  // bytes a second

struct LinkBandwidth {
  bool parse(std::string_view text, Bandwidth& out, const ArgContext& context) const {
    Bandwidth value;
    if (!parse_argument(text, value, context)) return false;
    if (value.bytes_per_second < kSlowestLink && value.bytes_per_second != 0)
      return context.error("bandwidth too small, minimum {}Bps, or 0 to disable bandwidth", kSlowestLink);
    out = value;
    return true;
  }
};

}  // namespace

Status LinkUnqueue::configure(Args& args) {
  return args.read_mp("LATENCY", latency_).read_mp("BANDWIDTH", bandwidth_, LinkBandwidth()).complete();
}

Status LinkUnqueue::initialize(Errors&) {
  task_.initialize(true);
  timer_.initialize();
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

Timestamp LinkUnqueue::leaves(const Packet& p, Timestamp free) const {
  if (bandwidth_.bytes_per_second == 0) return free;
  const double bytes = static_cast<double>(p.length()) + p.anno_u32(anno_offset::kExtraLength);
  return free + Timestamp::from_double(bytes / static_cast<double>(bandwidth_.bytes_per_second));
}

void LinkUnqueue::enter_packets(Timestamp now) {
  const Timestamp arrival = now + latency_.timestamp();
  // There is room as long as the last packet's first bit would have arrived. Without a bandwidth there always is, so
  // what one run takes is limited.
  for (int n = 0; n < Batch::kCapacity && (link_.empty() || link_.back()->timestamp() <= arrival); ++n) {
    Packet* p = input(0).pull();
    if (!p) {
      back_to_back_ = false;
      break;
    }
    p->set_timestamp(leaves(*p, back_to_back_ && !link_.empty() ? link_.back()->timestamp() : arrival));
    link_.push_back(p);
    back_to_back_ = true;
  }
}

bool LinkUnqueue::emit_packets(Timestamp now) {
  bool emitted = false;
  while (!link_.empty() && link_.front()->timestamp() <= now) {
    Batch batch;
    while (!batch.full() && !link_.empty() && link_.front()->timestamp() <= now) batch.push_back(link_.pop_front());
    output(0).push(batch);
    emitted = true;
  }
  return emitted;
}

bool LinkUnqueue::run_task(Task& task) {
  const Timestamp now = clock::now();
  const size_t before = link_.size();
  enter_packets(now);
  const bool entered = link_.size() > before;
  const bool worked = emit_packets(now) || entered;
  size_ = static_cast<uint32_t>(link_.size());
  if (!link_.empty()) {
    Timestamp next = link_.front()->timestamp();
    if (signal_.active()) next = std::min(next, link_.back()->timestamp() - latency_.timestamp());
    if (next > now) {
      timer_.schedule_after(next - now);
      return worked;
    }
  } else if (!signal_.active()) {
    return worked;
  }
  task.fast_reschedule();
  return worked;
}

void LinkUnqueue::reset() {
  link_.clear();
  size_ = 0;
  back_to_back_ = false;
  timer_.unschedule();
  task_.reschedule();
}

void LinkUnqueue::add_handlers(Handlers& handlers) {
  const auto reset = [this] { this->reset(); };
  read_value(handlers, "latency", latency_, Handler::kCalm);
  write_value(handlers, "latency", latency_, reset);
  read_value(handlers, "bandwidth", bandwidth_.bytes_per_second, Handler::kCalm);
  write_value(handlers, "bandwidth", bandwidth_, LinkBandwidth(), reset);
  read_value(handlers, "size", size_);
  handlers.button("reset", reset);
}

}  // namespace headrace
