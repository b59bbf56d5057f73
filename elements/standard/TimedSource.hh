#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>

#include "headrace/end_call.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Creates a packet at intervals.
///
///     TimedSource([INTERVAL, DATA, keyword LIMIT, ACTIVE, HEADROOM, STOP, END_CALL])
///
/// Output 0, push.
///
/// INTERVAL: time between two packets. Default 500 ms.
/// DATA: the bytes of each packet. Default: a text of 69 bytes.
/// LIMIT: packets to send; negative: no limit. Default -1.
/// ACTIVE false: sends nothing. Default true.
/// HEADROOM: free bytes before the data. Default 128.
/// STOP true: stops the router an interval after LIMIT packets were sent. Default false.
/// END_CALL: a write handler called then. Not together with STOP.
///
/// Handlers: `count` (r) packets made; `reset` (w) counts from 0 again; `data`, `interval`, `limit`, `active`,
/// `headroom` (rw).
class TimedSource final : public Element, public OneWayPort {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  TimedSource() : OneWayPort(Direction::kIn) {}
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void run_timer(Timer& timer) override;

 private:
  Interval interval_ = Interval::from_ms(500);
  std::string data_;
  int limit_ = -1;
  bool active_ = true;
  uint32_t headroom_ = Packet::kDefaultHeadroom;
  EndCall end_;
  SingleWriter<int> count_;
  Timer timer_{this};
};

HEADRACE_ELEMENT(TimedSource)

}  // namespace headrace
