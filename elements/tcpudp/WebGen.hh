#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/headers.hh"
#include "headrace/random_numbers.hh"

namespace headrace {

/// Loads a web server: fetches random pages, each over a TCP connection from a random address.
///
///     WebGen(PREFIX, DST, RATE [, keyword REPORT])
///
/// Input: the server's IP packets, which begin with their IP header. Output 0: the clients' IP packets, with network
/// header and destination address annotation. The server needs a route to PREFIX. Example for a server on this host:
///
///     tap :: KernelTap(11.11.0.0/16, ETHER 2:2:2:2:2:2) -> c :: Classifier(12/0800, 12/0806 20/0001);
///     c[0] -> Strip(14) -> WebGen(11.11.0.0/16, 10.0.0.1, 500)
///          -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> tap;
///     c[1] -> ARPResponder(11.11.0.0/16 1:1:1:1:1:1) -> tap;
///
/// Each connection requests a page /spec/D/D-C-F (D 0 to 9, C 0 to 2, F 0 to 8) from port 80 with HTTP/1.0 and closes
/// its side together with the request. Data received in order is acknowledged and ignored. After a second without
/// progress, unacknowledged segments are sent again. A connection is given up after about six seconds without progress.
/// There is no TIME-WAIT state.
///
/// TCP segments for addresses in PREFIX that belong to no connection are answered with a reset. All other packets are
/// dropped and counted. TCP checksums are not checked; CheckTCPHeader does that.
///
/// PREFIX: clients' addresses.
/// DST: the server's address.
/// RATE: new connections per second, 1 to 1000000. At most 8 * RATE can be open; beyond that, new ones are skipped.
/// REPORT: time between reports of the counts on standard error. Default 5 seconds; 0: no reports.
///
/// Handlers: `initiated`, `completed`, `timeouts`, `resets` (r) connections opened, completed, given up, and reset by
/// the server; `skipped` (r) connections skipped; `reset_counts` (w).
class WebGen final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"x/y"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  void run_timer(Timer& timer) override;

  /// Segments that it sends enter the router here, those that it receives leave it.
  bool moves(Direction) const override { return true; }
  PortTotals totals(Direction direction, int thread) const override {
    return (direction == Direction::kIn ? made_ : taken_).of_thread(thread);
  }

 private:
  enum Reason : int;
  enum Count { kInitiated, kCompleted, kTimeouts, kResets, kSkipped, kCounts };
  struct Incoming;
  struct Outgoing;
  /// One connection. Hold the lock of its stripe to access it.
  struct Connection {
    enum State : uint8_t { kClosed, kConnecting, kOpen };
    IpAddress src;
    uint32_t first = 0;     // sequence number of the SYN
    uint32_t acked = 0;     // all sequence numbers before this one were acknowledged
    uint32_t received = 0;  // all sequence numbers before this one were received
    uint32_t next = 0;      // in its bucket
    uint16_t port = 0, page = 0;
    State state = kClosed;
    bool finished = false;  // the server has sent all
    uint8_t silences = 0;   // in a row
    int64_t active_at = 0;
    int64_t due = 0;  // when to check for silence; used by the timer only
  };
  struct alignas(64) Stripe {
    std::mutex mutex;
  };
  static constexpr uint32_t kStripes = 64;
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// Processes a segment for a connection and returns the answer. The stripe must be locked.
  std::optional<Outgoing> take(Connection& c, const Incoming& in, int64_t now);
  /// Reads a segment into `in`; returns the reason if the packet must be dropped instead.
  std::optional<Reason> read(const Packet& p, Incoming& in) const;
  std::optional<Outgoing> answer(const Incoming& in, int64_t now);
  Outgoing segment(const Connection& c, uint8_t flags) const;
  static Outgoing reset_for(const Incoming& in);
  /// The SYN or the request, if it has not been acknowledged yet.
  std::optional<Outgoing> repeat(const Connection& c) const;
  void close(Connection& c, Count why);
  /// Makes the packet for a segment, in the buffer of `reuse` if that is not null. Null if no buffer is left.
  Packet* make(const Outgoing& out, Packet* reuse);
  void send(const Outgoing& out, Batch& batch);

  uint32_t bucket(IpAddress src, uint16_t port) const;
  Stripe& stripe(uint32_t bucket) { return stripes_[bucket % kStripes]; }
  /// The index of a connection, or kNone. The stripe must be locked.
  uint32_t find(uint32_t bucket, IpAddress src, uint16_t port) const;
  void begin(int64_t now, Batch& batch);
  void look_after(uint32_t index, int64_t now, Batch& batch);
  void unlink(uint32_t index);
  void wait(uint32_t index, int64_t due);
  void report(Timer& timer);

  IpPrefix prefix_;
  IpAddress server_;
  uint32_t rate_ = 0;
  Interval report_ = Interval::from_sec(5);

  std::vector<Connection> connections_;
  std::vector<uint32_t> buckets_;  // the first connection of each; a power of two
  std::unique_ptr<Stripe[]> stripes_;
  // Used by the timer only: free connections, and a ring of all others, ordered by `due`.
  std::vector<uint32_t> free_;
  std::vector<uint32_t> waiting_;
  size_t first_waiting_ = 0, waiting_count_ = 0;
  int64_t next_start_ = 0;

  RandomNumbers random_;
  ThreadCounters counts_{kCounts};
  PortCounter made_, taken_;
  Timer timer_{this};
  Timer report_timer_{this, [this](Timer& timer) { report(timer); }};
};

HEADRACE_ELEMENT(WebGen)

}  // namespace headrace
