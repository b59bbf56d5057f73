#pragma once
#include <atomic>
#include <headrace/element.hh>
#include <memory>

#include "elements/analysis/packet_number.hh"

namespace headrace {

class NumberPacket;

/// Records when packets pass, so that a TimestampDiff can measure their delay when they come back.
///
///     RecordTimestamp([keyword N, OFFSET, COUNTER, NET_ORDER, SAMPLE, DYNAMIC])
///
/// Input 0 and output 0, push. Packets pass unchanged.
///
/// N: number of times kept, at most 268435456; 0: 65536. The times of further packets are lost and counted in `lost`.
/// Default 0.
/// OFFSET: position of the number that NumberPacket wrote; the time is stored under that number. Negative: packets are
/// numbered in order of arrival. Default -1.
/// COUNTER: the NumberPacket, whose NET_ORDER is used. Default none.
/// NET_ORDER true: the number is in network order. Default false.
/// SAMPLE: only every SAMPLEth number is kept; 0 and 1: all. Default 0. Only with OFFSET.
/// DYNAMIC: accepted but ignored: set N instead.
///
/// Handlers: `lost` (r) packets whose time was not kept.
class RecordTimestamp final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;

  /// Takes the time under a number out of the record; zero if there is none. Any thread.
  Timestamp take(uint64_t number);
  bool net_order() const { return place_.net_order; }

 private:
  void keep(uint64_t number, Timestamp now);

  PacketNumber place_{-1, false};
  NumberPacket* counter_ = nullptr;
  uint32_t sample_ = 1;
  uint64_t size_ = 0;
  std::unique_ptr<std::atomic<int64_t>[]> times_;  // steady time in nanoseconds; 0: none
  std::atomic<uint64_t> next_{0};                  // the next packet's number, without OFFSET
  ThreadCounters lost_{1};
};

HEADRACE_ELEMENT(RecordTimestamp)

}  // namespace headrace
