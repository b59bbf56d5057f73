#pragma once
#include <headrace/element.hh>

#include "elements/standard/packet_fifo.hh"
#include "headrace/single_writer.hh"
#include "headrace/storage.hh"

namespace headrace {

/// Emulates a serial link with latency and bandwidth.
///
///     LinkUnqueue(LATENCY, BANDWIDTH)
///
/// Input 0, pull; output 0, push. A packet leaves LATENCY after it was pulled, plus the transmission time of its length
/// (and its extra length annotation) at BANDWIDTH, and after all earlier packets. Its new timestamp is the time at
/// which it leaves. The element pulls only as fast as the link accepts packets, so a Queue in front is the link's
/// queue.
///
/// LATENCY: a time.
/// BANDWIDTH: such as 384kbps, at least 100 bytes per second; 0: no transmission time.
///
/// Handlers: `latency`, `bandwidth` (rw; the latter reads bytes per second), `size` (r) packets on the link, `reset`
/// (w) drops them, as do writes of `latency` and `bandwidth`.
class LinkUnqueue final : public Element, public Storage {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"l/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  std::vector<RegionInfo> annotations() const override { return declared(Read{anno::extra_length}); }

  uint32_t stored() const override { return size_; }
  uint64_t held_packets() const override { return link_.size(); }

 private:
  /// When a packet leaves that enters the link at a time from which on the link is free.
  Timestamp leaves(const Packet& p, Timestamp free) const;
  void enter_packets(Timestamp now);
  bool emit_packets(Timestamp now);
  void reset();

  Interval latency_;
  Bandwidth bandwidth_;
  PacketFifo link_;  // by timestamp
  SingleWriter<uint32_t> size_;
  bool back_to_back_ = false;
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
  Signal signal_;
};

HEADRACE_ELEMENT(LinkUnqueue)

}  // namespace headrace
