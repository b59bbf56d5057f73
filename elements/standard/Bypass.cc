#include "elements/standard/Bypass.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status Bypass::configure(Args& args) {
  bool stays_inline = false;
  return args.read_p("ACTIVE", active_).read("INLINE", stays_inline).complete();
}

void Bypass::push(int port, Batch& batch) { output(active_ && port == 0 && noutputs() > 1 ? 1 : 0).push(batch); }

int Bypass::pull(int port, Batch& batch, int max) {
  return input(active_ && port == 0 && ninputs() > 1 ? 1 : 0).pull(batch, max);
}

void Bypass::add_handlers(Handlers& handlers) { handlers.value("active", active_); }

}  // namespace headrace
