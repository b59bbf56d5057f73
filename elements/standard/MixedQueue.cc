#include "elements/standard/MixedQueue.hh"

namespace headrace {

namespace {

constexpr int kPatience = 9;  // as Queue's

class SpinGuard {
 public:
  explicit SpinGuard(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
  }
  ~SpinGuard() { flag_.clear(std::memory_order_release); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace

MixedQueue::~MixedQueue() {
  for (Packet* p : packets_) p->kill();
}

Status MixedQueue::configure(Args& args) {
  uint32_t capacity = 1000;
  if (!args.read_p("CAPACITY", capacity, Between{0, 1 << 30}).complete()) return Status::failed();
  capacity_ = capacity;
  // When it becomes smaller, the packets at the end have to go.
  for (; packets_.size() > capacity_; packets_.pop_back()) drop(packets_.back());
  return {};
}

void MixedQueue::drop_excess(Batch& excess) {
  if (excess.empty()) return;
  overflows_.add(0, static_cast<uint64_t>(excess.size()));
  if (noutputs() > 1)
    output(1).push(excess);
  else
    drop(excess);
}

void MixedQueue::push(int port, Batch& batch) {
  Batch excess;
  bool stored = false;
  {
    SpinGuard guard(busy_);
    for (Packet* p : batch) {
      if (capacity_ == 0 || (port == 0 && packets_.size() >= capacity_)) {
        excess.push_back(p);
        continue;
      }
      if (packets_.size() >= capacity_) {
        excess.push_back(packets_.back());
        packets_.pop_back();
      }
      if (port == 0)
        packets_.push_back(p);
      else
        packets_.push_front(p);
      stored = true;
    }
    highwater_ = std::max(highwater_, packets_.size());
  }
  // The notifier is put to sleep under the lock while the queue is empty, so it is seen asleep here if it sleeps.
  if (stored && !nonempty_.active()) nonempty_.wake();
  drop_excess(excess);
}

int MixedQueue::pull(int, Batch& batch, int max) {
  SpinGuard guard(busy_);
  int n = 0;
  for (; n < max && !packets_.empty(); ++n) {
    batch.push_back(packets_.front());
    packets_.pop_front();
  }
  if (n > 0)
    fruitless_ = 0;
  else if (fruitless_ < kPatience)
    ++fruitless_;
  else if (nonempty_.active())
    nonempty_.sleep();
  return n;
}

Notifier* MixedQueue::notifier(NotifierKind kind, bool output, int port) {
  return kind == NotifierKind::kNonempty && output && port == 0 ? &nonempty_ : nullptr;
}

void MixedQueue::add_handlers(Handlers& handlers) {
  handlers.read("length", [this] {
    SpinGuard guard(busy_);
    return std::to_string(packets_.size());
  });
  handlers.read("highwater_length", [this] { return std::to_string(highwater_); });
  handlers.argument("capacity", "CAPACITY", 0, true);
  handlers.read(
      "capacity", [this] { return std::to_string(capacity_); }, Handler::kCalm);
  handlers.read("drops", [this] { return std::to_string(overflows_.sum(0)); });
  handlers.button("reset_counts", [this] {
    overflows_.reset();
    highwater_ = packets_.size();
  });
  handlers.button("reset", [this] {
    for (Packet* p : packets_) drop(p, kReset);
    packets_.clear();
  });
}

}  // namespace headrace
