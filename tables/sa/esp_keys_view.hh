#pragma once
/// \file
/// The keys of an ESP association (RFC 4303), as both processors use them. Includes no standard header.

#include "headrace/shader_types.hh"

namespace headrace {

/// How ESP encrypts: not at all (RFC 2410), in counter mode (RFC 3686), with GCM (RFC 4106), in CBC mode (RFC 3602), with
/// Triple-DES in CBC mode (RFC 2451).
enum class Cipher : uint8_t { kNull, kAES128CTR, kAES256CTR, kAES128GCM, kAES256GCM, kAES128CBC, kAES256CBC, k3DESCBC };
inline constexpr uint32_t kCiphers = 8;

/// How ESP authenticates: HMAC-SHA1-96 (RFC 2404), HMAC-SHA-256-128 (RFC 4868). GCM does so itself, with kNone.
enum class Integrity : uint8_t { kNone, kHMACSHA1, kHMACSHA256 };

/// The expanded keys of an association. With all bytes 0 there is none. make_keys() fills it in, wipe() erases it.
///
/// An ESP packet: SPI (4 bytes), sequence number (4), IV, ciphertext, ICV.
struct alignas(16) ESPKeys {
  static constexpr uint32_t kHeader = 8;
  static constexpr uint32_t kLongestICV = 16;
  static constexpr uint32_t kLongest = 0xffff;  ///< bytes of a packet
  static constexpr uint32_t kPowers = 32;
  static constexpr uint8_t kExtended = 1;

  Cipher cipher;
  Integrity integrity;
  uint8_t rounds;      ///< of AES: 10, 14, or 0
  uint8_t iv_length;   ///< bytes: 8 in counter modes, the block's in CBC mode, or 0
  uint8_t icv_length;  ///< bytes: 12 or 16
  uint8_t block;       ///< the ciphertext's length is a multiple of it: 4, 8 or 16 bytes
  uint8_t flags;       ///< kExtended: the ICV covers sequence numbers of 64 bits
  uint8_t unused[5];
  uint32_t salt;                ///< of counter modes: the last four bytes of the key material, as in memory
  uint32_t inner[8];            ///< the hash's state behind the inner block of HMAC (RFC 2104)
  uint32_t outer[8];            ///< the same of the outer block
  uint32_t round_keys[60];      ///< of AES encryption, as in memory
  uint32_t powers[kPowers][4];  ///< of GCM: H, H^2, ... as ghash_view.hh has them

  HEADRACE_SHADER bool exists() const { return cipher != Cipher::kNull || integrity != Integrity::kNone; }
  HEADRACE_SHADER bool gcm() const { return cipher == Cipher::kAES128GCM || cipher == Cipher::kAES256GCM; }
  HEADRACE_SHADER bool counter_mode() const { return cipher == Cipher::kAES128CTR || cipher == Cipher::kAES256CTR; }
  HEADRACE_SHADER bool aes_cbc() const { return cipher == Cipher::kAES128CBC || cipher == Cipher::kAES256CBC; }
  /// CBC mode: on the host only.
  HEADRACE_SHADER bool cbc() const { return aes_cbc() || cipher == Cipher::k3DESCBC; }
  HEADRACE_SHADER bool extended() const { return (flags & kExtended) != 0; }
  /// Bytes in front of the ciphertext.
  HEADRACE_SHADER uint32_t front() const { return kHeader + iv_length; }
  /// Bytes that are not ciphertext.
  HEADRACE_SHADER uint32_t overhead() const { return front() + icv_length; }
  /// True if a packet of `length` bytes can be one of this association's. Those for which it is false are left as they
  /// are, and none of them is genuine.
  HEADRACE_SHADER bool fits(uint32_t length) const {
    if (!exists() || length < overhead() || length > kLongest) return false;
    return !cbc() || ((length - overhead()) & (block - 1u)) == 0;
  }
};
static_assert(sizeof(ESPKeys) == 832);

}  // namespace headrace
