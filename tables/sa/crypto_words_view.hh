#pragma once
/// \file
/// Words and blocks of bytes that lie anywhere in memory. Includes no standard header.
///
/// On a device, memory is read in aligned words and vectors that contain at least one byte that was asked for.

#include "headrace/shader_types.hh"

namespace headrace {

/// 16 bytes; the first in the lowest bits of the first word.
struct CipherBlock {
  uint32_t w[4];
};
HEADRACE_SHADER CipherBlock operator^(const CipherBlock& a, const CipherBlock& b) {
  return {{a.w[0] ^ b.w[0], a.w[1] ^ b.w[1], a.w[2] ^ b.w[2], a.w[3] ^ b.w[3]}};
}

HEADRACE_SHADER uint32_t byte_swap(uint32_t v) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(v, 0, 0x0123);
#else
  return __builtin_bswap32(v);
#endif
}

/// `bits`: 1 to 31.
HEADRACE_SHADER uint32_t rotate_left(uint32_t v, uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_l(v, v, bits);
#else
  return v << bits | v >> (32 - bits);
#endif
}
HEADRACE_SHADER uint32_t rotate_right(uint32_t v, uint32_t bits) { return rotate_left(v, 32 - bits); }

/// The same value, which the compiler for a device does not take apart to add its terms in another order.
HEADRACE_SHADER uint32_t in_this_order(uint32_t v) {
#if defined(__CUDA_ARCH__)
  asm("" : "+r"(v));
#endif
  return v;
}

/// Four bytes from `skip` (0 to 3) on of the eight in two words.
HEADRACE_SHADER uint32_t bytes_at(uint32_t first, uint32_t second, uint32_t skip) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(first, second, skip * 8);
#else
  return static_cast<uint32_t>((uint64_t{second} << 32 | first) >> (skip * 8));
#endif
}

/// 16 bytes from `skip` (0 to 15) on of the 32 in two blocks.
HEADRACE_SHADER CipherBlock bytes_at(const CipherBlock& first, const CipherBlock& second, uint32_t skip) {
  uint32_t w[8] = {first.w[0], first.w[1], first.w[2], first.w[3], second.w[0], second.w[1], second.w[2], second.w[3]};
  if ((skip & 8) != 0) {
    for (uint32_t i = 0; i < 6; ++i) w[i] = w[i + 2];
  }
  if ((skip & 4) != 0) {
    for (uint32_t i = 0; i < 5; ++i) w[i] = w[i + 1];
  }
  const uint32_t rest = skip & 3;
  return {
      {bytes_at(w[0], w[1], rest), bytes_at(w[1], w[2], rest), bytes_at(w[2], w[3], rest), bytes_at(w[3], w[4], rest)}};
}

/// The first `n` bytes (up to 16) of a block; the others become 0.
HEADRACE_SHADER CipherBlock first_bytes(const CipherBlock& block, uint32_t n) {
  CipherBlock cut;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t left = n > i * 4 ? n - i * 4 : 0;
    cut.w[i] = left >= 4 ? block.w[i] : block.w[i] & ((1u << (left * 8)) - 1);
  }
  return cut;
}

/// Up to four bytes, the first in the lowest bits; those from `n` on are 0. `n` is at least 1.
HEADRACE_SHADER uint32_t load_word(const uint8_t* from, uint32_t n) {
#if defined(__CUDA_ARCH__)
  const uintptr_t at = reinterpret_cast<uintptr_t>(from);
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(at & ~uintptr_t{3});
  const uint32_t skip = static_cast<uint32_t>(at & 3);
  const uint32_t v = bytes_at(words[0], skip + n > 4 ? words[1] : 0, skip);
  return n < 4 ? v & ((1u << (n * 8)) - 1) : v;
#else
  uint32_t v = 0;
  __builtin_memcpy(&v, from, n < 4 ? n : 4);
  return v;
#endif
}

