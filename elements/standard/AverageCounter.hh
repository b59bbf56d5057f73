#pragma once
#include <atomic>
#include <headrace/element.hh>

#include "headrace/single_writer.hh"

namespace headrace {

/// Counts packets and bytes, and their average rates from the first packet to the last.
///
///     AverageCounter([IGNORE, LINK_FCS, keyword MAX, THRESHOLD])
///
/// Packets pass unchanged. Each worker has its own counters; handlers show the sum. AverageCounterMP and
/// AverageCounterIMP, FastClick's counters for several threads, are the same.
///
/// IGNORE: does not count during the first IGNORE seconds. Default 0.
/// LINK_FCS: frames on the wire have a check sequence of 4 bytes. Default true; only for `link_count` and `link_rate`.
/// MAX: stops counting MAX seconds after the first packet. Default 0: never.
/// THRESHOLD: counting starts over, once, when the rate exceeds this many packets per second. The rate is checked when
/// a second has passed since the first packet. Default 0: no threshold.
///
/// Handlers: `count`, `byte_count`, `bit_count`, `link_count` (r) since the last reset: packets, bytes, bits, and bits
/// on an Ethernet, with preamble, gap and check sequence; `rate`, `byte_rate`, `bit_rate`, `link_rate` (r) the same per
/// second; `time` (r) the length of the period in seconds; `reset`, `reset_now` (w), the latter as if the first packet
/// arrived now.
class AverageCounter final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  enum { kPackets, kBytes, kCounts };
  enum What { kPacketCount, kByteCount, kBitCount, kLinkCount };
  void count(Packet* const* begin, Packet* const* end);
  uint64_t counted(What what) const;
  /// Seconds from the first packet that counts to the last.
  double span() const;
  void reset(int64_t first);

  Interval ignore_;
  bool link_fcs_ = true;
  uint32_t max_ = 0;
  uint32_t threshold_ = 0;
  std::atomic<bool> above_{false};  // THRESHOLD was reached
  ThreadCounters counts_{kCounts};
  std::atomic<int64_t> first_{0};  // steady time in nanoseconds; 0: no packet yet
  PerThread<SingleWriter<int64_t>> last_;
};

HEADRACE_ELEMENT(AverageCounter)
HEADRACE_ELEMENT_ALIAS(AverageCounterMP, AverageCounter)
HEADRACE_ELEMENT_ALIAS(AverageCounterIMP, AverageCounter)

}  // namespace headrace
