#include "elements/ip/SortedIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

HEADRACE_ELEMENT(SortedIPLookup)

}  // namespace headrace
