#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>

#include "elements/standard/token_bucket.hh"
#include "headrace/end_call.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Creates packets at a rate.
///
///     RatedSource([DATA, RATE, LIMIT, ACTIVE, keyword LENGTH, BANDWIDTH, STOP, END_CALL])
///
/// Output 0, push or pull. A token bucket that holds the packets of 10 ms (at least two) evens out delays.
///
/// DATA: the bytes of each packet. Default: a text of 69 bytes.
/// RATE: packets per second. Default 10.
/// LIMIT: packets to send; negative: no limit. Default -1.
/// ACTIVE false: sends nothing. Default true.
/// LENGTH: length of each packet; DATA is cut or repeated. Default: as long as DATA.
/// BANDWIDTH: sets RATE so that packets of this length make up this bandwidth.
/// STOP true: stops the router once LIMIT packets were sent. Default false.
/// END_CALL: a write handler called once LIMIT packets were sent. Not together with STOP.
///
/// Handlers: `count` (r) packets made; `reset` (w) counts from 0 again; `data`, `length`, `rate`, `limit`, `active`
/// (rw).
class RatedSource final : public Element, public OneWayPort {
 public:
  static constexpr Ports kPorts{"0/1"};

  RatedSource() : OneWayPort(Direction::kIn) {}
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  int pull(int port, Batch& batch, int max) override;
  bool run_task(Task& task) override;

 private:
  static uint64_t burst(uint64_t rate) { return rate < 200 ? 2 : rate / 100; }
  bool at_limit() const { return limit_ >= 0 && count_ >= static_cast<uint64_t>(limit_); }
  /// Appends up to `n` packets for which there are tokens.
  int make(Batch& batch, int n);
  void changed();

  std::string data_;
  int64_t limit_ = -1;
  int length_ = -1;
  bool active_ = true;
  EndCall end_;

  std::string bytes_;
  TokenBucket bucket_;
  SingleWriter<uint64_t> count_;
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
};

HEADRACE_ELEMENT(RatedSource)

}  // namespace headrace
