#pragma once
/// \file
/// The pseudo header of TCP and UDP checksums, for shaders.

#include "headrace/shader_base.hh"

namespace headrace {

/// The final destination of a packet in memory order: the last address of a source route that is not at its end, else
/// the header's destination (RFC 791, 3.1).
HEADRACE_SHADER uint32_t final_destination_raw(const auto& p, int header_length) {
  for (int at = 20; at + 2 < header_length;) {
    const uint8_t type = p.load8(Anchor::kNetwork, at);
    if (type == 0) break;  // end of options
    if (type == 1) {       // no operation
      ++at;
      continue;
    }
    const int length = p.load8(Anchor::kNetwork, at + 1);
    if (length < 2 || at + length > header_length) break;
    if ((type == 131 || type == 137) && length >= 7) {
      if (p.load8(Anchor::kNetwork, at + 2) > length) break;
      return p.load32_raw(Anchor::kNetwork, at + length - 4);
    }
    at += length;
  }
  return p.load32_raw(Anchor::kNetwork, 16);
}

/// The sum of the pseudo header for a segment of `length` bytes, in memory order. Declare Read{ip4::whole_header}.
HEADRACE_SHADER uint64_t pseudo_header_sum(const auto& p, int header_length, int length) {
  const uint32_t destination =
      header_length == 20 ? p.load32_raw(Anchor::kNetwork, 16) : final_destination_raw(p, header_length);
  return uint64_t{p.load32_raw(Anchor::kNetwork, 12)} + destination + checksum_word(p.load8(Anchor::kNetwork, 9)) +
         checksum_word(static_cast<uint32_t>(length));
}

/// Where the transport header of an IP packet is and how much there can be of it.
struct Segment {
  int header_length;  ///< of the IP header; 0 if that is not all there
  int length;         ///< bytes behind the IP header that the packet has
};
HEADRACE_SHADER Segment find_segment(const auto& p) {
  const int room = p.length_from(Anchor::kNetwork);
  if (room < 20) return {0, 0};
  const int header_length = (p.load8(Anchor::kNetwork, 0) & 0xf) << 2;
  if (header_length < 20 || header_length > room) return {0, 0};
  return {header_length, room - header_length};
}

}  // namespace headrace
