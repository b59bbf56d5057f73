#include "elements/tcpudp/SetTCPChecksum.hh"

namespace headrace {

Status SetTCPChecksum::configure(Args& args) { return args.read_p("FIXOFF", fix_offset).complete(); }

}  // namespace headrace
