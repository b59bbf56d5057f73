#pragma once
#include <atomic>
#include <headrace/element.hh>

#include "elements/analysis/packet_number.hh"

namespace headrace {

/// Writes an increasing number into each packet.
///
///     NumberPacket([OFFSET, keyword NET_ORDER])
///
/// The number has 8 bytes and starts at 0. A packet that is too short is extended; if its IPv4 header is marked, the
/// length field is updated, too (but not the checksum: put SetIPChecksum behind). A packet whose buffer has no room is
/// dropped and counted. RecordTimestamp and TimestampDiff read the number.
///
/// OFFSET: where the number goes, from the beginning of the packet. Default 40.
/// NET_ORDER true: in network byte order; false: in the processor's byte order. Default false.
///
/// Handlers: `count` (r) packets so far.
class NumberPacket final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

  const PacketNumber& place() const { return place_; }

 private:
  /// Numbers the packets from slot `from` on; those without room are dropped.
  void number(Batch& batch, int from);

  PacketNumber place_{40, false};
  std::atomic<uint64_t> count_{0};
};

HEADRACE_ELEMENT(NumberPacket)

}  // namespace headrace
