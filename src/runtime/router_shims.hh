#pragma once
/// \file
/// Elements that the router itself puts between a port and its peer. They are not part of the configuration.

#include <x86intrin.h>

#include "headrace/router.hh"

namespace headrace {

/// Placed where a push connection closes a cycle, so that a packet that circulates is dropped before it exhausts the
/// stack.
class BackEdge final : public Element {
 public:
  static constexpr int kMaxTurns = 32;
  BackEdge(Element* to, int port) : to_(to), port_(port) { count_reasons({"loop"}); }
  void push(int, Batch& batch) override {
    int& depth = depth_.local();
    if (depth >= kMaxTurns) {
      drop(batch);
      return;
    }
    ++depth;
    to_->push(port_, batch);
    --depth;
  }

 private:
  Element* to_;
  int port_;
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
  int pull(int, Batch& batch, int max) override {
    enter();
    const int n = to_->pull(port_, batch, max);
    leave();
    count(n);
    return n;
  }

  /// Charges the cycles since the last change of element to the element that ran, and further cycles to `to`.
  static void charge(uint64_t* to) {
    const uint64_t now = __rdtsc();
    if (t_running) *t_running += now - t_since;
    t_since = now;
    t_running = to;
  }
  static inline thread_local uint64_t* t_running = nullptr;
  static inline thread_local uint64_t t_since = 0;

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
    outer = t_running;
    charge(counters_.local() + kCycles);
  }
  void leave() { charge(stack_.local()[--depth_.local() % kDepth]); }

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
