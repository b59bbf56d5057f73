#pragma once
/// \file
/// What a router does to the options of IP packets that it forwards.

#include <vector>

#include "headrace/addresses.hh"
#include "headrace/headers.hh"

namespace headrace {

/// The addresses that a router records in options.
struct RouterAddresses {
  IpAddress address;           ///< of the interface by which packets leave
  std::vector<IpAddress> all;  ///< with that one
};

/// Records the router in the Record Route and Timestamp options of a header (RFC 791, 3.1) and repairs its checksum.
/// Returns 0, or the offset of the byte that is wrong: then the header is unchanged.
int record_in_options(Ip4Header& ip, const RouterAddresses& router);

}  // namespace headrace
