#pragma once
#include <atomic>
#include <headrace/element.hh>
#include <memory>

#include "headrace/ring.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Passes packets to another worker.
///
///     Pipeliner([CAPACITY, BURST, BLOCKING, keyword ACTIVE, ALWAYS_UP, DIRECT_TRAVERSAL, NOUSELESS, VERBOSE, PREFETCH])
///
/// Any number of inputs and one output, push. Any worker may push packets into it; the element's home thread, which
/// StaticThreadSched sets, pushes them on. Packets that do not fit are dropped and counted.
///
/// CAPACITY: maximum number of packets stored, at least 4; 0 and less: 1024. Default 1024.
/// BURST: maximum number of packets moved in a row; 0 and less: no limit. Default 32.
/// BLOCKING: only false is accepted: a worker that waits for another could wait forever. Default false.
/// ACTIVE false: stores packets and does not push them on. Default true.
/// ALWAYS_UP true: polls all the time instead of being woken. Default false.
/// DIRECT_TRAVERSAL true: packets pushed by the home thread itself are passed on at once. Default true.
/// NOUSELESS, VERBOSE, PREFETCH: accepted but ignored.
///
/// Handlers: `count` (r) packets stored so far; `dropped` (r); `active` (rw); `highwater` (r) most packets stored.
class Pipeliner final : public Element {
 public:
  static constexpr Ports kPorts{"1-/1"};
  static constexpr Processing kProcessing{"h/h"};

  ~Pipeliner() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  bool run_task(Task& task) override;
  uint64_t held_packets() const override { return ring_->size(); }

 private:
  enum { kStored, kDropped, kCounts };
  /// Orders what a thread did to the ring before what it reads of the task afterwards, against the thread that does the
  /// opposite: one of two that meet here sees what the other did.
  void meet() { meeting_.fetch_add(1, std::memory_order_acq_rel); }

  int32_t burst_ = 32;
  bool active_ = true;
  bool always_up_ = false;
  bool direct_ = true;
  std::unique_ptr<Ring<Packet*>> ring_;
  ThreadCounters counts_{kCounts};
  SingleWriter<uint32_t> highwater_ = 0u;
  Task task_{this};
  alignas(64) std::atomic<uint32_t> meeting_{0};
};

HEADRACE_ELEMENT(Pipeliner)

}  // namespace headrace
