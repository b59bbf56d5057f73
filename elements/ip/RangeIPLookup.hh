#pragma once
#include "elements/ip/ip_lookup.hh"

namespace headrace {

/// Looks up IP routes; Click's class with a table of ranges.
///
///     RangeIPLookup(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ... [, keywords FILE, SPREAD])
///
/// It shares one table with the other lookup elements: the classes differ in name only, so configurations written for
/// Click run unchanged and fast.
///
/// Input, outputs, keywords and handlers: as for DirectIPLookup.
struct RangeIPLookup : IPLookupShader<RangeIPLookup> {};

}  // namespace headrace
