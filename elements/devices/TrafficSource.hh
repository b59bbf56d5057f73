#pragma once
#include <headrace/batch_size.hh>
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <headrace/histogram.hh>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "elements/devices/due_time.hh"
#include "elements/devices/flow_sequence.hh"
#include "src/io/memory/traffic.hh"

namespace headrace {

/// Sends Ethernet frames generated in memory: a device port without a device.
///
///     TrafficSource([TRAFFIC, keywords PREFIXES, RULES, MISS, PROTOCOL, CHECKSUM, LENGTH, PAYLOAD, FLOWS, SKEW, SEED,
///                   TTL, LIMIT, RATE, WEIGHTS, BURST, BUFFERS, STOP, ACTIVE, STAMP, SEQUENCE])
///
/// Every worker runs the source and sends only the flows that a network card would give it (Toeplitz hash, 128-entry
/// indirection table); the hash is set as the packet's RX_HASH annotation. Frames are IPv4 and UDP, from 198.18.1.1,
/// with a right checksum; with PREFIXES they are IPv6 and UDP, from 2001:2::1, without a UDP checksum. With RULES, headers
/// are drawn inside the rules of a classifier. All headers are rewritten each time a frame is sent; buffers are used in turn
/// as in a network card's ring.
///
/// TRAFFIC: `uniform` (default): destinations uniform over the unicast addresses, a new one for each of FLOWS flows in
/// turn; `imix`: the same with frames of 60, 566 and 1514 bytes, 7 : 4 : 1 (64, 570 and 1518 with check sequence);
/// `zipf`: flows picked with probability 1/rank^SKEW; anything else is the name of a pcap or pcapng file, whose frames
/// are kept in memory and sent repeatedly.
///
/// PREFIXES: a text file of IPv6 prefixes, one per line, as LookupIP6Route reads them. Frames are IPv6, and each flow
/// goes to a random address of a random one of these prefixes: random addresses from the whole space would almost never
/// have a route.
/// RULES: a file of rules, as FlowClassifier reads it. Each frame is inside a random rule: bits beside the masks,
/// ports within their ranges, and so on, are random; addresses are unicast ones where the rule leaves a choice.
/// FLOWS frames are drawn. With `zipf` the rule at place N of the file is drawn with probability 1/N^SKEW, else
/// each with the same. A rule in front of the drawn one may match the frame as well. Frames may be of any kind that
/// rules are about: IPv4, IPv6, ARP, MPLS, with a VLAN tag; `in_port`, `metadata` and `tun_id` are left to the
/// configuration. Bad lines, and rules in which there are no frames, are named and left out.
/// MISS: share of frames that no rule matches, unless it is one of everything, as filter sets have at their end: addresses,
/// ports and protocol (TCP or UDP) are random. Default 0.
/// PROTOCOL: `tcp` or `udp`: of all frames, or with RULES of those whose rule leaves the protocol open. Default: `udp`; with
/// RULES one or the other at random. TCP segments have the ACK flag, and random numbers.
/// CHECKSUM: TCP, ICMP, and UDP over IPv6 have the checksum of what the frame carries, so frames beyond their first cache
/// lines are read when they are sent. false: the checksum of as many zeros, which costs nothing. For frames of RULES, and with
/// TCP. Default true.
/// LENGTH: bytes of a frame without check sequence, 60 (IPv6: 62) to 1514, default 64. Frames of RULES, and with TCP, have
/// at least the bytes of their headers.
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
/// carries its due time as its first timestamp annotation: nanoseconds of the monotonic clock, of which the lowest bits
/// tell the sources of the router apart if there are several.
/// WEIGHTS: numbers, the first for the first worker and so on, 1 for those that are not named. LIMIT and RATE are divided
/// in proportion to flows times weights: `WEIGHTS 10` gives the first worker ten times the frames of each other one, as
/// if its flows were the busy ones. Without RATE each worker sends as many as possible, whatever its weight.
/// BURST: frames in a batch, 1 to 256. Default: what `--batch` says, else as many as fit into the first-level cache (128
/// with 48 KiB).
/// BUFFERS: buffers that each worker cycles through, at least 8192.
/// STOP true: stops the router at the end of LIMIT.
/// ACTIVE: default true.
/// STAMP true: also writes the due time behind the headers, for a TrafficSink with STAMP at the other end of devices
/// on the same machine. IPv6 frames then have at least 74 bytes. Default false.
/// SEQUENCE true: writes the number of its flow, and its own number in its flow, behind the headers of each frame, or
/// behind what STAMP writes there. A TrafficSink with SEQUENCE in the same router checks them. Frames then have at least
/// 60 bytes (IPv6: 78), with STAMP 70 (IPv6: 90), those of `imix`, too. Not for a file of frames. Default false. Frames that are not IP get neither stamp nor number.
///
/// Handlers: `count`, `byte_count`, `missed` (r; frames not sent for lack of a buffer), `active` (rw), `reset_counts`
/// (w), and three (rw) that change what is sent while packets flow: `rate`, as RATE; frames that were due before are
/// forgotten. `length`, as LENGTH, of all frames (0: they differ). `payload`, `text` or `random`: each buffer is filled
/// with it when a frame is next sent in it. Only `rate` is for a file of frames, too.
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

