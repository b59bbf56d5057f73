#include "elements/devices/TSCClock.hh"

#include "headrace/router.hh"

namespace headrace {

Status TSCClock::configure(Args& args) {
  int32_t verbose = 0;
  bool ignored = false;
  Element* clock = nullptr;
  std::string ready;
  args.read("VERBOSE", verbose).read("BASE", clock).read("SOURCE", clock).read("READY_CALL", ready, AnyArg());
  for (const char* keyword : {"INSTALL", "NOWAIT", "CONVERT_STEADY"}) args.read(keyword, ignored);
  if (!args.complete()) return Status::failed();
  ready_ = HandlerCall(ready);
  return {};
}

Status TSCClock::initialize(Errors& errors) {
  if (ready_.empty()) return {};
  timer_.initialize();
  timer_.schedule_after({});
  return ready_.bind(router(), this, true, errors);
}

void TSCClock::run_timer(Timer&) {
  Errors errors(Errors::Output::kStderr);
  (void)ready_.write(errors);
}

void TSCClock::add_handlers(Handlers& handlers) {
  handlers.read("now", [] { return clock::now().unparse(); });
  handlers.read("now_steady", [] { return clock::steady().unparse(); });
}

}  // namespace headrace
