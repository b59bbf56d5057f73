#include "elements/ip6/MarkIP6Header.hh"

namespace headrace {

Status MarkIP6Header::configure(Args& args) { return args.read_p("OFFSET", offset, Between{0, 65535}).complete(); }

}  // namespace headrace
