#include "elements/ip/SortedIPLookup.hh"

#include "elements/ip/ip4_routes.hh"

namespace headrace {

HEADRACE_ELEMENT(SortedIPLookup)

}  // namespace headrace
