#include "elements/analysis/replay.hh"

#include <algorithm>
#include <utility>

#include "headrace/chatter.hh"
#include "headrace/router.hh"
#include "headrace/value_handlers.hh"

namespace headrace {

namespace {
// Packets loaded in one run of the task, so that others get their turn.
constexpr int kLoadBurst = 1024;
}  // namespace

Replay::~Replay() { forget(); }

Status Replay::configure(Args& args) {
  int32_t loops = -1;
  bool quick_clone = false;
  args.read("STOP", loops).read("STOP_TIME", stop_time_).read("BURST", burst_, Between{1, INT32_MAX});
  args.read("LIMIT", limit_).read("ACTIVE", active_).read("VERBOSE", verbose_);
  args.read("FREEONTERMINATE", free_at_end_).read("USE_SIGNAL", use_signal_).read("QUICK_CLONE", quick_clone);
  if (!args.complete()) return Status::failed();
  loops_ = loops;
  return {};
}

Status Replay::initialize(Errors&) {
  heads_.resize(static_cast<size_t>(ninputs()));
  for (int i = 0; i < ninputs(); ++i) signals_.push_back(Signal::upstream_nonempty(this, i, nullptr));
  task_.initialize(active_);
  timer_.initialize();
  return {};
}

void Replay::forget() {
  for (Packet*& head : heads_)
    if (head) std::exchange(head, nullptr)->kill();
  for (size_t i = first_; i < packets_.size(); ++i) packets_[i].packet->kill();
  packets_.clear();
  first_ = next_ = 0;
  loaded_ = false;
}

bool Replay::load() {
  for (int n = 0; n < kLoadBurst; ++n) {
    if (limit_ >= 0 && packets_.size() >= static_cast<size_t>(limit_)) return true;
    size_t earliest = 0;
    for (size_t i = 0; i < heads_.size(); ++i) {
      if (!heads_[i]) heads_[i] = input(static_cast<int>(i)).pull();
      // A signal that is always active says nothing about packets to come.
      if (!heads_[i]) return !use_signal_ || signals_[i].always_active() || !signals_[i].active();
      if (heads_[i]->timestamp() < heads_[earliest]->timestamp()) earliest = i;
    }
    Packet* p = std::exchange(heads_[earliest], nullptr);
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(earliest));
    packets_.push_back({p, static_cast<int>(earliest)});
  }
  return false;
}

void Replay::begin_loop() {
  next_ = first_;
  loop_began_ = clock::steady();
  if (!first_loop_began_) first_loop_began_ = loop_began_;
}

Timestamp Replay::wait(Timestamp now) const {
  if (timing_ == 0) return {};
  const auto since_first =
      static_cast<double>((packets_[next_].packet->timestamp() - packets_[first_].packet->timestamp()).ns);
  const auto due = static_cast<int64_t>(since_first * 100 / timing_);
  return Timestamp::from_ns(std::max<int64_t>(due - (now - loop_began_).ns, 0));
}

bool Replay::out_of_time(Timestamp now) const {
  return stop_time_ > 0 && now - first_loop_began_ >= Timestamp::from_sec(stop_time_);
}

void Replay::finish() {
  active_ = false;
  first_loop_began_ = {};
  router().request_stop();
}

void Replay::end_loop(Timestamp now) {
  if (loops_ > 0) loops_ += -1;
  if (out_of_time(now)) loops_ = 0;
  if (verbose_) chatter("{}: end of a loop, {} left", name(), loops_.get());
  if (first_ == packets_.size()) forget();
  if (loops_ == 0 || packets_.empty())
    finish();
  else
    begin_loop();
}

bool Replay::run_task(Task& task) {
  if (!active_) return false;
  if (loops_ == 0) {
    finish();
    return false;
  }
  if (!loaded_) {
    task.fast_reschedule();
    if (!load()) return true;
    for (Packet*& head : heads_)
      if (head) std::exchange(head, nullptr)->kill();
    if (verbose_) chatter("{}: {} packets loaded", name(), packets_.size());
    loaded_ = true;
    begin_loop();
    return true;
  }
  const Timestamp now = clock::steady();
  if (next_ == packets_.size() || out_of_time(now)) {
    end_loop(now);
    if (active_) task.fast_reschedule();
    return true;
  }
  const bool last_loop = loops_ == 1 && free_at_end_ && timing_ == 0;
  Timestamp not_due;
  uint32_t sent = 0;
  while (sent < burst_ && next_ < packets_.size() && !not_due) {
    Batch batch;
    const int from = packets_[next_].input;
    for (; sent + static_cast<uint32_t>(batch.size()) < burst_ && !batch.full() && next_ < packets_.size(); ++next_) {
      Loaded& loaded = packets_[next_];
      if (loaded.input != from || (not_due = wait(now))) break;
      Packet* p = last_loop ? loaded.packet : loaded.packet->clone();
      if (!p) {
        not_due = Timestamp::from_us(10);  // until others give buffers back
        break;
      }
      if (last_loop) first_ = next_ + 1;
      batch.push_back(p);
    }
    if (batch.empty()) break;
    sent += static_cast<uint32_t>(batch.size());
    output(output_for(from)).push(batch);
  }
  if (not_due)
    timer_.schedule_after(not_due);
  else
    task.fast_reschedule();
  return sent > 0;
}

void Replay::add_handlers(Handlers& handlers) {
  read_value(handlers, "active", active_);
  write_value(handlers, "active", active_, [this] {
    if (loaded_) loop_began_ = clock::steady();
    if (active_) task_.reschedule();
  });
  handlers.button("reset", [this] {
    forget();
    first_loop_began_ = {};
    if (active_) task_.reschedule();
  });
  read_value(handlers, "loaded", loaded_);
  handlers.value("stop", loops_);
}

}  // namespace headrace
