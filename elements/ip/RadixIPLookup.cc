#include "elements/ip/RadixIPLookup.hh"

#include "elements/ip/ip4_routes.hh"

namespace headrace {

HEADRACE_ELEMENT(RadixIPLookup)

}  // namespace headrace
