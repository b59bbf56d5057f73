#include "elements/ip/MarkIPHeader.hh"

namespace headrace {

Status MarkIPHeader::configure(Args& args) { return args.read_p("OFFSET", offset).complete(); }

}  // namespace headrace
