#pragma once
/// \file
/// AES (FIPS 197) by tables of 32-bit words (J. Daemen, V. Rijmen, "AES Proposal: Rijndael", section 5.2.1). Includes no
/// standard header.

#include "tables/sa/crypto_words_view.hh"

namespace headrace {

namespace detail {

/// Multiplication by x in GF(2^8).
constexpr uint32_t aes_double(uint32_t v) { return (v << 1 ^ (v & 0x80 ? 0x11b : 0)) & 0xff; }

/// An entry is a column of SubBytes, ShiftRows and MixColumns for a byte of the first row: from the lowest bits on 2, 1,
/// 1 and 3 times its substitute. Those of the other rows are rotations.
struct AESTable {
  uint32_t of[256];
};
constexpr AESTable make_aes_table() {
  AESTable table{};
  // p runs through all units as powers of 3, q through their inverses.
  uint32_t p = 1, q = 1;
  do {
    p = p ^ aes_double(p);
    q ^= q << 1;
    q ^= q << 2;
    q ^= q << 4;
    q &= 0xff;
    if ((q & 0x80) != 0) q ^= 0x09;
    const uint32_t s =
        (q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4) ^ 0x63) & 0xff;
    table.of[p] = aes_double(s) | s << 8 | s << 16 | (aes_double(s) ^ s) << 24;
  } while (p != 1);
  table.of[0] = aes_double(0x63) | 0x63u << 8 | 0x63u << 16 | (aes_double(0x63) ^ 0x63u) << 24;
  return table;
}
constexpr AESTable kAESTable = make_aes_table();

}  // namespace detail

/// The table where the compiler puts it: on a device, in global memory.
class ConstantAESTable {
 public:
  template <typename Team>
  HEADRACE_SHADER explicit ConstantAESTable(const Team&) {}
  HEADRACE_SHADER uint32_t operator[](uint32_t byte) const { return detail::kAESTable.of[byte]; }
};

#if defined(__CUDA_ARCH__)
/// The table in the shared memory of a block of threads, `kCopies` times (a power of two up to 32), which takes 1 KiB
/// each. With 32 of them no two lanes want the same bank, with one some 3.5 do. Every warp that makes one fills it in,
/// with the same words: `kCopies` times 8 loads and stores a lane.
template <uint32_t kCopies>
class SharedAESTable {
 public:
  template <typename Team>
  __device__ explicit SharedAESTable(const Team&) : mine_(words() + (threadIdx.x & (kCopies - 1))) {
    for (uint32_t i = threadIdx.x & 31; i < 256 * kCopies; i += 32) words()[i] = detail::kAESTable.of[i / kCopies];
    __syncwarp();
  }
  __device__ uint32_t operator[](uint32_t byte) const { return mine_[byte * kCopies]; }

 private:
  __device__ static uint32_t* words() {
    static __shared__ uint32_t words[256 * kCopies];
    return words;
  }
  const uint32_t* mine_;
};
using BestAESTable = SharedAESTable<1>;
#else
using BestAESTable = ConstantAESTable;
#endif

/// What AES substitutes for a byte.
template <typename Table>
HEADRACE_SHADER uint32_t aes_substitute(const Table& table, uint32_t byte) {
  return table[byte] >> 8 & 0xff;
}

/// The key of a round. \param keys of all rounds, 4 words each, as in memory, aligned to 16 bytes
HEADRACE_SHADER CipherBlock round_key(const uint32_t* keys, uint32_t round) {
  return load_aligned(reinterpret_cast<const uint8_t*>(keys + round * 4));
}

