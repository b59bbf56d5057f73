#pragma once
#include "elements/ip/ip_lookup.hh"

namespace headrace {

/// Looks up IP routes in a DIR-24-8 table.
///
///     DirectIPLookup(ADDR1/MASK1 [GW1] OUT1, ADDR2/MASK2 [GW2] OUT2, ... [, keywords FILE, SPREAD])
///
/// Input: packets with a destination annotation (CheckIPHeader, GetIPAddress). The longest matching route gives the
/// output; its gateway, if it has one, becomes the destination annotation. A packet without a route is dropped and
/// counted.
///
/// The table is DIR-24-8 (Gupta, Lin, McKeown, INFOCOM 1998): one memory access for nearly all addresses, two at most.
/// Entries have 16 bits, or 32 bits if there are more than 32,767 next hops or blocks with routes longer than /24.
/// Routes can change while packets are forwarded; a packet sees the old or the new route.
///
/// FILE (repeatable): a text file of routes, one `ADDR/MASK [GW] [OUT]` a line, plain, .gz, .xz, .bz2 or .zst. Its
/// addresses are numbers: names of AddressInfo are for arguments and handlers.
/// SPREAD: lines without OUT get an output below this number, by a hash of the prefix. Default: all outputs.
///
/// Handlers: `lookup ADDR` (r) output and gateway of an address; `table`, `count` (r); `add`, `set`, `remove` (w) a
/// route; `ctrl` (w) such commands, one per line, applied all or none; `flush` (w) removes every route.
struct DirectIPLookup : IPLookupShader<DirectIPLookup> {};

}  // namespace headrace
