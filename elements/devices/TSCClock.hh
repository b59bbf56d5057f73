#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Accepts FastClick's clock that reads the processor's counter.
///
///     TSCClock([keyword VERBOSE, INSTALL, NOWAIT, BASE, SOURCE, CONVERT_STEADY, READY_CALL])
///
/// No ports, or one input and one output, push; packets pass unchanged. In FastClick it replaces the system's clock
/// with the counter. On Linux the system's clock already uses the counter, and timestamps are always times; so it is
/// not needed, and configurations with it run.
///
/// READY_CALL: a write handler that is called when the router starts.
/// VERBOSE, INSTALL, NOWAIT, BASE, SOURCE, CONVERT_STEADY: accepted but ignored.
///
/// Handlers: `now`, `now_steady` (r) the time.
class TSCClock final : public Element {
 public:
  static constexpr Ports kPorts{"0-1/="};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int, Batch& batch) override { output(0).push(batch); }
  void run_timer(Timer& timer) override;

 private:
  HandlerCall ready_;
  Timer timer_{this};
};

HEADRACE_ELEMENT(TSCClock)

}  // namespace headrace
