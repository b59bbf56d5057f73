#pragma once
#include <headrace/shader.hh>

namespace headrace {

struct CounterOwner;

/// Counts packets and bytes, and measures their rates.
///
///     Counter([keyword COUNT_CALL, BYTE_COUNT_CALL])
///
/// Packets pass unchanged. Each worker has its own counters; handlers show the sum. CounterMP, FastClick's counter for
/// several threads, is the same.
///
/// COUNT_CALL: "N HANDLER [VALUE]". When the Nth packet arrives, writes VALUE to HANDLER before the packet is passed
/// on.
/// BYTE_COUNT_CALL: "N HANDLER [VALUE]", the same for the packet that makes the count of bytes reach N. With either,
/// all workers share a count.
///
/// Handlers: `count`, `byte_count` (r) since the last reset; `rate`, `byte_rate`, `bit_rate` (r) per second, as a
/// moving average: every millisecond has a weight of 1/16; `reset`, `reset_counts` (w);
/// `count_call` (rw; reads N), `byte_count_call` (w) replace the arguments, without HANDLER nothing is called.
struct Counter : Shader<Counter> {
  using Owner = CounterOwner;
  static constexpr auto kRegions = regions(Read{meta::length});
  enum { kPackets, kBytes };
  static constexpr auto kCounters = counters(headrace::counter("packets"), headrace::counter("bytes"));

  bool calls = false;

  Status configure(Args& args, CounterOwner& owner);
  Status initialize(Errors& errors, CounterOwner& owner, ShaderElementBase& element);
  void add_handlers(Handlers& handlers, CounterOwner& owner, ShaderElementBase& element);
  void refresh(const CounterOwner& owner);
  void mirror(Mirror& mirror, const CounterOwner& owner);
  Next escape(Packet*& p, Emitter& emit, CounterOwner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    p.count(kPackets);
    p.count(kBytes, p.length());
    return calls ? kEscape : 0;
  }
};

}  // namespace headrace
