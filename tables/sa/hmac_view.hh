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

  /// The bytes of a block that are in memory.
  HEADRACE_SHADER uint32_t bytes_of(uint32_t number) const {
    const uint32_t at = number * 64;
    return at >= length ? 0 : length - at < 64 ? length - at : 64;
  }
  /// Adds to a block, which has bytes_of(number) bytes and zeros behind them, what follows the bytes in memory.
  HEADRACE_SHADER void finish(uint32_t number, uint32_t (&w)[16]) const {
    // 8 bytes, the first in the highest bits.
    const uint64_t end = extended ? uint64_t{high} << 32 | 0x80000000 : uint64_t{1} << 63;
    for (uint32_t i = 0; i < 16; ++i) {
      const int32_t behind = static_cast<int32_t>(number * 64 + i * 4 - length);
      if (behind > -4 && behind < 8)
        w[i] |= static_cast<uint32_t>((behind < 0 ? end >> behind * -8 : end << behind * 8) >> 32);
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
    const uint32_t n = message_.bytes_of(number_);
#if defined(__CUDA_ARCH__)
    big_endian(ahead_, skip(), n, w);
#else
    load_big_endian(message_.bytes + message_.length - left(), w, n);
#endif
    if (n < 64) message_.finish(number_, w);
    ++number_;
    fetch();
  }

 private:
#if defined(__CUDA_ARCH__)
  __device__ uint32_t skip() const { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(message_.bytes) & 15); }
  __device__ void fetch() { load_vectors(message_.bytes + number_ * 64, message_.bytes_of(number_), ahead_); }
  CipherBlock ahead_[5];
#else
  void fetch() {}
  /// Bytes in memory that have not been read.
  uint32_t left() const { return message_.length > number_ * 64 ? message_.length - number_ * 64 : 0; }
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
