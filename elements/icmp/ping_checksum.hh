#pragma once
/// \file
/// Changing the identifier of an ICMP echo message.

#include <algorithm>
#include <cstdint>

#include "headrace/headers.hh"

namespace headrace {

/// Sets the identifier of an echo request or reply of `length` (8 or more) bytes and repairs its checksum; what was
/// wrong stays wrong. Returns the checksum before and after in `checksums`, if that is given.
inline void set_ping_identifier(uint8_t* message, int length, uint16_t identifier, uint16_t* checksums = nullptr) {
  auto& icmp = *reinterpret_cast<IcmpHeader*>(message);
  const auto before = static_cast<uint16_t>(icmp.rest >> 16);
  const uint16_t checksum = icmp.checksum;
  if (before != identifier) {
    icmp.rest = uint32_t{identifier} << 16 | (icmp.rest & 0xffff);
    uint32_t sum = static_cast<uint16_t>(~checksum) + static_cast<uint16_t>(~before) + uint32_t{identifier};
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    icmp.checksum = static_cast<uint16_t>(~sum);
    // The complement of a sum of zeros is all ones; of any other sum that is zero, too (RFC 1624, section 3).
    if (icmp.checksum == 0 && std::all_of(message, message + length, [](uint8_t byte) { return byte == 0; }))
      icmp.checksum = 0xffff;
  }
  if (checksums) {
    checksums[0] = checksum;
    checksums[1] = icmp.checksum;
  }
}

}  // namespace headrace
