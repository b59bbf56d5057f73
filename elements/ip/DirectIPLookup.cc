#include "elements/ip/DirectIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

HEADRACE_ELEMENT(DirectIPLookup)

}  // namespace headrace
