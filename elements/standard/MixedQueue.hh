#pragma once
#include <algorithm>
#include <atomic>
#include <deque>
#include <headrace/element.hh>

namespace headrace {

/// Stores packets of its first input first in first out, those of its second input last in first out.
///
///     MixedQueue([CAPACITY])
///
/// Input 0, push: packets to append; those that do not fit are dropped. Input 1, push: packets that go to
/// the front; when the queue is full, each drops the packet at the end. Output 0, pull: the packet at the
/// front. Output 1 (optional), push: packets that were dropped. Threads that use it exclude each other for the time it
/// takes to move a batch.
///
/// Notifies pullers when it becomes empty or non-empty.
///
/// CAPACITY: maximum number of packets stored. Default 1000.
///
/// Handlers: `length`, `highwater_length` (r) packets stored now, and the maximum so far; `capacity` (rw); `drops` (r);
/// `reset_counts` (w) of drops and high water; `reset` (w) drops stored packets.
class MixedQueue final : public Element {
 public:
  static constexpr Ports kPorts{"2/1-2"};
  static constexpr Processing kProcessing{"h/lh"};

  MixedQueue() { count_reasons({"queue full", "queue reset"}); }
  ~MixedQueue() override;
  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;

  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;
  uint64_t held_packets() const override { return packets_.size(); }
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 private:
  enum Reason { kFull, kReset };
  void drop_excess(Batch& excess);

  uint32_t capacity_ = 1000;
  std::atomic_flag busy_;  // guards packets_ and what follows; held for a batch, never across a push
  std::deque<Packet*> packets_;
  size_t highwater_ = 0;
  int fruitless_ = 0;
  Notifier nonempty_;
  ThreadCounters overflows_{1};
};

HEADRACE_ELEMENT(MixedQueue)

}  // namespace headrace
