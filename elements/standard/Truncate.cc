#include "elements/standard/Truncate.hh"

#include "elements/standard/value_handlers.hh"

namespace headrace {

static_assert(Truncate::extra_length.kOffset == anno_offset::kExtraLength);

Status Truncate::configure(Args& args) {
  return args.read_mp("LENGTH", bytes).read("EXTRA_LENGTH", count_extra).complete();
}

void Truncate::add_handlers(Handlers& handlers) { read_write_value(handlers, "nbytes", bytes); }

}  // namespace headrace
