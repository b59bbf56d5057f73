#include "elements/standard/Truncate.hh"

namespace headrace {

Status Truncate::configure(Args& args) {
  return args.read_mp("LENGTH", bytes).read("EXTRA_LENGTH", count_extra).complete();
}

void Truncate::add_handlers(Handlers& handlers) { handlers.value("nbytes", bytes); }

}  // namespace headrace
