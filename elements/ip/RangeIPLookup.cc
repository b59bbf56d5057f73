#include "elements/ip/RangeIPLookup.hh"

#include "elements/ip/ip4_routes.hh"

namespace headrace {

HEADRACE_ELEMENT(RangeIPLookup)

}  // namespace headrace
