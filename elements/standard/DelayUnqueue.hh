#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Delays packets: pulls them, and pushes each when its delay has passed.
///
///     DelayUnqueue(DELAY)
///
/// Input 0, pull; output 0, push. A packet leaves no earlier than DELAY after its timestamp, with the time at which it
/// was due as its new timestamp. A packet without a timestamp, or with one below one second (as in captures that count
/// from 0), is delayed from the moment it was pulled. It holds one packet at a time, so packets do not overtake each
/// other.
///
/// DELAY: a time.
///
/// Handlers: `delay` (rw).
class DelayUnqueue final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"l/h"};

  ~DelayUnqueue() override;
  Status configure(Args& args) override { return args.read_mp("DELAY", delay_).complete(); }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;

  uint64_t held_packets() const override { return held_ ? 1 : 0; }

 private:
  Interval delay_;
  Packet* held_ = nullptr;
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
  Signal signal_;
};

HEADRACE_ELEMENT(DelayUnqueue)

}  // namespace headrace
