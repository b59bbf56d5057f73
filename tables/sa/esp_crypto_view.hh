#pragma once
/// \file
/// ESP's cryptography over one packet, in place, on either processor. Includes no standard header.
///
/// `esp` is where the ESP header lies, at any address, and `length` the bytes from there up to the packet's end, with
/// the ICV. The IV is already in the packet. `sequence_high`: the upper half of a sequence number of 64 bits, which only
/// counts if the association has those. A packet whose length does not fit the association is left as it is.
///
/// On a device, the vectors of 16 bytes that contain the packet must be readable.

#include "headrace/team.hh"
#include "tables/sa/aes_view.hh"
#include "tables/sa/esp_keys_view.hh"
#include "tables/sa/ghash_view.hh"
#include "tables/sa/hmac_view.hh"
#include "tables/sa/sha1_view.hh"
#include "tables/sa/sha256_view.hh"

namespace headrace {

namespace detail {

/// Counter mode and GCM over one packet, in turns of one slot for each lane.
///
/// With GCM slot 0 has the additional data for the hash and, as its key stream, what masks the ICV; then come the blocks
/// of the ciphertext; the slot behind them has the lengths for the hash. Each lane hashes its own slots with H^Team::size()
/// in the place of H, and at the end multiplies by the power of H that its last slot needs. In counter mode the blocks
/// begin with slot 0. In both, the key stream of slot k is that of counter k + 1 (RFC 3686, RFC 4106).
template <typename Team, typename Table>
class CounterPacket {
  using Words = typename Team::template Lanes<uint32_t>;
  static_assert(Team::size() <= ESPKeys::kPowers);

 public:
  HEADRACE_SHADER CounterPacket(const Team& team, const Table& table, const ESPKeys& keys, uint8_t* esp,
                                uint32_t length, uint32_t sequence_high)
      : team_(team),
        table_(table),
        keys_(keys),
        esp_(esp),
        data_(esp + keys.front()),
        length_(length - keys.overhead()),
        blocks_((length_ + 15) / 16),
        front_(keys.gcm() ? 1 : 0),
        sequence_high_(sequence_high) {
    clear(sums_);
    clear(mask_);
  }

  /// Encrypts or, in counter mode, decrypts; with GCM, writes the ICV.
  HEADRACE_SHADER void encrypt() {
    const bool hashed = front_ != 0;
    for_turns([&](uint32_t first) {
      Words stream[4];
      make_stream(first, stream);
      exchange(first, stream, hashed);
    });
    if (!hashed) return;
    finish();
    team_.run([&](uint32_t lane) {
      if (lane != 0) return;
      for (uint32_t i = 0; i < 4; ++i) store_word(icv() + i * 4, Team::own(mask_[i], lane));
    });
  }

  /// Decrypts with GCM if the ICV is right.
  HEADRACE_SHADER bool decrypt() {
    // The stream of the first turn has the mask, so it is there before anything is decrypted.
    Words stream[4];
    make_stream(0, stream);
    for_turns([&](uint32_t first) {
      team_.run([&](uint32_t lane) {
        const uint32_t slot = first + lane;
        const uint32_t block = slot - 1;
        CipherBlock ciphertext{};
        if (slot != 0 && block < blocks_) ciphertext = load_block(data_ + block * 16, left(block));
        hash(lane, slot, ciphertext);
      });
    });
    finish();
    typename Team::template Lanes<bool> wrong = team_.map([&](uint32_t lane) {
      if (lane != 0) return false;
      uint32_t difference = 0;
      for (uint32_t i = 0; i < 4; ++i) difference |= load_word(icv() + i * 4, 4) ^ Team::own(mask_[i], lane);
      return difference != 0;
    });
    if (team_.any(wrong)) return false;
    for_turns([&](uint32_t first) {
      if (first != 0) make_stream(first, stream);
      exchange(first, stream, false);
    });
    return true;
  }

 private:
  HEADRACE_SHADER uint8_t* icv() const { return data_ + length_; }
  /// Bytes from a block on.
  HEADRACE_SHADER uint32_t left(uint32_t block) const { return length_ - block * 16; }
  HEADRACE_SHADER void clear(Words (&words)[4]) const {
    team_.run([&](uint32_t lane) { set(words, lane, CipherBlock{}); });
  }
  HEADRACE_SHADER static CipherBlock get(Words (&words)[4], uint32_t lane) {
    return {
        {Team::own(words[0], lane), Team::own(words[1], lane), Team::own(words[2], lane), Team::own(words[3], lane)}};
  }
  HEADRACE_SHADER static void set(Words (&words)[4], uint32_t lane, const CipherBlock& block) {
    for (uint32_t i = 0; i < 4; ++i) Team::own(words[i], lane) = block.w[i];
  }
  HEADRACE_SHADER static GHashElement element(const CipherBlock& b) { return {{b.w[0], b.w[1], b.w[2], b.w[3]}}; }
  HEADRACE_SHADER static CipherBlock words(const GHashElement& e) { return {{e.w[0], e.w[1], e.w[2], e.w[3]}}; }
  HEADRACE_SHADER GHashElement power(uint32_t exponent) const {
    return element(load_aligned(reinterpret_cast<const uint8_t*>(keys_.powers[exponent - 1])));
  }

