#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <headrace/histogram.hh>
#include <memory>
#include <mutex>
#include <vector>

#include "elements/devices/due_time.hh"
#include "elements/devices/flow_sequence.hh"

namespace headrace {

class TrafficSource;

/// Removes Ethernet frames from the router and counts them per thread; optionally checks them.
///
///     TrafficSink([keywords CHECK, TTL, TABLE, PORT, LATENCY, STAMP, SEQUENCE, BURST])
///
/// Push or pull.
///
/// CHECK true: each frame must hold an IPv4 packet with a right header checksum and a total length that fits, or an
/// IPv6 packet with a payload length that fits. Default false. TTL: with CHECK, the time to live or hop limit that
/// every packet must have. TABLE, PORT: with CHECK, the name of an IP lookup element and the output of it that packets
/// here must have left by, according to the route that its `lookup` handler gives for the destination. LATENCY true:
/// measures the time since each frame was due at a TrafficSource with a RATE, and counts frames that arrived after a
/// later frame of their flow from the same source. Default false. STAMP true: the same with the time that a TrafficSource with STAMP wrote
/// into the frame, which also works across devices; the order of flows is not checked. Default false. SEQUENCE
/// true: checks the numbers that TrafficSources with SEQUENCE in this router write into the frames of each flow. A frame
/// is lost when a later one of its flow has arrived, at whichever sink with SEQUENCE, and it has not; so is one that the
/// router drops on purpose. It is doubled when it has arrived before, and reordered when it arrives after a later one.
/// Counts are exact as long as each flow stays on one worker. Default false. BURST: packets pulled at a time. Default 64.
///
/// Handlers: `count`, `byte_count` (r); `bad` (r) frames that failed the check, `bad_details` (r) by reason with an
/// example; `latency` (r) quantiles in microseconds; `reordered` (r), by the times that frames were due;
/// `sequence_checked`, `sequence_lost`, `sequence_doubled`, `sequence_reordered` (r) frames at all sinks with SEQUENCE;
/// `reset_counts` (w).
class TrafficSink final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"1/0"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    if (!measures_ || stamp_) return {};
    return declared(Read{anno::first_timestamp}, Read{anno::rx_hash});
  }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  /// Goes on with what `old` has measured.
  void take_state(Element& old, Errors& errors) override;
  bool run_task(Task& task) override;

  bool moves(Direction direction) const override { return direction == Direction::kOut; }
  PortTotals totals(Direction direction, int thread) const override;

  /// Nanoseconds from due to here, with LATENCY.
  void add_latency(Histogram& to) const;
  uint64_t reordered() const { return counters_.sum(kReordered); }
  /// With SEQUENCE: of all sinks of the router that have it.
  FlowSequence::Counts sequence() const;
  bool has_sequence() const { return numbers_; }
  void reset();

 private:
  enum Counter { kPackets, kBytes, kNotIp, kBadChecksum, kBadLength, kBadTtl, kBadPort, kReordered, kCounters };

  void check(const Packet& p);
  void check6(const Packet& p);
  /// Checks the output of the route for a destination.
  void check_route(const std::string& destination, const Packet& p);
  void report(Counter what, const Packet& p);

  /// What one thread knows of times.
  struct Times {
    static constexpr uint32_t kFlows = 4096;
    Histogram latency;
    std::vector<uint64_t> last_of_flow;  // for each source
  };
  void forget_flows();
  void measure(const Batch& batch);
  void check_numbers(Batch& batch);

  bool check_ = false;
  bool measures_ = false;
  bool stamp_ = false;
  bool numbers_ = false;
  std::vector<TrafficSource*> sources_;  // with SEQUENCE, by FrameSequence::source
  int ttl_ = -1;
  Element* table_ = nullptr;
  int table_port_ = -1;
  int burst_ = 64;
  const Handler* lookup_ = nullptr;
  Signal signal_;
  Task task_{this};
  ThreadCounters counters_{kCounters};
  DueTime due_time_;
  std::unique_ptr<PerThread<Times>> times_;
  mutable std::mutex lock_;  // examples_: bad packets only
  std::string examples_[kCounters];
};
HEADRACE_ELEMENT(TrafficSink)

}  // namespace headrace
