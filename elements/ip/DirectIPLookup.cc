#include "elements/ip/DirectIPLookup.hh"

#include "elements/ip/ip4_routes.hh"

namespace headrace {

HEADRACE_ELEMENT(DirectIPLookup)

}  // namespace headrace
