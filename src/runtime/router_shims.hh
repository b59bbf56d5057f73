#pragma once
/// \file
/// Elements that the router itself puts between a port and its peer. They are not part of the configuration.

#include <utility>

#include "headrace/router.hh"
#include "offload/cycle_account.hh"

namespace headrace {

/// Placed where a push connection closes a cycle; its output leads on. Drops packets that have passed such connections
/// too often: each packet carries the number, because a packet that circulates by way of a device is not on the stack.
/// Elements that answer each other with new packets are stopped by the depth of the stack.
class BackEdge final : public Element {
 public:
  static constexpr int kMaxTurns = 32;
  static_assert(kMaxTurns <= Packet::kMaxTurns);
  BackEdge() { count_reasons({"loop"}); }
  void push(int, Batch& batch) override {
    int& depth = depth_.local();
    if (depth >= kMaxTurns) {
      drop(batch);
      return;
    }
    int kept = 0;
    for (Packet* p : batch) {
      if (p->turns() >= kMaxTurns) {
        drop(p);
        continue;
      }
      p->add_turn();
      batch[kept++] = p;
    }
    batch.resize(kept);
    if (batch.empty()) return;
    ++depth;
    output(0).push(batch);
    --depth;
  }

 private:
  PerThread<int> depth_;
};

/// Measures the element behind it. Cycles are exclusive: those of further elements are charged to them.
class Probe final : public Element {
 public:
  enum Counter { kCycles, kPackets, kBatches, kCounters };

  /// \param source the counters of the element in front, if that is a source (it has no inputs), else null
  Probe(Element* to, int port, ThreadCounters& counters, ThreadCounters* source)
      : to_(to), port_(port), counters_(counters), source_(source) {}

  void push(int, Batch& batch) override {
    count(batch.size());
    enter();
    to_->push(port_, batch);
    leave();
  }
  /// From now on another probe counts for the source in front.
  ThreadCounters* release_source() { return std::exchange(source_, nullptr); }
  int pull(int, Batch& batch, int max) override {
    enter();
    const int n = to_->pull(port_, batch, max);
    leave();
    count(n);
    return n;
  }

 private:
  void count(int packets) {
    for (ThreadCounters* counters : {&counters_, source_}) {
      if (!counters) continue;
      uint64_t* c = counters->local();
      c[kPackets] += static_cast<uint64_t>(packets);
      c[kBatches] += packets > 0;
    }
  }
  void enter() {
    uint64_t*& outer = stack_.local()[depth_.local()++ % kDepth];
    outer = offload::CycleAccount::t_running;
    offload::CycleAccount::charge(counters_.local() + kCycles);
  }
  void leave() { offload::CycleAccount::charge(stack_.local()[--depth_.local() % kDepth]); }

  static constexpr unsigned kDepth = 64;  // calls of one element on the stack; BackEdge limits them
  struct Stack {
    uint64_t* of[kDepth];
    uint64_t*& operator[](unsigned i) { return of[i]; }
  };

  Element* to_;
  int port_;
  ThreadCounters& counters_;
  ThreadCounters* source_;
  PerThread<Stack> stack_;
  PerThread<unsigned> depth_;
};

}  // namespace headrace
