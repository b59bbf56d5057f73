#pragma once
/// \file
/// AES (FIPS 197) by tables of 32-bit words (J. Daemen, V. Rijmen, "AES Proposal: Rijndael", section 5.2.1). Includes no
/// standard header.

#include "tables/sa/crypto_words_view.hh"
#if defined(__CUDA_ARCH__)
#include "headrace/device/block_memory.hh"
#endif

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

/// The table where the compiler puts it.
class ConstantAESTable {
 public:
  HEADRACE_SHADER static void fill() {}
  /// The entry of byte `Byte` of a word, as it is or turned left by 8 bits.
  template <uint32_t Byte>
  HEADRACE_SHADER uint32_t plain(uint32_t word) const {
    return detail::kAESTable.of[word >> Byte * 8 & 0xff];
  }
  template <uint32_t Byte>
  HEADRACE_SHADER uint32_t turned(uint32_t word) const {
    return rotate_left(plain<Byte>(word), 8);
  }
};

/// Bytes of shared memory that a device's table takes.
inline constexpr uint32_t kAESTableBytes = 65536;

#if defined(__CUDA_ARCH__)
/// The table in the shared memory of a block of threads, 32 times, so that no two lanes want the same bank. 256 bytes
/// belong to an entry: it as it is for each lane, then turned by 8 bits for each. So the address of an entry is the byte
/// with the lane below it, which takes one instruction.
class SharedAESTable {
 public:
  /// All threads of the block call it before any of them makes a table, and then wait for each other.
  __device__ static void fill() {
    for (uint32_t i = threadIdx.x; i < kWords; i += blockDim.x) {
      const uint32_t entry = detail::kAESTable.of[i / 64];
      words()[i] = (i & 32) == 0 ? entry : rotate_left(entry, 8);
    }
  }
  __device__ SharedAESTable() : lane_((threadIdx.x & 31) * 4) {}
  template <uint32_t Byte>
  __device__ uint32_t plain(uint32_t word) const {
    return *at(__byte_perm(word, lane_, 0x7704 | Byte << 4));
  }
  template <uint32_t Byte>
  __device__ uint32_t turned(uint32_t word) const {
    return *(at(__byte_perm(word, lane_, 0x7704 | Byte << 4)) + 32);
  }

 private:
  static constexpr uint32_t kWords = kAESTableBytes / 4;
  __device__ static uint32_t* words() { return reinterpret_cast<uint32_t*>(device::block_memory); }
  __device__ static const uint32_t* at(uint32_t offset) {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const uint8_t*>(words()) + offset);
  }
  const uint32_t lane_;
};
using BestAESTable = SharedAESTable;
#else
using BestAESTable = ConstantAESTable;
#endif

/// The keys of all rounds.
class RoundKeys {
 public:
  /// \param keys of all rounds, 4 words each, as in memory, aligned to 16 bytes
  HEADRACE_SHADER RoundKeys(const uint32_t* keys, uint32_t rounds) : keys_(keys), rounds_(rounds) {}
  HEADRACE_SHADER uint32_t rounds() const { return rounds_; }
  HEADRACE_SHADER CipherBlock operator[](uint32_t round) const {
    return load_aligned(reinterpret_cast<const uint8_t*>(keys_ + round * 4));
  }

 private:
  const uint32_t* keys_;
  const uint32_t rounds_;
};

/// Encrypts `kBlocks` blocks, step by step together: while one waits for its table, the others go on.
template <uint32_t kBlocks, typename Table, typename Keys>
HEADRACE_SHADER void aes_encrypt(const Table& table, const Keys& keys, CipherBlock (&blocks)[kBlocks]) {
  const auto column = [&](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return table.template plain<0>(a) ^ table.template turned<1>(b) ^
           rotate_left(table.template plain<2>(c) ^ table.template turned<3>(d), 16);
  };
  // A byte's substitute lies in the second and in the third byte of its entry.
  const auto last = [&](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return (table.template plain<0>(a) >> 8 & 0xff) | (table.template plain<1>(b) & 0xff00) |
           (table.template plain<2>(c) & 0xff0000) | (table.template turned<3>(d) & 0xff000000);
  };
  const CipherBlock first = keys[0];
  for (CipherBlock& s : blocks) s = s ^ first;
    // One copy of the round: a device reads instructions from memory, too.
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (uint32_t round = 1; round < keys.rounds(); ++round) {
    const CipherBlock key = keys[round];
    for (CipherBlock& s : blocks)
      s = CipherBlock{{column(s.w[0], s.w[1], s.w[2], s.w[3]), column(s.w[1], s.w[2], s.w[3], s.w[0]),
                       column(s.w[2], s.w[3], s.w[0], s.w[1]), column(s.w[3], s.w[0], s.w[1], s.w[2])}} ^
          key;
  }
  const CipherBlock key = keys[keys.rounds()];
  for (CipherBlock& s : blocks)
    s = CipherBlock{{last(s.w[0], s.w[1], s.w[2], s.w[3]), last(s.w[1], s.w[2], s.w[3], s.w[0]),
                     last(s.w[2], s.w[3], s.w[0], s.w[1]), last(s.w[3], s.w[0], s.w[1], s.w[2])}} ^
        key;
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
  const RoundKeys key(keys, rounds);
  CipherBlock s = block ^ key[rounds];
  for (uint32_t round = rounds; round-- > 0;) {
    s = CipherBlock{{column(s.w[0], s.w[3], s.w[2], s.w[1]), column(s.w[1], s.w[0], s.w[3], s.w[2]),
                     column(s.w[2], s.w[1], s.w[0], s.w[3]), column(s.w[3], s.w[2], s.w[1], s.w[0])}} ^
        key[round];
    if (round == 0) break;
    for (uint32_t i = 0; i < 4; ++i) s.w[i] = detail::aes_unmix(s.w[i]);
  }
  return s;
}

}  // namespace headrace
