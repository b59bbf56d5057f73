#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>

namespace headrace {

/// Pulls and drops a packet at intervals.
///
///     TimedSink([INTERVAL])
///
/// Input 0, pull.
///
/// INTERVAL: time between two pulls. Default 500 ms.
///
/// Handlers: `interval` (rw).
class TimedSink final : public Element, public PacketSink {
 public:
  static constexpr Ports kPorts{"1/0"};
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override { return args.read_p("INTERVAL", interval_).complete(); }
  Status initialize(Errors&) override {
    timer_.initialize();
    timer_.schedule_after(interval_.timestamp());
    return {};
  }
  void add_handlers(Handlers& handlers) override { handlers.value("interval", interval_, {}, Handler::kCalm); }
  void run_timer(Timer& timer) override {
    if (Packet* p = input(0).pull()) {
      discarded_.add(0, 1);
      p->kill();
    }
    timer.reschedule_after(interval_.timestamp());
  }

 private:
  Interval interval_ = Interval::from_ms(500);
  Timer timer_{this};
};

HEADRACE_ELEMENT(TimedSink)

}  // namespace headrace
