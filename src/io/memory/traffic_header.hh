#pragma once
/// \file
/// The headers of one frame, whatever they are, and how they are drawn inside a match.

#include <cstddef>
#include <cstdint>

#include "src/io/memory/traffic_random.hh"
#include "tables/key/key_match.hh"

namespace headrace {

/// Headers of a frame from Ethernet on, with all lengths, and with checksums for a payload of zeros.
template <size_t kBytes>
struct alignas(64) TrafficHeader {
  uint8_t bytes[kBytes];  ///< zeros behind the headers
  uint32_t hash;          ///< Toeplitz
  uint16_t length;        ///< of the frame
  uint8_t size;           ///< of the headers; frames carry their payload from there on
  /// Where the checksum is that covers the payload, plus kNeverZero for one that must not be 0 (UDP). 0: there is none.
  uint8_t checksum;
};
inline constexpr uint8_t kNeverZero = 0x80;
/// A cache line: what is enough for IPv4 without a tag.
using NarrowHeader = TrafficHeader<56>;
/// Enough for neighbor discovery behind a tag.
using WideHeader = TrafficHeader<120>;
static_assert(sizeof(NarrowHeader) == 64 && sizeof(WideHeader) == 128);

struct TrafficHeaderOptions {
  uint8_t ttl = 64;
  uint8_t protocol = 0;  ///< where the match leaves it open; 0: TCP or UDP at random
  uint32_t shortest = 0;
  uint32_t payload = 0;  ///< IP frames have room for so many bytes behind their headers
};

/// Draws headers of a frame that `match` matches. Whatever it leaves open is random: addresses, but unicast ones where that is
/// possible, ports within their bounds, and the tag of a VLAN. DSCP, ECN and flow label are 0 where they are open, MAC
/// addresses those of all synthetic frames. What is not in a frame (in_port, metadata, tun_id) is left to what the frame
/// passes. False if what was drawn is not inside; another try may be luckier.
bool draw_header(const KeyMatch& match, const TrafficHeaderOptions& options, uint32_t length, TrafficRandom& random,
                 WideHeader& header);
/// Whether NarrowHeader is enough for all frames inside `match`.
bool is_narrow(const KeyMatch& match);
/// The header in fewer bytes, which must be enough.
NarrowHeader narrowed(const WideHeader& header);

/// Gives the frame another length, at least that of its headers.
void set_length(NarrowHeader& header, uint32_t length);
void set_length(WideHeader& header, uint32_t length);

/// What is in a frame's bytes, and nothing else, is matched: context is ignored.
KeyMatch without_context(const KeyMatch& match);
/// The key of the frame.
PacketKey key_of(const WideHeader& header);

}  // namespace headrace
