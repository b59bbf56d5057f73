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

#if defined(__CUDA_ARCH__)
namespace detail {

/// A copy of a packet's keys in the shared memory of a block, one for each team: lanes load all of it at once, where
/// otherwise each step waits for memory. All lanes of a team make it and leave it together. Then it is wiped.
template <uint32_t Size>
class CopiedKeys {
 public:
  __device__ CopiedKeys(const LaneTeam<Size>& team, const ESPKeys& keys) : copy_(place(team)) {
    team.wait();
    for (uint32_t i = team.lane(); i < kVectors; i += Size) copy_[i] = reinterpret_cast<const uint4*>(&keys)[i];
    team.wait();
  }
  __device__ ~CopiedKeys() {
    LaneTeam<Size>::wait();
    for (uint32_t i = LaneTeam<Size>::lane(); i < kVectors; i += Size) copy_[i] = uint4{0, 0, 0, 0};
  }
  CopiedKeys(const CopiedKeys&) = delete;
  CopiedKeys& operator=(const CopiedKeys&) = delete;
  __device__ const ESPKeys& operator*() const { return *reinterpret_cast<const ESPKeys*>(copy_); }

 private:
  /// Without the powers that only larger teams need, which are the last.
  static constexpr uint32_t kVectors = sizeof(ESPKeys) / 16 - (ESPKeys::kPowers - Size);
  static constexpr uint32_t kMostWarps = 8;  // of a block
  __device__ static uint4* place(const LaneTeam<Size>& team) {
    if constexpr (Size == 32) {
      static __shared__ uint4 copies[kMostWarps * kVectors];
      return copies + threadIdx.x / 32 * kVectors;
    } else {
      static_assert(kVectors * 16 <= LaneTeam<Size>::memory_bytes());
      return reinterpret_cast<uint4*>(team.memory());
    }
  }

  uint4* const copy_;
};
}  // namespace detail
#endif

/// A packet's keys for a team: where they lie or, on a device, in a copy that all lanes make together and reach sooner.
template <typename Team>
class TeamKeys {
 public:
  HEADRACE_SHADER TeamKeys(const Team&, const ESPKeys& keys) : keys_(keys) {}
  HEADRACE_SHADER const ESPKeys& operator*() const { return keys_; }

 private:
  const ESPKeys& keys_;
};
#if defined(__CUDA_ARCH__)
template <>
class TeamKeys<WarpTeam> : public detail::CopiedKeys<32> {
  using detail::CopiedKeys<32>::CopiedKeys;
};
template <uint32_t Size>
class TeamKeys<LaneTeam<Size>> : public detail::CopiedKeys<Size> {
  using detail::CopiedKeys<Size>::CopiedKeys;
};
#endif

namespace detail {

/// Counter mode and GCM over one packet, in turns of kPerLane slots for each lane.
///
/// With GCM slot 0 has the additional data for the hash and, as its key stream, what masks the ICV; then come the blocks
/// of the ciphertext; the slot behind them has the lengths for the hash. Each lane hashes its own slots with H^Team::size()
/// in the place of H, and at the end multiplies by the power of H that its last slot needs. In counter mode the blocks
/// begin with slot 0. In both, the key stream of slot k is that of counter k + 1 (RFC 3686, RFC 4106).
template <typename Team>
class CounterPacket {
  using Words = typename Team::template Lanes<uint32_t>;
  static_assert(Team::size() <= ESPKeys::kPowers);
  /// So that a lane goes on with one block while another waits for its table.
  static constexpr uint32_t kPerLane = 2;
  static constexpr uint32_t kTurn = kPerLane * Team::size();
  /// A block of each lane.
  struct Blocks {
    Words w[4];
  };

 public:
  HEADRACE_SHADER CounterPacket(const Team& team, const ESPKeys& keys, uint8_t* esp, uint32_t length,
                                uint32_t sequence_high)
      : team_(team),
        round_keys_(keys.round_keys, keys.rounds),
        keys_(keys),
        esp_(esp),
        data_(esp + keys.front()),
        length_(length - keys.overhead()),
        blocks_((length_ + 15) / 16),
        front_(keys.gcm() ? 1 : 0),
        sequence_high_(sequence_high),
        counter_{{keys.salt, load_word(esp + ESPKeys::kHeader, 4), load_word(esp + ESPKeys::kHeader + 4, 4), 0}} {
    if (front_ != 0) power_ = power(Team::size());
    team_.run([&](uint32_t lane) {
      set(sums_, lane, CipherBlock{});
      set(mask_, lane, CipherBlock{});
    });
  }

  /// Encrypts or, in counter mode, decrypts; with GCM, writes the ICV.
  HEADRACE_SHADER void encrypt() {
    const bool hashed = front_ != 0;
    uint32_t first = 0;
    for (; first + Team::size() < slots(); first += kTurn) turn<kPerLane>(first, hashed);
    if (first < slots()) turn<1>(first, hashed);
    if (!hashed) return;
    finish();
    team_.run([&](uint32_t lane) {
      if (lane != 0) return;
      for (uint32_t i = 0; i < 4; ++i) store_word(icv() + i * 4, Team::own(mask_.w[i], lane));
    });
  }

