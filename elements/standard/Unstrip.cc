#include "elements/standard/Unstrip.hh"

namespace headrace {

Status Unstrip::configure(Args& args) { return args.read_mp("LENGTH", bytes).complete(); }

}  // namespace headrace
