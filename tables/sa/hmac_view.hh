#pragma once
/// \file
/// HMAC (RFC 2104) of a message by one thread. Includes no standard header.

#include "tables/sa/crypto_words_view.hh"

namespace headrace {

/// A message that consists of bytes in memory and, if `extended`, of the number `high`, big endian, behind them.
struct HashMessage {
  const uint8_t* bytes;
  uint32_t length;
  bool extended;
  uint32_t high;
  uint32_t before;  ///< bytes that the hash's state already covers

  /// Blocks of 64 bytes, the padding of SHA-1 and SHA-256 included.
  HEADRACE_SHADER uint32_t blocks() const { return (length + (extended ? 4 : 0) + 8) / 64 + 1; }

  HEADRACE_SHADER void block(uint32_t number, uint32_t (&w)[16]) const {
    const uint32_t at = number * 64;
    if (at + 64 <= length) {
      load_big_endian(bytes + at, w);
      return;
    }
    // What follows the bytes in memory.
    const uint64_t end = extended ? uint64_t{high} << 32 | 0x80000000 : uint64_t{1} << 63;
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t from = at + i * 4;
      w[i] = 0;
      if (from < length) {
        const uint32_t left = length - from;
        w[i] = byte_swap(load_word(bytes + from, left));
        if (left < 4) w[i] |= static_cast<uint32_t>(end >> (32 + left * 8));
      } else if (from - length < 8) {
        w[i] = static_cast<uint32_t>(end << ((from - length) * 8) >> 32);
      }
    }
    if (number + 1 == blocks()) {
      const uint64_t bits = (uint64_t{before} + length + (extended ? 4 : 0)) * 8;
      w[14] = static_cast<uint32_t>(bits >> 32);
      w[15] = static_cast<uint32_t>(bits);
    }
  }
};

/// The blocks of a message, in order. On a device the next one is on its way while one is hashed, because memory takes
/// a quarter of the time of the hash.
class HashBlocks {
 public:
  HEADRACE_SHADER explicit HashBlocks(const HashMessage& message) : message_(message) { fetch(); }

  HEADRACE_SHADER void next(uint32_t (&w)[16]) {
#if defined(__CUDA_ARCH__)
    if (whole()) {
      const uint32_t skip = this->skip();
      for (uint32_t i = 0; i < 4; ++i) {
        const CipherBlock block = bytes_at(ahead_[i], ahead_[i + 1], skip);
        for (uint32_t j = 0; j < 4; ++j) w[i * 4 + j] = byte_swap(block.w[j]);
      }
      ++number_;
      fetch();
      return;
    }
#endif
    message_.block(number_++, w);
  }

 private:
#if defined(__CUDA_ARCH__)
  __device__ bool whole() const { return number_ * 64 + 64 <= message_.length; }
  __device__ uint32_t skip() const { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(message_.bytes) & 15); }
  __device__ void fetch() {
    if (!whole()) return;
    const uint8_t* const from = message_.bytes + number_ * 64 - skip();
    for (uint32_t i = 0; i < 4; ++i) ahead_[i] = load_aligned(from + i * 16);
    ahead_[4] = skip() != 0 ? load_aligned(from + 64) : CipherBlock{};
  }
  CipherBlock ahead_[5];
#else
  void fetch() {}
#endif
  const HashMessage& message_;
  uint32_t number_ = 0;
};

/// The HMAC of a message: Hash::kWords words, big endian. \param inner, outer the hash's states behind the key's blocks
template <typename Hash>
HEADRACE_SHADER_CALL void hmac(const uint32_t* inner, const uint32_t* outer, const HashMessage& message,
                               uint32_t* result) {
  uint32_t state[Hash::kWords];
  for (uint32_t i = 0; i < Hash::kWords; ++i) state[i] = inner[i];
  const uint32_t blocks = message.blocks();
  HashBlocks message_blocks(message);
  // The last turn is the outer hash, so that the rounds are there only once.
  for (uint32_t number = 0; number <= blocks; ++number) {
    uint32_t w[16];
    if (number < blocks) {
      message_blocks.next(w);
    } else {
      for (uint32_t i = 0; i < 16; ++i) w[i] = 0;
      for (uint32_t i = 0; i < Hash::kWords; ++i) {
        w[i] = state[i];
        state[i] = outer[i];
      }
      w[Hash::kWords] = 0x80000000;
      w[15] = (64 + Hash::kWords * 4) * 8;
    }
    Hash::add(state, w);
  }
  for (uint32_t i = 0; i < Hash::kWords; ++i) result[i] = state[i];
}

/// The hash of a message. `message.before` is 0.
template <typename Hash>
HEADRACE_SHADER void hash_message(const HashMessage& message, uint32_t* result) {
  Hash::start(result);
  HashBlocks message_blocks(message);
  for (uint32_t number = 0; number < message.blocks(); ++number) {
    uint32_t w[16];
    message_blocks.next(w);
    Hash::add(result, w);
  }
}

}  // namespace headrace
