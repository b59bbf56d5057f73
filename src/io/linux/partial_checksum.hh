#pragma once
/// \file
/// Transport checksums that a sender left to hardware which is not there: between interfaces without hardware, such as
/// the two ends of a veth pair, Linux passes TCP and UDP packets on with only the sum over the pseudo-header in the
/// checksum field.

#include <cstdint>

namespace headrace::io {

/// Finishes a checksum: sums the `length` bytes at `data` from `start` on, the field `offset` bytes behind `start`
/// included, and stores the complement there. False when the field lies outside.
bool finish_checksum(uint8_t* data, uint32_t length, uint32_t start, uint32_t offset);

/// Finds out whether an Ethernet frame's TCP or UDP checksum is such a partial one, where nothing else tells, and
/// finishes it: the field is the sum of the pseudo-header and is not right as it is. That costs a look at the headers,
/// and a sum over the packet only where the field matches (for other packets, once in 65536). Fragments and what is cut
/// off stay as they are. True if it changed anything.
bool finish_partial_checksum(uint8_t* frame, uint32_t length);

}  // namespace headrace::io