  /// Decrypts with GCM if the ICV is right.
  HEADRACE_SHADER bool decrypt() {
    // The stream of the first turn has the mask, so it is there before anything is decrypted.
    Blocks stream[kPerLane];
    make_stream(0, stream);
    for (uint32_t first = 0; first < slots(); first += Team::size()) {
      team_.run([&](uint32_t lane) {
        const uint32_t slot = first + lane;
        const uint32_t block = slot - 1;
        CipherBlock ciphertext{};
        if (slot != 0 && block < blocks_) ciphertext = load_block(data_ + block * 16, left(block));
        hash(lane, slot, ciphertext);
      });
    }
    finish();
    typename Team::template Lanes<bool> wrong = team_.map([&](uint32_t lane) {
      if (lane != 0) return false;
      uint32_t difference = 0;
      for (uint32_t i = 0; i < 4; ++i) difference |= load_word(icv() + i * 4, 4) ^ Team::own(mask_.w[i], lane);
      return difference != 0;
    });
    if (team_.any(wrong)) return false;
    Blocks text[kPerLane];
    for (uint32_t first = 0; first < slots(); first += kTurn) {
      load(first, text);
      if (first != 0) make_stream(first, stream);
      exchange(first, text, stream, false);
    }
    return true;
  }

 private:
  HEADRACE_SHADER uint8_t* icv() const { return data_ + length_; }
  HEADRACE_SHADER uint32_t slots() const { return blocks_ + 2 * front_; }
  /// Bytes from a block on.
  HEADRACE_SHADER uint32_t left(uint32_t block) const { return length_ - block * 16; }
  HEADRACE_SHADER static CipherBlock get(Blocks& blocks, uint32_t lane) {
    CipherBlock block;
    for (uint32_t i = 0; i < 4; ++i) block.w[i] = Team::own(blocks.w[i], lane);
    return block;
  }
  HEADRACE_SHADER static void set(Blocks& blocks, uint32_t lane, const CipherBlock& block) {
    for (uint32_t i = 0; i < 4; ++i) Team::own(blocks.w[i], lane) = block.w[i];
  }
  HEADRACE_SHADER static GHashElement element(const CipherBlock& b) { return {{b.w[0], b.w[1], b.w[2], b.w[3]}}; }
  HEADRACE_SHADER static CipherBlock words(const GHashElement& e) { return {{e.w[0], e.w[1], e.w[2], e.w[3]}}; }
  HEADRACE_SHADER GHashElement power(uint32_t exponent) const {
    return element(load_aligned(reinterpret_cast<const uint8_t*>(keys_.powers[exponent - 1])));
  }

  /// Encrypts the slots from `first` on.
  template <uint32_t kBlocks>
  HEADRACE_SHADER void turn(uint32_t first, bool hashed) {
    Blocks text[kBlocks], stream[kBlocks];
    load(first, text);
    make_stream(first, stream);
    exchange(first, text, stream, hashed);
  }

  /// Loads the blocks of a turn. It comes before the stream, so that memory has time.
  template <uint32_t kBlocks>
  HEADRACE_SHADER void load(uint32_t first, Blocks (&text)[kBlocks]) {
    for (Blocks& part : text) {
      team_.run([&](uint32_t lane) {
        const uint32_t slot = first + lane, block = slot - front_;
        CipherBlock loaded{};
        if (slot >= front_ && block < blocks_) loaded = load_block(data_ + block * 16, left(block));
        set(part, lane, loaded);
      });
      first += Team::size();
    }
  }

  template <uint32_t kBlocks>
  HEADRACE_SHADER void make_stream(uint32_t first, Blocks (&stream)[kBlocks]) {
    team_.run([&](uint32_t lane) {
      CipherBlock blocks[kBlocks];
      for (uint32_t k = 0; k < kBlocks; ++k) {
        blocks[k] = counter_;
        blocks[k].w[3] = byte_swap(first + k * Team::size() + lane + 1);
      }
      aes_encrypt(table_, round_keys_, blocks);
      for (uint32_t k = 0; k < kBlocks; ++k) set(stream[k], lane, blocks[k]);
      if (first + lane < front_) set(mask_, lane, blocks[0]);
    });
  }

  /// Adds a slot to the hash.
  HEADRACE_SHADER void hash(uint32_t lane, uint32_t slot, const CipherBlock& ciphertext) {
    if (slot >= slots()) return;
    GHashElement next = ghash_element(ciphertext);
    if (slot == 0) {
      const CipherBlock header = load_block(esp_, ESPKeys::kHeader);
      next = ghash_element(keys_.extended() ? CipherBlock{{header.w[0], byte_swap(sequence_high_), header.w[1], 0}}
                                            : header);
    } else if (slot == blocks_ + 1) {
      next = {{length_ << 3, length_ >> 29, keys_.extended() ? 96u : 64u, 0}};
    }
    if (slot >= Team::size()) next = next ^ ghash_multiply(element(get(sums_, lane)), power_);
    set(sums_, lane, words(next));
  }

