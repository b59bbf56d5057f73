#pragma once
#include <algorithm>
#include <atomic>
#include <headrace/element.hh>
#include <memory>

#include "headrace/ring.hh"
#include "headrace/storage.hh"

namespace headrace {

/// Stores packets, first in first out. Any number of threads may push and pull at the same time.
///
///     Queue([CAPACITY])
///
/// Input 0, push: packets to store. Output 0, pull: stored packets. Output 1 (optional), push: packets that do not fit;
/// without it they are dropped. They are counted in either case.
///
/// Notifies pullers when it becomes non-empty or, after a few empty pulls (to avoid flapping), empty; notifies pushers
/// when it becomes full or non-full.
///
/// CAPACITY: maximum number of packets stored, up to 4194304. Default 1000.
///
/// Handlers: `length`, `highwater_length` (r) packets stored now, and the maximum so far; `capacity` (rw); `drops` (r);
/// `reset_counts` (w) of drops and high water; `reset` (w) drops stored packets, by output 1 if it is connected.
class Queue : public Element, public Storage {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/lh"};

  Queue() : Queue(kPatience) {}
  ~Queue() override;

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  Status live_reconfigure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  /// The packets stay in their order; what does not fit is lost.
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return ring_->size(); }

  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

  /// Never more than the capacity, though other threads push and pull meanwhile.
  uint32_t length() const { return std::min(ring_->size(), capacity_); }
  uint32_t capacity() const { return capacity_; }
  uint32_t stored() const override { return length(); }

 protected:
  /// Fruitless pulls before the nonempty notifier goes to sleep.
  static constexpr int kPatience = 9;
  explicit Queue(int patience) : patience_(patience) { count_reasons({"queue full", "queue reset"}); }

  /// Stores the first packets of `batch`, as many as fit, wakes the pullers, and returns how many.
  uint32_t store(Batch& batch);
  /// Counts packets from slot `from` on, and sends them to output 1 if it is there.
  void overflow(Batch& batch, uint32_t from);
  uint32_t take(Packet** packets, uint32_t n);

 private:
  enum Reason { kFull, kReset };
  Status read_capacity(Args& args, uint32_t& capacity);
  /// Drops all packets.
  void clear();
  /// Orders what this thread did to the ring before what it reads of a notifier afterwards, or the other way round,
  /// against a thread that does the opposite: one of two threads that meet here sees what the other did.
  void meet() { meeting_.fetch_add(1, std::memory_order_acq_rel); }

  uint32_t capacity_ = 1000;
  std::unique_ptr<Ring<Packet*>> ring_;
  std::atomic<uint32_t> highwater_{0};
  ThreadCounters overflows_{1};
  std::atomic<bool> warned_{false};
  const int patience_;
  Notifier nonempty_, nonfull_;
  alignas(64) std::atomic<uint32_t> meeting_{0};
  alignas(64) std::atomic<int> fruitless_{0};
};

HEADRACE_ELEMENT(Queue)
HEADRACE_ELEMENT_ALIAS(FullNoteQueue, Queue)
HEADRACE_ELEMENT_ALIAS(ThreadSafeQueue, Queue)

}  // namespace headrace
