#include "elements/ip/RangeIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

HEADRACE_ELEMENT(RangeIPLookup)

}  // namespace headrace
