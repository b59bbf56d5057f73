#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Pulls packets at intervals and pushes them on.
///
///     TimedUnqueue(INTERVAL [, BURST])
///
/// Input 0, pull; output 0, push. If there is nothing to pull it sleeps, and moves the next packet at once.
///
/// INTERVAL: a time.
/// BURST: most packets moved each time, at least 1. Default 1.
class TimedUnqueue final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"l/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  bool run_task(Task& task) override;

 private:
  Interval interval_;
  int32_t burst_ = 1;
  bool running_ = false;  // the timer follows from its last expiry
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
  Signal signal_;
};

HEADRACE_ELEMENT(TimedUnqueue)

}  // namespace headrace
