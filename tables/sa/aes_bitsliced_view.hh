#pragma once
/// \file
/// AES (FIPS 197) in slices of bits, without a table: eight blocks together, bit i of all their bytes in four words, on which
/// every step is logic (E. Kasper, P. Schwabe, "Faster and Timing-Attack Resistant AES-GCM", CHES 2009). Not what the
/// router uses: `headrace esp` compares it with aes_view.hh. Includes no standard header.

#include "tables/sa/aes_view.hh"

namespace headrace {

/// Eight blocks, or a round's key for them. Bit b of byte r of `of[i][c]` is bit i of the byte in row r and column c of
/// block b.
struct AESSlices {
  static constexpr uint32_t kBlocks = 8;
  uint32_t of[8][4];
};

namespace detail {

/// Exchanges the bits `mask << shift` of `a` with the bits `mask` of `b`.
HEADRACE_SHADER void exchange_bits(uint32_t& a, uint32_t& b, uint32_t shift, uint32_t mask) {
  const uint32_t difference = (a >> shift ^ b) & mask;
  b ^= difference;
  a ^= difference << shift;
}

/// Each byte of the eight words is a row of a square of 8 times 8 bits, which is turned over.
HEADRACE_SHADER void transpose_bits(uint32_t (&w)[8]) {
  for (uint32_t i = 0; i < 8; i += 2) exchange_bits(w[i], w[i + 1], 1, 0x55555555);
  for (uint32_t i = 0; i < 8; ++i)
    if ((i & 2) == 0) exchange_bits(w[i], w[i + 2], 2, 0x33333333);
  for (uint32_t i = 0; i < 4; ++i) exchange_bits(w[i], w[i + 4], 4, 0x0f0f0f0f);
}

/// The bytes at `selector` of two words, as PRMT of PTX has it.
template <uint32_t kSelector>
HEADRACE_SHADER uint32_t choose_bytes(uint32_t first, uint32_t second) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(first, second, kSelector);
#else
  const uint64_t both = uint64_t{second} << 32 | first;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < 4; ++i)
    chosen |= static_cast<uint32_t>(both >> (kSelector >> i * 4 & 7) * 8 & 0xff) << i * 8;
  return chosen;
#endif
}

/// SubBytes on the eight bits of a column: 115 gates (J. Boyar, R. Peralta, "A Small Depth-16 Circuit for the AES S-Box", SEC
/// 2012, figures 4 to 7). `s[7]` is the highest bit, which the paper calls U0.
HEADRACE_SHADER void sub_bits(uint32_t (&s)[8]) {
  const uint32_t u0 = s[7], u1 = s[6], u2 = s[5], u3 = s[4], u4 = s[3], u5 = s[2], u6 = s[1], u7 = s[0];
  const uint32_t y14 = u3 ^ u5, y13 = u0 ^ u6, y9 = u0 ^ u3, y8 = u0 ^ u5, t0 = u1 ^ u2;
  const uint32_t y1 = t0 ^ u7, y4 = y1 ^ u3, y12 = y13 ^ y14, y2 = y1 ^ u0, y5 = y1 ^ u6, y3 = y5 ^ y8;
  const uint32_t t1 = u4 ^ y12, y15 = t1 ^ u5, y20 = t1 ^ u1, y6 = y15 ^ u7, y10 = y15 ^ t0, y11 = y20 ^ y9;
  const uint32_t y7 = u7 ^ y11, y17 = y10 ^ y11, y19 = y10 ^ y8, y16 = t0 ^ y11, y21 = y13 ^ y16, y18 = u0 ^ y16;
  const uint32_t t2 = y12 & y15, t3 = y3 & y6, t4 = t3 ^ t2, t5 = y4 & u7, t6 = t5 ^ t2, t7 = y13 & y16;
  const uint32_t t8 = y5 & y1, t9 = t8 ^ t7, t10 = y2 & y7, t11 = t10 ^ t7, t12 = y9 & y11, t13 = y14 & y17;
  const uint32_t t14 = t13 ^ t12, t15 = y8 & y10, t16 = t15 ^ t12, t17 = t4 ^ t14, t18 = t6 ^ t16, t19 = t9 ^ t14;
  const uint32_t t20 = t11 ^ t16, t21 = t17 ^ y20, t22 = t18 ^ y19, t23 = t19 ^ y21, t24 = t20 ^ y18;
  const uint32_t t25 = t21 ^ t22, t26 = t21 & t23, t27 = t24 ^ t26, t28 = t25 & t27, t29 = t28 ^ t22;
  const uint32_t t30 = t23 ^ t24, t31 = t22 ^ t26, t32 = t31 & t30, t33 = t32 ^ t24, t34 = t23 ^ t33;
  const uint32_t t35 = t27 ^ t33, t36 = t24 & t35, t37 = t36 ^ t34, t38 = t27 ^ t36, t39 = t29 & t38, t40 = t25 ^ t39;
  const uint32_t t41 = t40 ^ t37, t42 = t29 ^ t33, t43 = t29 ^ t40, t44 = t33 ^ t37, t45 = t42 ^ t41;
  const uint32_t z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & u7, z3 = t43 & y16, z4 = t40 & y1, z5 = t29 & y7;
  const uint32_t z6 = t42 & y11, z7 = t45 & y17, z8 = t41 & y10, z9 = t44 & y12, z10 = t37 & y3, z11 = t33 & y4;
  const uint32_t z12 = t43 & y13, z13 = t40 & y5, z14 = t29 & y2, z15 = t42 & y9, z16 = t45 & y14, z17 = t41 & y8;
  const uint32_t t46 = z15 ^ z16, t47 = z10 ^ z11, t48 = z5 ^ z13, t49 = z9 ^ z10, t50 = z2 ^ z12, t51 = z2 ^ z5;
  const uint32_t t52 = z7 ^ z8, t53 = z0 ^ z3, t54 = z6 ^ z7, t55 = z16 ^ z17, t56 = z12 ^ t48, t57 = t50 ^ t53;
  const uint32_t t58 = z4 ^ t46, t59 = z3 ^ t54, t60 = t46 ^ t57, t61 = z14 ^ t57, t62 = t52 ^ t58, t63 = t49 ^ t58;
  const uint32_t t64 = z4 ^ t59, t65 = t61 ^ t62, t66 = z1 ^ t63, t67 = t64 ^ t65;
  s[7] = t59 ^ t63;
  s[1] = ~(t56 ^ t62);
  s[0] = ~(t48 ^ t60);
  s[4] = t53 ^ t66;
  s[3] = t51 ^ t66;
  s[2] = t47 ^ t65;
  s[6] = ~(t64 ^ s[4]);
  s[5] = ~(t55 ^ t67);
}

}  // namespace detail

