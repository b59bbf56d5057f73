#include "elements/ip/LinearIPLookup.hh"

#include "elements/ip/ip4_routes.hh"

namespace headrace {

Status LinearIPLookup::configure(Args& args, Owner& owner) {
  owner.list_in_order();
  return owner.configure(args);
}

HEADRACE_ELEMENT(LinearIPLookup)

}  // namespace headrace
