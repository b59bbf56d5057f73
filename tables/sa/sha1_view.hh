#pragma once
/// \file
/// SHA-1 (FIPS 180-4). Includes no standard header.

#include "tables/sa/crypto_words_view.hh"

namespace headrace {

struct SHA1 {
  static constexpr uint32_t kWords = 5;  ///< of its state and its result

  HEADRACE_SHADER static void start(uint32_t* state) {
    constexpr uint32_t kStart[kWords] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    for (uint32_t i = 0; i < kWords; ++i) state[i] = kStart[i];
  }

  /// Adds a block of 16 big endian words, which it overwrites.
  HEADRACE_SHADER static void add(uint32_t* state, uint32_t (&w)[16]) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (uint32_t i = 0; i < 80; ++i) {
      if (i >= 16) w[i % 16] = rotate_left(w[(i + 13) % 16] ^ w[(i + 8) % 16] ^ w[(i + 2) % 16] ^ w[i % 16], 1);
      const uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
      const uint32_t constant = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
      // `a` comes last of all, so it is added last: one instruction of a device from round to round.
      const uint32_t next = rotate_left(a, 5) + in_this_order(in_this_order(e + w[i % 16] + constant) + f);
      e = d;
      d = c;
      c = rotate_left(b, 30);
      b = a;
      a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
  }
};

}  // namespace headrace
