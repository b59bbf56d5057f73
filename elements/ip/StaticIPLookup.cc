#include "elements/ip/StaticIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

HEADRACE_ELEMENT(StaticIPLookup)

}  // namespace headrace
