#pragma once
/// \file
/// What shaders do with IPv6 headers and addresses.

#include <headrace/shader.hh>

#include "tables/lpm6/lpm6_view.hh"

namespace headrace {

namespace ip6 {

inline constexpr int kHeaderLength = 40;
/// Extension headers that are looked at in one packet; more than these are left unread.
inline constexpr int kMostExtensions = 8;
inline constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51, kDestinationOptions = 60;

HEADRACE_SHADER bool is_extension(int next_header) {
  return next_header == kHopByHop || next_header == kRouting || next_header == kFragment ||
         next_header == kAuthentication || next_header == kDestinationOptions;
}

/// Bytes from an IPv6 header `at` bytes into the packet to what follows its extension headers (RFC 8200, section 4). It
/// ends at byte `end` of the packet; an extension header that does not fit is taken for what follows. In a fragment
/// other than the first that is what follows the fragment header.
HEADRACE_SHADER int header_length(const auto& p, int at, int end, int next_header) {
  int length = kHeaderLength;
  for (int i = 0; i < kMostExtensions && is_extension(next_header); ++i) {
    const int here = at + length;
    if (here + 8 > end) break;
    const int units = p.load8(Anchor::kData, here + 1);
    int size = 8 * units + 8;
    if (next_header == kFragment) size = 8;
    if (next_header == kAuthentication) size = 4 * units + 8;
    if (here + size > end) break;
    length += size;
    if (next_header == kFragment && (p.load16(Anchor::kData, here + 2) & 0xfff8) != 0) break;
    next_header = p.load8(Anchor::kData, here);
  }
  return length;
}

/// An address as two words in memory order.
struct Words {
  uint64_t first, second;
};
HEADRACE_SHADER Words load_words(const auto& p, int at) {
  return {p.load64_raw(Anchor::kData, at), p.load64_raw(Anchor::kData, at + 8)};
}
HEADRACE_SHADER Ip6Bytes bytes_of(Words words) {
  Ip6Bytes bytes;
#if defined(__CUDA_ARCH__)
  for (int i = 0; i < 8; ++i) {
    bytes.b[i] = static_cast<uint8_t>(words.first >> (8 * i));
    bytes.b[8 + i] = static_cast<uint8_t>(words.second >> (8 * i));
  }
#else
  __builtin_memcpy(bytes.b, &words, sizeof bytes);
#endif
  return bytes;
}
HEADRACE_SHADER Lpm6Key key_of(const Ip6Bytes& bytes) {
  Lpm6Key key;
  for (int i = 0; i < 8; ++i) {
    key.high = key.high << 8 | bytes.b[i];
    key.low = key.low << 8 | bytes.b[8 + i];
  }
  return key;
}

}  // namespace ip6

}  // namespace headrace
