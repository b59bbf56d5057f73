#pragma once
#include <atomic>
#include <headrace/element.hh>
#include <memory>
#include <vector>

#include "elements/analysis/packet_number.hh"

namespace headrace {

class RecordTimestamp;

/// Measures the delay of packets since they passed a RecordTimestamp.
///
///     TimestampDiff(RECORDER [, keyword OFFSET, N, MAXDELAY, NANO, SAMPLE, VERBOSE, TC_OFFSET, TC_MASK])
///
/// Input 0 and outputs, push. Output 0: packets, measured or not in the sample. Output 1 (optional): packets whose time
/// the recorder does not have or no longer has; without it they are dropped and counted.
///
/// RECORDER: the RecordTimestamp.
/// OFFSET: position of the number that NumberPacket wrote. Default 40.
/// N: number of delays kept, at most 268435456; 0: 65536. Further delays are lost and counted in `lost`. Default 0.
/// MAXDELAY: longer delays, in milliseconds, are not kept. Default 1000.
/// NANO true: delays are in nanoseconds; false: in microseconds. Default false.
/// SAMPLE: only packets whose number is a multiple of it are measured. Default 1.
/// VERBOSE true: reports delays above MAXDELAY. Default false.
/// TC_OFFSET: position of a byte with the packet's class, in the bits of TC_MASK; negative: none. Default -1
/// and 255.
///
/// Handlers (r): `avg` and `average`, `min`, `max`, `stddev`, `perc00`, `perc01`, `perc05`, `perc10`, `perc25`,
/// `median`,
/// `perc75`, `perc90`, `perc95`, `perc99`, `perc100`, all of them with a parameter `[BEGIN]` that skips the first BEGIN
/// delays; `perc P [BEGIN]`, a percentile; `avg_tc CLASS [BEGIN]`, of a class; `index` the number of the last delay, -1
/// if there is none; `last` the last delay; `dump` and `dump_list` all delays, one per line, with numbers and without;
/// `lost`.
class TimestampDiff final : public Element {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;

 private:
  static constexpr int kAnyClass = -1;
  /// A delay in the lower bits, the class in the upper eight; stored plus one, 0: not yet.
  using Record = std::atomic<uint64_t>;
  Next measure(const Packet& p, Timestamp now);
  /// The delays from number `begin` on, of one class or all.
  std::vector<double> delays(size_t begin, int of_class = kAnyClass) const;
  size_t recorded() const;

  RecordTimestamp* recorder_ = nullptr;
  PacketNumber place_;
  uint64_t size_ = 0;
  uint32_t max_delay_ms_ = 1000;
  bool nano_ = false;
  bool verbose_ = false;
  uint32_t sample_ = 1;
  int32_t class_offset_ = -1;
  uint8_t class_mask_ = 0xff;
  std::unique_ptr<Record[]> records_;
  std::atomic<uint64_t> next_{0};
};

HEADRACE_ELEMENT(TimestampDiff)

}  // namespace headrace
