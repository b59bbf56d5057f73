#include "elements/standard/Strip.hh"

namespace headrace {

Status Strip::configure(Args& args) { return args.read_mp("LENGTH", bytes).complete(); }

}  // namespace headrace
