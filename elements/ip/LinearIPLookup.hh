#pragma once
#include "elements/ip/ip_lookup.hh"

namespace headrace {

/// Looks up IP routes; Click's class with a linear table.
///
///     LinearIPLookup(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ... [, keywords FILE, SPREAD])
///
/// It shares one table with the other lookup elements, so configurations written for Click run unchanged and fast; but
/// routes are listed in the order in which they were added.
///
/// Input, outputs, keywords and handlers: as for DirectIPLookup.
struct LinearIPLookup : IPLookupShader<LinearIPLookup> {
  Status configure(Args& args, Owner& owner);
};

}  // namespace headrace