/// Between blocks and their slices.
HEADRACE_SHADER void aes_slice(const CipherBlock (&blocks)[AESSlices::kBlocks], AESSlices& slices) {
  for (uint32_t c = 0; c < 4; ++c) {
    uint32_t w[8];
    for (uint32_t i = 0; i < 8; ++i) w[i] = blocks[i].w[c];
    detail::transpose_bits(w);
    for (uint32_t i = 0; i < 8; ++i) slices.of[i][c] = w[i];
  }
}
HEADRACE_SHADER void aes_unslice(const AESSlices& slices, CipherBlock (&blocks)[AESSlices::kBlocks]) {
  for (uint32_t c = 0; c < 4; ++c) {
    uint32_t w[8];
    for (uint32_t i = 0; i < 8; ++i) w[i] = slices.of[i][c];
    detail::transpose_bits(w);
    for (uint32_t i = 0; i < 8; ++i) blocks[i].w[c] = w[i];
  }
}

/// Encrypts eight blocks. \param keys of all rounds, sliced, in the memory of the processor
HEADRACE_SHADER void aes_encrypt_sliced(const AESSlices* keys, uint32_t rounds, CipherBlock (&blocks)[8]) {
  AESSlices s;
  aes_slice(blocks, s);
  const auto add_key = [&](uint32_t round) {
    for (uint32_t i = 0; i < 8; ++i) {
      const CipherBlock key = load_aligned(reinterpret_cast<const uint8_t*>(keys[round].of[i]));
      for (uint32_t c = 0; c < 4; ++c) s.of[i][c] ^= key.w[c];
    }
  };
  add_key(0);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (uint32_t round = 1; round <= rounds; ++round) {
    for (uint32_t c = 0; c < 4; ++c) {
      uint32_t bits[8];
      for (uint32_t i = 0; i < 8; ++i) bits[i] = s.of[i][c];
      detail::sub_bits(bits);
      for (uint32_t i = 0; i < 8; ++i) s.of[i][c] = bits[i];
    }
    for (uint32_t i = 0; i < 8; ++i) {
      // Row r comes from r columns further on.
      uint32_t upper[4], lower[4];
      for (uint32_t c = 0; c < 4; ++c) {
        upper[c] = detail::choose_bytes<0x0050>(s.of[i][c], s.of[i][(c + 1) % 4]);
        lower[c] = detail::choose_bytes<0x7200>(s.of[i][(c + 2) % 4], s.of[i][(c + 3) % 4]);
      }
      for (uint32_t c = 0; c < 4; ++c) s.of[i][c] = detail::choose_bytes<0x7610>(upper[c], lower[c]);
    }
    if (round < rounds) {
      for (uint32_t c = 0; c < 4; ++c) {
        uint32_t next[8], pair[8];  // the row below, and the sum of both
        for (uint32_t i = 0; i < 8; ++i) {
          next[i] = rotate_right(s.of[i][c], 8);
          pair[i] = s.of[i][c] ^ next[i];
        }
        for (uint32_t i = 0; i < 8; ++i) {
          const uint32_t doubled = (i == 0 ? 0 : pair[i - 1]) ^ (i == 0 || i == 1 || i == 3 || i == 4 ? pair[7] : 0);
          s.of[i][c] = doubled ^ next[i] ^ rotate_right(pair[i], 16);
        }
      }
    }
    add_key(round);
  }
  aes_unslice(s, blocks);
}

}  // namespace headrace
