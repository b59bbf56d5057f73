#include "elements/ethernet/StripEtherVLANHeader.hh"

#include <climits>

namespace headrace {

Status StripEtherVLANHeader::configure(Args& args) {
  return args.read_p("NATIVE_VLAN", native, Between{INT_MIN, 0xfff}).complete();
}

}  // namespace headrace
