#include "elements/standard/MarkMACHeader.hh"

namespace headrace {

Status MarkMACHeader::configure(Args& args) {
  return args.read_p("OFFSET", offset, Between{0, 65535}).read_p("LENGTH", header_length, Between{0, 65535}).complete();
}

}  // namespace headrace