  bool has_sequence() const { return numbers_; }
  /// With SEQUENCE: what has arrived at sinks.
  FlowSequence& sequence() { return *sequence_; }

 private:
  enum Counter { kPackets, kBytes, kMissed, kCounters };
  struct Sender {
    TrafficShare share;
    size_t next = 0;
    int64_t left = -1;           // frames still to send; -1 without limit
    uint32_t reserved = 0;       // of buffers_
    double part = 0;             // of the rate
    double interval_ns = 0;      // between frames; 0: no rate
    double due = 0;              // when the next one is to be sent
    bool keeps_payload = false;  // what lies behind the headers stays as it is
    // What handlers have changed.
    uint32_t changes = 0;  // that are in effect
    double rate = 0;
    uint32_t length = 0;
    uint32_t payload = 0;   // see payload_number_
    size_t unsized = 0;     // records, from `next` on, that do not have the length yet
    uint32_t unfilled = 0;  // buffers to look at until none is expected to have another payload
    // With SEQUENCE.
    TrafficFlows flows;
    uint32_t first_flow = 0;
    std::vector<uint64_t> sent;  // frames, by flow
  };

  bool read_prefixes(const std::string& prefixes, Errors& errors);
  bool send(Task& task, int worker);
  /// How many frames are due, at most `most`.
  static int due_frames(Sender& sender, int most);
  void set_rate(Sender& sender, double rate) const;
  /// Bytes that a frame needs for what STAMP and SEQUENCE write.
  uint32_t shortest() const;
  /// Notes what handlers have changed.
  void adopt_changes(Sender& sender);
  void resize(Sender& sender, size_t frames) const;
  void refill(Sender& sender, Batch& batch);
  /// \param first the record of the first frame
  void number_frames(Sender& sender, Batch& batch, size_t first) const;
  /// Finds the place among the sources of the router, and among those with SEQUENCE.
  void find_number();
  Status write_length(const std::string& value, Errors& errors);
  Status write_payload(const std::string& value, Errors& errors);
  /// Lets senders find what has changed.
  void changed() { changes_.fetch_add(1, std::memory_order_release); }
  /// Writes the next frames of `sender`: `kHeader` bytes that all have in common, then `write(frame, record)` what
  /// differs.
  template <size_t kHeader, typename Record, typename Write>
  static uint64_t fill_from(const std::vector<Record>& records, Sender& sender, Batch& batch, Write&& write);
  uint64_t fill_records(Sender& sender, Batch& batch);
  uint64_t fill_records6(Sender& sender, Batch& batch);
  template <size_t kRoom>
  uint64_t fill_headers(const std::vector<TrafficHeader<kRoom>>& headers, Sender& sender, Batch& batch);
  uint64_t fill_frames(Sender& sender, Batch& batch);
  uint64_t fill(Sender& sender, Batch& batch);
  /// Adds what frames carry to the checksums in their headers.
  /// \param first the record of the first frame
  void add_payloads(const Sender& sender, Batch& batch, size_t first) const;
  template <size_t kRoom>
  void add_payloads(const std::vector<TrafficHeader<kRoom>>& headers, const Sender& sender, Batch& batch,
                    size_t first) const;

  TrafficSpec spec_;
  int64_t limit_ = -1;
  double rate_ = 0;
  int burst_ = default_batch();
  uint32_t buffers_ = 8192;
  std::string payload_ = "any";
  std::vector<double> weights_;  // by worker
  bool stop_ = false;
  bool stamp_ = false;
  bool numbers_ = false;
  bool sums_payload_ = true;
  uint32_t number_ = 0;       // among sources with SEQUENCE, see FrameSequence
  size_t source_number_ = 0;  // among all
  DueTime due_time_;
  std::unique_ptr<FlowSequence> sequence_;
  std::atomic<bool> active_{true};
  // What handlers change.
  std::atomic<uint32_t> changes_{0};
  std::atomic<double> rate_now_{0};
  std::atomic<uint32_t> length_now_{0};  // 0: as it was made
  std::atomic<const std::string*> content_now_{nullptr};
  std::atomic<uint32_t> payload_number_{0};  // of the payload that buffers are to have; 0: what they have
  std::mutex lock_;                          // never taken for a packet; guards the next
  std::map<std::string, std::shared_ptr<const std::string>> contents_;
  std::string payload_now_;
  std::unique_ptr<uint32_t[]> payload_of_buffer_;  // by place in the packet pool; written by who has the buffer
  std::atomic<int> unfinished_{0};
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Task>> tasks_of_workers_;
  ThreadCounters counters_{kCounters};
};
HEADRACE_ELEMENT(TrafficSource)

}  // namespace headrace