/// A block at an address that 16 divides.
HEADRACE_SHADER CipherBlock load_aligned(const uint8_t* from) {
#if defined(__CUDA_ARCH__)
  const uint4 v = *reinterpret_cast<const uint4*>(from);
  return {{v.x, v.y, v.z, v.w}};
#else
  CipherBlock block;
  __builtin_memcpy(&block, from, 16);
  return block;
#endif
}

HEADRACE_SHADER void store_word(uint8_t* to, uint32_t v) {
#if defined(__CUDA_ARCH__)
  const uintptr_t at = reinterpret_cast<uintptr_t>(to);
  if ((at & 3) == 0) {
    *reinterpret_cast<uint32_t*>(to) = v;
  } else if ((at & 1) == 0) {
    reinterpret_cast<uint16_t*>(to)[0] = static_cast<uint16_t>(v);
    reinterpret_cast<uint16_t*>(to)[1] = static_cast<uint16_t>(v >> 16);
  } else {
    for (uint32_t i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(v >> (i * 8));
  }
#else
  __builtin_memcpy(to, &v, 4);
#endif
}

/// Up to 16 bytes; those from `n` on are 0. `n` is at least 1.
HEADRACE_SHADER CipherBlock load_block(const uint8_t* from, uint32_t n) {
#if defined(__CUDA_ARCH__)
  const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 15);
  const CipherBlock first = load_aligned(from - skip);
  const CipherBlock whole = bytes_at(first, skip + n > 16 ? load_aligned(from - skip + 16) : CipherBlock{}, skip);
  return n < 16 ? first_bytes(whole, n) : whole;
#else
  CipherBlock block{};
  __builtin_memcpy(&block, from, n < 16 ? n : 16);
  return block;
#endif
}

#if defined(__CUDA_ARCH__)
/// The aligned vectors that contain up to 64 bytes; those that contain none become 0.
inline __device__ void load_vectors(const uint8_t* from, uint32_t n, CipherBlock (&vectors)[5]) {
  const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 15), end = n == 0 ? 0 : skip + n;
  for (uint32_t i = 0; i < 5; ++i) vectors[i] = i * 16 < end ? load_aligned(from - skip + i * 16) : CipherBlock{};
}
/// Up to 64 bytes of such vectors, from byte `skip` on, as big endian words; those from `n` on are 0.
inline __device__ void big_endian(const CipherBlock (&vectors)[5], uint32_t skip, uint32_t n, uint32_t (&w)[16]) {
  for (uint32_t i = 0; i < 4; ++i) {
    const CipherBlock block = first_bytes(bytes_at(vectors[i], vectors[i + 1], skip), n > i * 16 ? n - i * 16 : 0);
    for (uint32_t j = 0; j < 4; ++j) w[i * 4 + j] = byte_swap(block.w[j]);
  }
}
#else
/// Up to 64 bytes as big endian words; those from `n` on are 0.
inline void load_big_endian(const uint8_t* from, uint32_t (&w)[16], uint32_t n = 64) {
  for (uint32_t& word : w) word = 0;
  __builtin_memcpy(w, from, n);
  for (uint32_t& word : w) word = byte_swap(word);
}
#endif

/// Replaces the bytes `begin` up to `end` (at most 16) of a block at an address that 16 divides. On the host no other byte
/// is written; on a device the others are written as they were.
HEADRACE_SHADER void store_part(uint8_t* to, const CipherBlock& block, uint32_t begin, uint32_t end) {
#if defined(__CUDA_ARCH__)
  CipherBlock out = block;
  if (begin != 0 || end != 16) {
    const CipherBlock old = load_aligned(to);
    const CipherBlock head = first_bytes(old, begin), cut = first_bytes(block, end) ^ first_bytes(block, begin);
    out = head ^ cut ^ old ^ first_bytes(old, end);
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(out.w[0], out.w[1], out.w[2], out.w[3]);
#else
  __builtin_memcpy(to + begin, reinterpret_cast<const uint8_t*>(block.w) + begin, end - begin);
#endif
}

}  // namespace headrace
