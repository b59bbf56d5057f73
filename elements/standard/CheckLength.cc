#include "elements/standard/CheckLength.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status CheckLength::configure(Args& args) { return args.read_mp("LENGTH", most).complete(); }

void CheckLength::add_handlers(Handlers& handlers) { handlers.value("length", most); }

}  // namespace headrace
