#include "elements/ip/LinearIPLookup.hh"

#include "elements/ip/IPRouteTable.hh"

namespace headrace {

Status LinearIPLookup::configure(Args& args, IPRouteTable& owner) {
  owner.list_in_order();
  return owner.configure(args);
}

HEADRACE_ELEMENT(LinearIPLookup)

}  // namespace headrace
