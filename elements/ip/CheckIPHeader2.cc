#include "elements/ip/CheckIPHeader2.hh"

#include "elements/ip/check_ip_header_owner.hh"

namespace headrace {

HEADRACE_ELEMENT(CheckIPHeader2)

}  // namespace headrace
