#include "elements/standard/Queue.hh"

#include "headrace/chatter.hh"

namespace headrace {

namespace {
// As many packets as there can be buffers: a handler write must not be able to exhaust memory.
constexpr uint32_t kMaxCapacity = 1u << 22;
}  // namespace

Queue::~Queue() {
  if (ring_) clear();
}

Status Queue::read_capacity(Args& args, uint32_t& capacity) {
  capacity = 1000;
  if (!args.read_p("CAPACITY", capacity).complete()) return Status::failed();
  if (capacity > kMaxCapacity) return args.errors().error("CAPACITY too large, maximum is {}", kMaxCapacity);
  return {};
}

Status Queue::configure(Args& args) {
  if (!read_capacity(args, capacity_)) return Status::failed();
  ring_ = std::make_unique<Ring<Packet*>>(capacity_, capacity_);
  return {};
}

Status Queue::live_reconfigure(Args& args) {
  uint32_t capacity;
  if (!read_capacity(args, capacity)) return Status::failed();
  if (capacity == capacity_) return {};
  // No worker is inside the element now, so the packets can move at leisure. Those in excess are dropped.
  auto ring = std::make_unique<Ring<Packet*>>(capacity, capacity);
  Batch batch;
  while (const uint32_t n = ring_->dequeue(batch.begin(), Batch::kCapacity)) {
    batch.resize(static_cast<int>(n));
    const uint32_t kept = ring->enqueue(batch.begin(), n);
    for (uint32_t i = kept; i < n; ++i) drop(batch[static_cast<int>(i)]);
  }
  ring_ = std::move(ring);
  capacity_ = capacity;
  if (length() < capacity_) nonfull_.wake();
  return {};
}

void Queue::take_state(Element& old, Errors&) {
  auto& before = static_cast<Queue&>(old);
  if (before.capacity_ == capacity_) {
    std::swap(ring_, before.ring_);
  } else {
    Batch batch;
    for (uint32_t room = capacity_; room > 0;) {
      const uint32_t n = before.ring_->dequeue(batch.begin(), std::min<uint32_t>(room, Batch::kCapacity));
      if (n == 0) break;
      room -= ring_->enqueue(batch.begin(), n);
    }
  }
  highwater_ = length();
  if (length() > 0) nonempty_.wake();
  if (length() >= capacity_) nonfull_.sleep();
}

void Queue::clear() {
  Batch batch;
  while (const uint32_t n = take(batch.begin(), Batch::kCapacity)) {
    batch.resize(static_cast<int>(n));
    batch.kill();
  }
}

uint32_t Queue::store(Batch& batch) {
  const uint32_t stored = ring_->enqueue(batch.begin(), static_cast<uint32_t>(batch.size()));
  if (stored == 0) return 0;
  const uint32_t length = this->length();
  uint32_t highest = highwater_.load(std::memory_order_relaxed);
  while (length > highest && !highwater_.compare_exchange_weak(highest, length, std::memory_order_relaxed)) {
  }
  meet();
  if (!nonempty_.active()) nonempty_.wake();
  if (length >= capacity_) {
    nonfull_.sleep();
    meet();
    if (ring_->size() < capacity_) nonfull_.wake();
  }
  return stored;
}

void Queue::overflow(Batch& batch, uint32_t from) {
  const int first = static_cast<int>(from);
  const int n = batch.size() - first;
  if (n <= 0) return;
  overflows_.add(0, static_cast<uint64_t>(n));
  if (capacity_ > 0 && !warned_.load(std::memory_order_relaxed) && !warned_.exchange(true))
    chatter("{}: overflow", declaration());
  Batch excess;
  for (int i = first; i < batch.size(); ++i) excess.push_back(batch[i]);
  if (noutputs() > 1)
    output(1).push(excess);
  else
    drop(excess);
}

void Queue::push(int, Batch& batch) { overflow(batch, store(batch)); }

uint32_t Queue::take(Packet** packets, uint32_t n) {
  const uint32_t taken = ring_->dequeue(packets, n);
  if (taken > 0) {
    if (fruitless_.load(std::memory_order_relaxed) != 0) fruitless_.store(0, std::memory_order_relaxed);
    meet();
    if (!nonfull_.active()) nonfull_.wake();
  } else if (fruitless_.load(std::memory_order_relaxed) >= patience_) {
    if (nonempty_.active()) {
      nonempty_.sleep();
      meet();
      if (ring_->size() > 0) nonempty_.wake();
    }
  } else {
    fruitless_.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}

int Queue::pull(int, Batch& batch, int max) {
  const uint32_t n = take(batch.end(), static_cast<uint32_t>(max));
  batch.resize(batch.size() + static_cast<int>(n));
  return static_cast<int>(n);
}

Notifier* Queue::notifier(NotifierKind kind, bool output, int port) {
  if (kind == NotifierKind::kNonempty) return output && port == 0 ? &nonempty_ : nullptr;
  return output ? nullptr : &nonfull_;
}

void Queue::add_handlers(Handlers& handlers) {
  handlers.read("length", [this] { return std::to_string(length()); });
  handlers.read("highwater_length", [this] { return std::to_string(highwater_.load(std::memory_order_relaxed)); });
  handlers.argument("capacity", "CAPACITY", 0, true);
  handlers.read(
      "capacity", [this] { return std::to_string(capacity_); }, Handler::kCalm);
  handlers.read("drops", [this] { return std::to_string(overflows_.sum(0)); });
  handlers.button("reset_counts", [this] {
    overflows_.reset();
    warned_ = false;
    highwater_ = length();
  });
  handlers.button("reset", [this] {
    Batch batch;
    while (const uint32_t n = take(batch.begin(), Batch::kCapacity)) {
      batch.resize(static_cast<int>(n));
      if (noutputs() > 1)
        output(1).push(batch);
      else
        drop(batch, kReset);
      batch.clear();
    }
  });
}

}  // namespace headrace
