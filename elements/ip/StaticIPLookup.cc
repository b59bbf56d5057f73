#include "elements/ip/StaticIPLookup.hh"

#include "elements/ip/ip4_routes.hh"

namespace headrace {

HEADRACE_ELEMENT(StaticIPLookup)
HEADRACE_ELEMENT_ALIAS(LookupIPRoute, StaticIPLookup)
HEADRACE_ELEMENT_ALIAS(LookupIPRouteMP, StaticIPLookup)

}  // namespace headrace