  template <typename F>
  HEADRACE_SHADER void for_turns(F&& f) {
    // Where blocks are no vectors in memory, the end of the last block is one more; with GCM that is the slot of the
    // lengths.
    const uint32_t slots = blocks_ + 1 + front_;
    for (uint32_t first = 0; first < slots; first += Team::size()) f(first);
  }

  HEADRACE_SHADER void make_stream(uint32_t first, Words (&stream)[4]) {
    team_.run([&](uint32_t lane) {
      const uint32_t slot = first + lane;
      if (slot >= blocks_ + front_) return;
      const CipherBlock counter = {{keys_.salt, load_word(esp_ + ESPKeys::kHeader, 4),
                                    load_word(esp_ + ESPKeys::kHeader + 4, 4), byte_swap(slot + 1)}};
      set(stream, lane, aes_encrypt(table_, keys_.round_keys, keys_.rounds, counter));
      if (slot < front_) set(mask_, lane, get(stream, lane));
    });
  }

  /// Adds a slot to the hash.
  HEADRACE_SHADER void hash(uint32_t lane, uint32_t slot, const CipherBlock& ciphertext) {
    if (slot >= blocks_ + 2) return;
    GHashElement next = ghash_element(ciphertext);
    if (slot == 0) {
      const CipherBlock header = load_block(esp_, ESPKeys::kHeader);
      next = ghash_element(keys_.extended() ? CipherBlock{{header.w[0], byte_swap(sequence_high_), header.w[1], 0}}
                                            : header);
    } else if (slot == blocks_ + 1) {
      next = {{length_ << 3, length_ >> 29, keys_.extended() ? 96u : 64u, 0}};
    }
    if (slot >= Team::size()) next = next ^ ghash_multiply(element(get(sums_, lane)), power(Team::size()));
    set(sums_, lane, words(next));
  }

  /// Adds the stream to the blocks of a turn, and hashes what becomes of them.
  HEADRACE_SHADER void exchange(uint32_t first, Words (&stream)[4], bool hashed) {
    Words now[4];
    team_.run([&](uint32_t lane) {
      const uint32_t slot = first + lane, block = slot - front_;
      CipherBlock text{};
      if (slot >= front_ && block < blocks_)
        text = first_bytes(load_block(data_ + block * 16, left(block)) ^ get(stream, lane), left(block));
      if (hashed) hash(lane, slot, text);
      set(now, lane, text);
    });
    // A lane stores the vector in which its block begins, with the end of the block before.
    Words before[4];
    for (uint32_t i = 0; i < 4; ++i) {
      before[i] = team_.previous(now[i], first == 0 ? 0u : carried_[i]);
      carried_[i] = team_.last(now[i]);
    }
    const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data_) & 15);
    team_.run([&](uint32_t lane) {
      const uint32_t slot = first + lane, vector = slot - front_;
      if (slot < front_ || vector * 16 >= skip + length_) return;
      const uint32_t rest = skip + length_ - vector * 16;
      const CipherBlock out = skip == 0 ? get(now, lane) : bytes_at(get(before, lane), get(now, lane), 16 - skip);
      store_part(data_ - skip + vector * 16, out, vector == 0 ? skip : 0, rest < 16 ? rest : 16);
    });
  }

  /// The ICV, in lane 0 of `mask_`.
  HEADRACE_SHADER void finish() {
    const uint32_t slots = blocks_ + 2;
    team_.run([&](uint32_t lane) {
      if (lane >= slots) return;
      const uint32_t behind = (slots - 1 - lane) % Team::size();
      set(sums_, lane, words(ghash_multiply(element(get(sums_, lane)), power(behind + 1))));
    });
    GHashElement sum;
    for (uint32_t i = 0; i < 4; ++i) sum.w[i] = team_.parity(sums_[i]);
    team_.run([&](uint32_t lane) { set(mask_, lane, get(mask_, lane) ^ ghash_block(sum)); });
  }

  const Team& team_;
  const Table& table_;
  const ESPKeys& keys_;
  uint8_t* const esp_;
  uint8_t* const data_;
  const uint32_t length_;  // of the ciphertext, bytes
  const uint32_t blocks_;
  const uint32_t front_;  // slots in front of the first block
  const uint32_t sequence_high_;
  Words sums_[4];  // of the hash, as GHashElement
  Words mask_[4];  // of the ICV, as CipherBlock
  uint32_t carried_[4] = {};
};

#if !defined(__CUDA_ARCH__)
inline CipherBlock cbc_block(const uint8_t* at) { return load_block(at, 16); }
inline void store_cbc_block(uint8_t* at, const CipherBlock& block) { __builtin_memcpy(at, block.w, 16); }

