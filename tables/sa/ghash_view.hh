#pragma once
/// \file
/// The hash of GCM (NIST SP 800-38D). Includes no standard header.
///
/// Multiplies without tables, whose lines differ from key to key and from lane to lane, and in constant time: by integer
/// multiplications of numbers with holes, which carries do not cross (T. Pornin, BearSSL, ghash_ctmul.c).

#include "tables/sa/crypto_words_view.hh"

namespace headrace {

/// An element of GF(2^128): word 3 has the first four bytes of a block, as a big endian number, and so on.
struct GHashElement {
  uint32_t w[4];
};
HEADRACE_SHADER GHashElement operator^(const GHashElement& a, const GHashElement& b) {
  return {{a.w[0] ^ b.w[0], a.w[1] ^ b.w[1], a.w[2] ^ b.w[2], a.w[3] ^ b.w[3]}};
}
HEADRACE_SHADER GHashElement ghash_element(const CipherBlock& block) {
  return {{byte_swap(block.w[3]), byte_swap(block.w[2]), byte_swap(block.w[1]), byte_swap(block.w[0])}};
}
HEADRACE_SHADER CipherBlock ghash_block(const GHashElement& e) {
  return {{byte_swap(e.w[3]), byte_swap(e.w[2]), byte_swap(e.w[1]), byte_swap(e.w[0])}};
}

namespace detail {

/// The product of two polynomials over GF(2).
HEADRACE_SHADER uint64_t carryless(uint32_t x, uint32_t y) {
  constexpr uint32_t kHoles = 0x11111111;
  constexpr uint64_t kWide = 0x1111111111111111;
  const uint64_t x0 = x & kHoles, x1 = x & kHoles << 1, x2 = x & kHoles << 2, x3 = x & kHoles << 3;
  const uint64_t y0 = y & kHoles, y1 = y & kHoles << 1, y2 = y & kHoles << 2, y3 = y & kHoles << 3;
  return (((x0 * y0) ^ (x1 * y3) ^ (x2 * y2) ^ (x3 * y1)) & kWide) |
         (((x0 * y1) ^ (x1 * y0) ^ (x2 * y3) ^ (x3 * y2)) & kWide << 1) |
         (((x0 * y2) ^ (x1 * y1) ^ (x2 * y0) ^ (x3 * y3)) & kWide << 2) |
         (((x0 * y3) ^ (x1 * y2) ^ (x2 * y1) ^ (x3 * y0)) & kWide << 3);
}

struct GHashHalf {
  uint64_t low, high;
};
/// The product of two polynomials of 64 bits, by three products of 32 bits (A. Karatsuba).
HEADRACE_SHADER GHashHalf carryless(uint32_t x0, uint32_t x1, uint32_t y0, uint32_t y1) {
  const uint64_t low = carryless(x0, y0), high = carryless(x1, y1);
  const uint64_t middle = carryless(x0 ^ x1, y0 ^ y1) ^ low ^ high;
  return {low ^ middle << 32, high ^ middle >> 32};
}

}  // namespace detail

HEADRACE_SHADER GHashElement ghash_multiply(const GHashElement& x, const GHashElement& y) {
  const detail::GHashHalf low = detail::carryless(x.w[0], x.w[1], y.w[0], y.w[1]);
  const detail::GHashHalf high = detail::carryless(x.w[2], x.w[3], y.w[2], y.w[3]);
  const detail::GHashHalf middle =
      detail::carryless(x.w[0] ^ x.w[2], x.w[1] ^ x.w[3], y.w[0] ^ y.w[2], y.w[1] ^ y.w[3]);
  uint64_t z0 = low.low, z1 = low.high ^ middle.low ^ low.low ^ high.low;
  uint64_t z2 = high.low ^ middle.high ^ low.high ^ high.high, z3 = high.high;
  // The bits of a block are in reverse order, so a product is one place too low.
  z3 = z3 << 1 | z2 >> 63;
  z2 = z2 << 1 | z1 >> 63;
  z1 = z1 << 1 | z0 >> 63;
  z0 = z0 << 1;
  // Modulo x^128 + x^7 + x^2 + x + 1.
  z1 ^= z0 << 63 ^ z0 << 62 ^ z0 << 57;
  z2 ^= z0 ^ z0 >> 1 ^ z0 >> 2 ^ z0 >> 7;
  z2 ^= z1 << 63 ^ z1 << 62 ^ z1 << 57;
  z3 ^= z1 ^ z1 >> 1 ^ z1 >> 2 ^ z1 >> 7;
  return {{static_cast<uint32_t>(z2), static_cast<uint32_t>(z2 >> 32), static_cast<uint32_t>(z3),
           static_cast<uint32_t>(z3 >> 32)}};
}

}  // namespace headrace
