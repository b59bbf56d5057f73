#include "elements/ip/LinearIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

HEADRACE_ELEMENT(LinearIPLookup)

}  // namespace headrace