inline void cbc_encrypt(const ESPKeys& keys, uint8_t* esp, uint32_t length) {
  const ConstantAESTable table(0);
  CipherBlock last = cbc_block(esp + ESPKeys::kHeader);
  for (uint8_t* at = esp + keys.front(); at < esp + length - keys.icv_length; at += 16) {
    last = aes_encrypt(table, keys.round_keys, keys.rounds, cbc_block(at) ^ last);
    store_cbc_block(at, last);
  }
}
inline void cbc_decrypt(const ESPKeys& keys, uint8_t* esp, uint32_t length) {
  CipherBlock last = cbc_block(esp + ESPKeys::kHeader);
  for (uint8_t* at = esp + keys.front(); at < esp + length - keys.icv_length; at += 16) {
    const CipherBlock ciphertext = cbc_block(at);
    store_cbc_block(at, aes_decrypt(keys.round_keys, keys.rounds, ciphertext) ^ last);
    last = ciphertext;
  }
}
#endif

/// The HMAC over a packet up to its ICV.
HEADRACE_SHADER void esp_hmac(const ESPKeys& keys, const uint8_t* esp, uint32_t length, uint32_t sequence_high,
                              uint32_t (&result)[8]) {
  const HashMessage message = {esp, length - keys.icv_length, keys.extended(), sequence_high, 64};
  if (keys.integrity == Integrity::kHMACSHA1)
    hmac<SHA1>(keys.inner, keys.outer, message, result);
  else
    hmac<SHA256>(keys.inner, keys.outer, message, result);
}

}  // namespace detail

/// Encrypts; with GCM, also writes the ICV. All lanes make the call together. CBC mode is for the host only, and
/// Triple-DES for the library only: here it leaves the packet as it is.
template <typename Team, typename Table>
HEADRACE_SHADER void esp_encrypt(const Team& team, const Table& table, const ESPKeys& keys, uint8_t* esp,
                                 uint32_t length, uint32_t sequence_high) {
  if (!keys.fits(length)) return;
  if (keys.gcm() || keys.counter_mode()) {
    detail::CounterPacket<Team, Table>(team, table, keys, esp, length, sequence_high).encrypt();
    return;
  }
#if !defined(__CUDA_ARCH__)
  if (keys.aes_cbc()) detail::cbc_encrypt(keys, esp, length);
#endif
}
template <typename Team>
HEADRACE_SHADER void esp_encrypt(const Team& team, const ESPKeys& keys, uint8_t* esp, uint32_t length,
                                 uint32_t sequence_high) {
  esp_encrypt(team, BestAESTable(team), keys, esp, length, sequence_high);
}

/// Decrypts. With GCM the ICV is verified first, in constant time; if it is wrong, the packet stays as it is and all
/// lanes get false. With other ciphers, call esp_verify() before; false if the packet does not fit the
/// association, or its cipher cannot be had here.
template <typename Team, typename Table>
HEADRACE_SHADER bool esp_decrypt(const Team& team, const Table& table, const ESPKeys& keys, uint8_t* esp,
                                 uint32_t length, uint32_t sequence_high) {
  if (!keys.fits(length)) return false;
  if (keys.gcm()) return detail::CounterPacket<Team, Table>(team, table, keys, esp, length, sequence_high).decrypt();
  if (keys.counter_mode()) {
    detail::CounterPacket<Team, Table>(team, table, keys, esp, length, sequence_high).encrypt();
    return true;
  }
#if !defined(__CUDA_ARCH__)
  if (keys.aes_cbc()) {
    detail::cbc_decrypt(keys, esp, length);
    return true;
  }
#endif
  return keys.cipher == Cipher::kNull;
}
template <typename Team>
HEADRACE_SHADER bool esp_decrypt(const Team& team, const ESPKeys& keys, uint8_t* esp, uint32_t length,
                                 uint32_t sequence_high) {
  return esp_decrypt(team, BestAESTable(team), keys, esp, length, sequence_high);
}

/// Writes the ICV of an association that has a separate one: HMAC over the packet from its header on. For one thread.
HEADRACE_SHADER void esp_authenticate(const ESPKeys& keys, uint8_t* esp, uint32_t length, uint32_t sequence_high) {
  if (keys.integrity == Integrity::kNone || !keys.fits(length)) return;
  uint32_t result[8];
  detail::esp_hmac(keys, esp, length, sequence_high, result);
  uint8_t* const icv = esp + length - keys.icv_length;
  for (uint32_t i = 0; i < 4; ++i) {
    if (i * 4 < keys.icv_length) store_word(icv + i * 4, byte_swap(result[i]));
  }
}

/// Compares the ICV in constant time. True with GCM, for which esp_decrypt() does it. For one thread.
HEADRACE_SHADER bool esp_verify(const ESPKeys& keys, const uint8_t* esp, uint32_t length, uint32_t sequence_high) {
  if (!keys.fits(length)) return false;
  if (keys.integrity == Integrity::kNone) return keys.gcm();
  uint32_t result[8];
  detail::esp_hmac(keys, esp, length, sequence_high, result);
  const uint8_t* const icv = esp + length - keys.icv_length;
  uint32_t difference = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    if (i * 4 < keys.icv_length) difference |= load_word(icv + i * 4, 4) ^ byte_swap(result[i]);
  }
  return difference == 0;
}

}  // namespace headrace