  /// Adds the stream to the blocks of a turn, and hashes what becomes of them.
  template <uint32_t kBlocks>
  HEADRACE_SHADER void exchange(uint32_t first, Blocks (&text)[kBlocks], Blocks (&stream)[kBlocks], bool hashed) {
    const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data_) & 15);
    for (uint32_t k = 0; k < kBlocks; ++k) {
      if (first >= slots()) return;
      Blocks& part = text[k];
      team_.run([&](uint32_t lane) {
        const uint32_t slot = first + lane, block = slot - front_;
        CipherBlock made{};
        if (slot >= front_ && block < blocks_) made = first_bytes(get(part, lane) ^ get(stream[k], lane), left(block));
        if (hashed) hash(lane, slot, made);
        set(part, lane, made);
      });
      // A lane stores the vector in which its block begins, with the end of the block before; the last one its end, too.
      Blocks before;
      for (uint32_t i = 0; i < 4; ++i) {
        before.w[i] = team_.previous(part.w[i], first == 0 ? 0u : carried_[i]);
        carried_[i] = team_.last(part.w[i]);
      }
      team_.run([&](uint32_t lane) {
        const uint32_t slot = first + lane, block = slot - front_;
        if (slot < front_ || block >= blocks_) return;
        const CipherBlock now = get(part, lane);
        uint8_t* const to = data_ - skip + block * 16;
        const uint32_t rest = skip + left(block);
        const CipherBlock out = skip == 0 ? now : bytes_at(get(before, lane), now, 16 - skip);
        store_part(to, out, block == 0 ? skip : 0, rest < 16 ? rest : 16);
        if (block + 1 == blocks_ && rest > 16)
          store_part(to + 16, bytes_at(now, CipherBlock{}, 16 - skip), 0, rest - 16);
      });
      first += Team::size();
    }
  }

  /// The ICV, in lane 0 of `mask_`.
  HEADRACE_SHADER void finish() {
    team_.run([&](uint32_t lane) {
      if (lane >= slots()) return;
      const uint32_t behind = (slots() - 1 - lane) % Team::size();
      set(sums_, lane, words(ghash_multiply(element(get(sums_, lane)), power(behind + 1))));
    });
    GHashElement sum;
    for (uint32_t i = 0; i < 4; ++i) sum.w[i] = team_.parity(sums_.w[i]);
    team_.run([&](uint32_t lane) { set(mask_, lane, get(mask_, lane) ^ ghash_block(sum)); });
  }

  const Team& team_;
  const BestAESTable table_{};
  const RoundKeys round_keys_;
  const ESPKeys& keys_;
  uint8_t* const esp_;
  uint8_t* const data_;
  const uint32_t length_;  // of the ciphertext, bytes
  const uint32_t blocks_;
  const uint32_t front_;  // slots in front of the first block
  const uint32_t sequence_high_;
  const CipherBlock counter_;  // without its last word
  GHashElement power_{};       // by which lanes multiply
  Blocks sums_;                // of the hash, as GHashElement
  Blocks mask_;                // of the ICV, as CipherBlock
  uint32_t carried_[4] = {};
};

#if !defined(__CUDA_ARCH__)
inline CipherBlock cbc_block(const uint8_t* at) { return load_block(at, 16); }
inline void store_cbc_block(uint8_t* at, const CipherBlock& block) { __builtin_memcpy(at, block.w, 16); }

inline void cbc_encrypt(const ESPKeys& keys, uint8_t* esp, uint32_t length) {
  const RoundKeys round_keys(keys.round_keys, keys.rounds);
  CipherBlock last[1] = {cbc_block(esp + ESPKeys::kHeader)};
  for (uint8_t* at = esp + keys.front(); at < esp + length - keys.icv_length; at += 16) {
    last[0] = last[0] ^ cbc_block(at);
    aes_encrypt(ConstantAESTable(), round_keys, last);
    store_cbc_block(at, last[0]);
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
template <typename Team>
HEADRACE_SHADER_CALL void esp_encrypt(const Team& team, const ESPKeys& keys, uint8_t* esp, uint32_t length,
                                      uint32_t sequence_high) {
  if (!keys.fits(length)) return;
  if (keys.gcm() || keys.counter_mode()) {
    detail::CounterPacket<Team>(team, keys, esp, length, sequence_high).encrypt();
    return;
  }
#if !defined(__CUDA_ARCH__)
  if (keys.aes_cbc()) detail::cbc_encrypt(keys, esp, length);
#endif
}

/// Decrypts. With GCM the ICV is verified first, in constant time; if it is wrong, the packet stays as it is and all
/// lanes get false. With other ciphers, call esp_verify() before; false if the packet does not fit the
/// association, or its cipher cannot be had here.
template <typename Team>
HEADRACE_SHADER_CALL bool esp_decrypt(const Team& team, const ESPKeys& keys, uint8_t* esp, uint32_t length,
                                      uint32_t sequence_high) {
  if (!keys.fits(length)) return false;
  if (keys.gcm()) return detail::CounterPacket<Team>(team, keys, esp, length, sequence_high).decrypt();
  if (keys.counter_mode()) {
    detail::CounterPacket<Team>(team, keys, esp, length, sequence_high).encrypt();
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