/// Encrypts a block. \param keys as for round_key() \param rounds 10 or 14
template <typename Table>
HEADRACE_SHADER CipherBlock aes_encrypt(const Table& table, const uint32_t* keys, uint32_t rounds,
                                        const CipherBlock& block) {
  CipherBlock s = block ^ round_key(keys, 0);
  const auto column = [&](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return table[a & 0xff] ^ rotate_left(table[b >> 8 & 0xff], 8) ^ rotate_left(table[c >> 16 & 0xff], 16) ^
           rotate_left(table[d >> 24], 24);
  };
  for (uint32_t round = 1; round < rounds; ++round) {
    s = CipherBlock{{column(s.w[0], s.w[1], s.w[2], s.w[3]), column(s.w[1], s.w[2], s.w[3], s.w[0]),
                     column(s.w[2], s.w[3], s.w[0], s.w[1]), column(s.w[3], s.w[0], s.w[1], s.w[2])}} ^
        round_key(keys, round);
  }
  const auto last = [&](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return aes_substitute(table, a & 0xff) | aes_substitute(table, b >> 8 & 0xff) << 8 |
           aes_substitute(table, c >> 16 & 0xff) << 16 | aes_substitute(table, d >> 24) << 24;
  };
  return CipherBlock{{last(s.w[0], s.w[1], s.w[2], s.w[3]), last(s.w[1], s.w[2], s.w[3], s.w[0]),
                      last(s.w[2], s.w[3], s.w[0], s.w[1]), last(s.w[3], s.w[0], s.w[1], s.w[2])}} ^
         round_key(keys, rounds);
}

/// Expands a key of 4 or 8 words for encryption: 4 words for each of 11 or 15 rounds, all as in memory.
template <uint32_t kWords>
HEADRACE_SHADER void aes_expand(const uint8_t* key, uint32_t* keys) {
  const auto substitute = [](uint32_t byte) { return detail::kAESTable.of[byte] >> 8 & 0xff; };
  for (uint32_t i = 0; i < kWords; ++i) keys[i] = load_word(key + i * 4, 4);
  uint32_t constant = 1;
  for (uint32_t i = kWords; i < (kWords + 7) * 4; ++i) {
    uint32_t v = keys[i - 1];
    if (i % kWords == 0) v = rotate_right(v, 8);
    if (i % kWords == 0 || (kWords == 8 && i % kWords == 4))
      v = substitute(v & 0xff) | substitute(v >> 8 & 0xff) << 8 | substitute(v >> 16 & 0xff) << 16 |
          substitute(v >> 24) << 24;
    if (i % kWords == 0) {
      v ^= constant;
      constant = detail::aes_double(constant);
    }
    keys[i] = keys[i - kWords] ^ v;
  }
}

namespace detail {

struct AESInverse {
  uint8_t of[256];
};
constexpr AESInverse make_aes_inverse() {
  AESInverse inverse{};
  for (uint32_t i = 0; i < 256; ++i) inverse.of[kAESTable.of[i] >> 8 & 0xff] = static_cast<uint8_t>(i);
  return inverse;
}
constexpr AESInverse kAESInverse = make_aes_inverse();

/// InvMixColumns of a column: 14, 11, 13 and 9 times its bytes.
HEADRACE_SHADER uint32_t aes_unmix(uint32_t w) {
  // All four bytes at once.
  const auto twice = [](uint32_t v) { return (v << 1 & 0xfefefefe) ^ (v >> 7 & 0x01010101) * 0x1b; };
  const uint32_t w2 = twice(w), w4 = twice(w2), w8 = twice(w4);
  return (w2 ^ w4 ^ w8) ^ rotate_right(w ^ w2 ^ w8, 8) ^ rotate_right(w ^ w4 ^ w8, 16) ^ rotate_right(w ^ w8, 24);
}

}  // namespace detail

/// Decrypts a block, slowly. Parameters as for aes_encrypt().
HEADRACE_SHADER CipherBlock aes_decrypt(const uint32_t* keys, uint32_t rounds, const CipherBlock& block) {
  const auto column = [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint8_t* const inverse = detail::kAESInverse.of;
    return inverse[a & 0xff] | uint32_t{inverse[b >> 8 & 0xff]} << 8 | uint32_t{inverse[c >> 16 & 0xff]} << 16 |
           uint32_t{inverse[d >> 24]} << 24;
  };
  CipherBlock s = block ^ round_key(keys, rounds);
  for (uint32_t round = rounds; round-- > 0;) {
    s = CipherBlock{{column(s.w[0], s.w[3], s.w[2], s.w[1]), column(s.w[1], s.w[0], s.w[3], s.w[2]),
                     column(s.w[2], s.w[1], s.w[0], s.w[3]), column(s.w[3], s.w[2], s.w[1], s.w[0])}} ^
        round_key(keys, round);
    if (round == 0) break;
    for (uint32_t i = 0; i < 4; ++i) s.w[i] = detail::aes_unmix(s.w[i]);
  }
  return s;
}

}  // namespace headrace
