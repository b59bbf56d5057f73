#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <headrace/histogram.hh>

#include "src/io/memory/traffic.hh"

namespace headrace {

/// Sends Ethernet frames made in memory: a device port that needs no device.
///
///     TrafficSource([TRAFFIC, keywords PREFIXES, LENGTH, PAYLOAD, FLOWS, SKEW, SEED, TTL, LIMIT, RATE, BURST, BUFFERS,
///                   STOP, ACTIVE, STAMP])
///
/// Every worker runs the source and sends only the flows that a network card would give it (Toeplitz hash, 128-entry
/// indirection table); the hash is set as the packet's RX_HASH annotation. Frames are IPv4 and UDP, from 198.18.1.1,
/// with a right checksum; with PREFIXES they are IPv6 and UDP, from 2001:2::1, without a UDP checksum. All headers are
/// written anew each time a frame is sent; buffers are used in turn as in a card's ring.
///
/// TRAFFIC: `uniform` (default): destinations uniform over the unicast addresses, a new one for each of FLOWS flows in
/// turn; `imix`: the same with frames of 60, 566 and 1514 bytes, 7 : 4 : 1 (64, 570 and 1518 with check sequence);
/// `zipf`: flows picked with probability 1/rank^SKEW; anything else is the name of a pcap or pcapng file, whose frames
/// are held in memory and sent again and again.
///
/// PREFIXES: a text file of IPv6 prefixes, one a line, as LookupIP6Route reads them. Frames are IPv6, and each flow
/// goes to a random address of a random one of these prefixes: addresses drawn from all would nearly all have no route.
/// LENGTH: bytes of a frame without check sequence, 60 (IPv6: 62) to 1514, default 64.
/// PAYLOAD: what generated frames carry: `text`, requests and responses of HTTP as browsers and servers write them, or
/// `random` bytes. All buffers of the pool are filled with it before the router runs, as a card would fill them, and
/// sending a frame costs no copy; an element that changes payloads, or another source, leaves its traces. Default
/// `any`: what buffers happen to hold.
/// FLOWS: number of flows, default 1048576.
/// SKEW: default 1.
/// SEED: default 1.
/// TTL: time to live or hop limit, default 64.
/// LIMIT: frames to send in all, divided among the workers; -1 (default) for no limit.
/// RATE: frames a second, divided among the workers in proportion to their flows; 0 (default) for as many as possible.
/// The load is open: frames are due at even intervals whether or not the router keeps up, and each carries the time at
/// which it was due as its first timestamp annotation (nanoseconds of the monotonic clock).
/// BURST: frames in a batch, 1 to 256, default 128: then headers and annotations of a batch fit into a first-level
/// cache.
/// BUFFERS: buffers that each worker cycles through, at least 8192.
/// STOP true: stops the router at the end of LIMIT.
/// ACTIVE: default true.
/// STAMP true: that time is also written behind the UDP header, for a TrafficSink with STAMP on the far side of devices
/// on the same machine. IPv6 frames then have at least 74 bytes. Default false.
///
/// Handlers: `count`, `byte_count`, `missed` (r; no buffer was left), `active` (rw), `reset_counts` (w).
class TrafficSource final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  Direction direction() const override { return Direction::kIn; }
  PortTotals totals(int thread) const override;
  /// With a RATE: times, in nanoseconds, between a look of a source that had nothing to send and the next. Long ones
  /// are pauses of the machine, not of the router.
  void add_gaps(Histogram& to) const;
  void reset_gaps();
  uint64_t missed() const override { return counters_.sum(kMissed); }

 private:
  enum Counter { kPackets, kBytes, kMissed, kCounters };
  struct Sender {
    TrafficShare share;
    size_t next = 0;
    int64_t left = -1;  // frames still to send; -1 without limit
    bool reserved = false;
    double interval_ns = 0;  // between frames; 0: no rate
    double due = 0;          // when the next one is to be sent
    double idle_since = 0;   // the last look that found nothing due; 0: it found something
    Histogram gaps;
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
  int burst_ = 128;
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
