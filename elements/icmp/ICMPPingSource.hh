#pragma once
#include <array>
#include <atomic>
#include <headrace/element.hh>
#include <memory>

#include "elements/standard/single_writer.hh"
#include "headrace/headers.hh"

namespace headrace {

/// Pings a host: sends ICMP echo requests and looks at the replies (RFC 792).
///
///     ICMPPingSource(SRC, DST [, keyword INTERVAL, IDENTIFIER, LIMIT, STOP, DATA, ACTIVE, MIRROR, VERBOSE])
///
/// Output 0: IP packets with echo requests, numbered from 1 on, every INTERVAL if it is push and whenever one is wanted
/// if it is pull. Destination address annotation and timestamp are set. Input 0 (optional), push: IP packets with a
/// network header; replies are counted and timed, the rest is dropped and counted.
///
/// INTERVAL: time between two requests. Default 1 second.
/// IDENTIFIER: what tells the replies from those of others. Default 0.
/// LIMIT: requests to send; negative: no limit. Default -1.
/// STOP true: stops the router an INTERVAL after the last request. Default false.
/// DATA: what the requests carry. Default: nothing.
/// ACTIVE false: sends nothing. Default true.
/// MIRROR true: each reply is at once made into the next request, also beyond LIMIT; only if output 0 is push. Default
/// false.
/// VERBOSE false: does not report replies, and at the end the summary, on standard error. Default true.
///
/// Handlers: `active`, `src`, `dst` (rw); `count` (r) requests sent; `limit`, `interval` (w); `reset_counts` (w);
/// with an input `summary` (r) what ping(8) says in the end; `rtt_min`, `rtt_avg`, `rtt_max` (r) in seconds.
class ICMPPingSource final : public Element {
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
  std::unique_ptr<Replies> replies_;
  Timer timer_{this};
  Notifier nonempty_;  // for who pulls
};

HEADRACE_ELEMENT(ICMPPingSource)
HEADRACE_ELEMENT_ALIAS(ICMPSendPings, ICMPPingSource)

}  // namespace headrace
