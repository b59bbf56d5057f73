#include "elements/ip/RadixIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

HEADRACE_ELEMENT(RadixIPLookup)

}  // namespace headrace
