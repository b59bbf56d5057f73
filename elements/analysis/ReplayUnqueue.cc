#include "elements/analysis/ReplayUnqueue.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status ReplayUnqueue::configure(Args& args) {
  uint32_t timing = 0;
  std::string function;
  args.read("TIMING", timing).read("TIMING_FNT", function);
  if (!Replay::configure(args)) return Status::failed();
  if (!function.empty() && function != "@0") return args.errors().error("TIMING_FNT: only '@0' is supported");
  timing_ = timing;
  return {};
}

void ReplayUnqueue::add_handlers(Handlers& handlers) {
  Replay::add_handlers(handlers);
  handlers.value("timing", timing_);
}

}  // namespace headrace
