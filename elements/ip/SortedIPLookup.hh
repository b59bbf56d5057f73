#pragma once
#include "elements/ip/ip_lookup.hh"

namespace headrace {

/// Looks up IP routes; Click's class with a sorted table.
///
///     SortedIPLookup(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ... [, keywords FILE, SPREAD])
///
/// Input: packets with a destination annotation (CheckIPHeader, GetIPAddress). The longest matching route gives the
/// output; its gateway, if it has one, becomes the destination annotation. A packet without a route is dropped and
/// counted.
///
/// It shares one table with the other lookup elements (see DirectIPLookup): the classes differ in name only, so
/// configurations written for Click run unchanged and fast.
///
/// FILE (repeatable): a text file of routes, one `ADDR/MASK [GW] [OUT]` a line, plain, .gz, .xz, .bz2 or .zst.
/// SPREAD: lines without OUT get an output below this number, by a hash of the prefix. Default: all outputs.
///
/// Handlers: `lookup ADDR` (r) output and gateway of an address; `table`, `count` (r); `add`, `set`, `remove` (w) a
/// route; `ctrl` (w) such commands, one per line, applied all or none; `flush` (w) removes every route.
struct SortedIPLookup : IPLookupShader<SortedIPLookup> {};

}  // namespace headrace
