#include "elements/standard/Block.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status Block::configure(Args& args) { return args.read_mp("THRESH", threshold).complete(); }

void Block::add_handlers(Handlers& handlers) { handlers.value("thresh", threshold); }

}  // namespace headrace
