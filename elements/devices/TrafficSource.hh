#pragma once
#include <headrace/batch_size.hh>
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <headrace/histogram.hh>

#include "src/io/memory/traffic.hh"

namespace headrace {

/// Sends Ethernet frames generated in memory: a device port without a device.
///
///     TrafficSource([TRAFFIC, keywords PREFIXES, LENGTH, PAYLOAD, FLOWS, SKEW, SEED, TTL, LIMIT, RATE, BURST, BUFFERS,
///                   STOP, ACTIVE, STAMP])
///
/// Every worker runs the source and sends only the flows that a network card would give it (Toeplitz hash, 128-entry
/// indirection table); the hash is set as the packet's RX_HASH annotation. Frames are IPv4 and UDP, from 198.18.1.1,
/// with a right checksum; with PREFIXES they are IPv6 and UDP, from 2001:2::1, without a UDP checksum. All headers are
/// rewritten each time a frame is sent; buffers are used in turn as in a network card's ring.
///
/// TRAFFIC: `uniform` (default): destinations uniform over the unicast addresses, a new one for each of FLOWS flows in
/// turn; `imix`: the same with frames of 60, 566 and 1514 bytes, 7 : 4 : 1 (64, 570 and 1518 with check sequence);
/// `zipf`: flows picked with probability 1/rank^SKEW; anything else is the name of a pcap or pcapng file, whose frames
/// are kept in memory and sent repeatedly.
///
/// PREFIXES: a text file of IPv6 prefixes, one per line, as LookupIP6Route reads them. Frames are IPv6, and each flow
/// goes to a random address of a random one of these prefixes: random addresses from the whole space would almost never
/// have a route.
/// LENGTH: bytes of a frame without check sequence, 60 (IPv6: 62) to 1514, default 64.
/// PAYLOAD: what generated frames carry: `text`, requests and responses of HTTP as browsers and servers write them, or
/// `random` bytes. All buffers of the pool are filled with it before the router runs, and sending a frame needs no
/// copy; changes made by elements that write payloads, or by another source, remain. Default `any`: whatever the
/// buffers contain.
/// FLOWS: number of flows, default 1048576.
/// SKEW: default 1.
/// SEED: default 1.
/// TTL: time to live or hop limit, default 64.
/// LIMIT: frames to send in all, divided among the workers; -1 (default) for no limit.
/// RATE: frames per second, divided among the workers in proportion to their flows; 0 (default) for as many as
/// possible. The load is open-loop: frames are due at regular intervals whether or not the router keeps up, and each
/// carries its due time as its first timestamp annotation (nanoseconds of the monotonic clock).
/// BURST: frames in a batch, 1 to 256. Default: what `--batch` says, else as many as fit into the first-level cache (128
/// with 48 KiB).
/// BUFFERS: buffers that each worker cycles through, at least 8192.
/// STOP true: stops the router at the end of LIMIT.
/// ACTIVE: default true.
/// STAMP true: also writes the due time behind the UDP header, for a TrafficSink with STAMP at the other end of devices
/// on the same machine. IPv6 frames then have at least 74 bytes. Default false.
///
/// Handlers: `count`, `byte_count`, `missed` (r; frames not sent for lack of a buffer), `active` (rw), `reset_counts`
/// (w).
class TrafficSource final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return rate_ > 0 ? declared(Write{anno::rx_hash}, Write{anno::first_timestamp}) : declared(Write{anno::rx_hash});
  }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  /// Goes on where `old` was in its frames; a RATE goes on, too, and does not forget frames that were due meanwhile.
  void take_state(Element& old, Errors& errors) override;

  bool moves(Direction direction) const override { return direction == Direction::kIn; }
  PortTotals totals(Direction direction, int thread) const override;
  uint64_t missed() const override { return counters_.sum(kMissed); }

 private:
  enum Counter { kPackets, kBytes, kMissed, kCounters };
  struct Sender {
    TrafficShare share;
    size_t next = 0;
    int64_t left = -1;       // frames still to send; -1 without limit
    uint32_t reserved = 0;   // of buffers_
    double interval_ns = 0;  // between frames; 0: no rate
    double due = 0;          // when the next one is to be sent
  };

  bool send(Task& task, int worker);
  /// How many frames are due, at most `most`.
  static int due_frames(Sender& sender, int most);
  /// Writes the next frames of `sender`: `kHeader` bytes that all have in common, then `write(frame, record)` what
  /// differs.
  template <size_t kHeader, typename Record, typename Write>
  static uint64_t fill_from(const std::vector<Record>& records, Sender& sender, Batch& batch, Write&& write);
  uint64_t fill_records(Sender& sender, Batch& batch);
  uint64_t fill_records6(Sender& sender, Batch& batch);
  uint64_t fill_frames(Sender& sender, Batch& batch);

  TrafficSpec spec_;
  int64_t limit_ = -1;
  double rate_ = 0;
  int burst_ = default_batch();
  uint32_t buffers_ = 8192;
  std::string payload_ = "any";
  bool keeps_payload_ = false;  // what lies behind the headers stays as it is
  bool stop_ = false;
  bool stamp_ = false;
  std::atomic<bool> active_{true};
  std::atomic<int> unfinished_{0};
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Task>> tasks_of_workers_;
  ThreadCounters counters_{kCounters};
};
HEADRACE_ELEMENT(TrafficSource)

}  // namespace headrace
