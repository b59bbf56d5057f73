#pragma once
#include <array>
#include <atomic>
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <memory>

#include "headrace/headers.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Pings a host: sends ICMP echo requests and measures the replies (RFC 792).
///
///     ICMPPingSource(SRC, DST [, keyword INTERVAL, IDENTIFIER, LIMIT, STOP, DATA, ACTIVE, MIRROR, VERBOSE])
///
/// Output 0: IP packets with echo requests, numbered from 1 on, every INTERVAL if push, on demand if pull. Destination
/// address annotation and timestamp are set. Input 0 (optional), push: IP packets with a network header; replies are
/// counted and timed, the rest is dropped and counted.
///
/// INTERVAL: time between two requests. Default 1 second.
/// IDENTIFIER: identifies the replies to this element. Default 0.
/// LIMIT: requests to send; negative: no limit. Default -1.
/// STOP true: stops the router an INTERVAL after the last request. Default false.
/// DATA: payload of the requests. Default: none.
/// ACTIVE false: sends nothing. Default true.
/// MIRROR true: each reply immediately triggers the next request, even beyond LIMIT; only if output 0 is push. Default
/// false.
/// VERBOSE false: does not report replies, nor the final summary, on standard error. Default true.
///
/// Handlers: `active`, `src`, `dst` (rw); `count` (r) requests sent; `limit`, `interval` (w); `reset_counts` (w);
/// with an input `summary` (r) a summary like that of ping(8); `rtt_min`, `rtt_avg`, `rtt_max` (r) in seconds.
class ICMPPingSource final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"0-1/1"};
  static constexpr Processing kProcessing{"h/a"};
  static constexpr Flow kFlow{"x/y"};

  ~ICMPPingSource() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void take_state(Element& old, Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void run_timer(Timer& timer) override;
  int pull(int port, Batch& batch, int max) override;
  void push(int port, Batch& batch) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

  /// Requests that it makes enter the router, replies that it takes leave it.
  bool moves(Direction direction) const override { return direction == Direction::kIn || ninputs() > 0; }
  PortTotals totals(Direction direction, int thread) const override {
    return (direction == Direction::kIn ? made_ : taken_).of_thread(thread);
  }

 private:
  enum Reason : int;
  /// What is known of the replies. Those of one flow come to one worker, which may be another than the one that sends.
  struct Replies {
    static constexpr int64_t kNever = 0;
    std::array<std::atomic<int64_t>, 65536> sent{};  // by sequence number; negative once the reply is there
    SingleWriter<uint64_t> received, duplicates;
    SingleWriter<int64_t> fastest, slowest, sum;  // nanoseconds
    SingleWriter<double> square_sum;
  };

  bool more() const { return limit_ < 0 || count_ < limit_; }
  /// The next request; with `reply`, made from it. Null when no buffer is left.
  Packet* make_request(Packet* reply = nullptr);
  void receive(Packet* p, Batch& out);
  void note_reply(const Packet& p, const Ip4Header& ip, uint16_t sequence);
  void reset();
  void start();
  std::string summary() const;

  IpAddress src_, dst_;
  Interval interval_ = Interval::from_sec(1);
  uint16_t identifier_ = 0;
  int limit_ = -1;
  bool stop_ = false;
  std::string data_;
  bool active_ = true;
  bool mirror_ = false;
  bool verbose_ = true;
  std::atomic<int> count_{0};
  PortCounter made_, taken_;
  std::unique_ptr<Replies> replies_;
  Timer timer_{this};
  Notifier nonempty_;  // for pullers
};

HEADRACE_ELEMENT(ICMPPingSource)
HEADRACE_ELEMENT_ALIAS(ICMPSendPings, ICMPPingSource)

}  // namespace headrace
