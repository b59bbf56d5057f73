#pragma once
#include <atomic>
#include <headrace/element.hh>

#include "elements/standard/single_writer.hh"

namespace headrace {

/// Counts packets and bytes, and how many there were in a second from the first packet to the last.
///
///     AverageCounter([IGNORE])
///
/// IGNORE: what comes in the first seconds is not counted. Default 0.
///
/// Handlers: `count`, `byte_count` (r) since the last reset; `rate`, `byte_rate` (r) in a second; `reset` (w).
class AverageCounter final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  enum { kPackets, kBytes, kCounts };
  void count(Packet* const* begin, Packet* const* end);
  double rate(int which) const;
  void reset();

  uint32_t ignore_ = 0;
  ThreadCounters counts_{kCounts};
  std::atomic<int64_t> first_{0};  // steady time in nanoseconds; 0: no packet yet
  PerThread<SingleWriter<int64_t>> last_;
};

HEADRACE_ELEMENT(AverageCounter)

}  // namespace headrace
