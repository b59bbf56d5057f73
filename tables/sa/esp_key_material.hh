#pragma once
/// \file
/// From the bytes of keys to what the algorithms of an ESP association use. Host only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/error.hh"
#include "tables/sa/esp_keys_view.hh"

namespace headrace {

/// What both ends of an association have agreed on (RFC 4301, section 4.4.2.1).
struct ESPKeyMaterial {
  Cipher cipher = Cipher::kNull;
  Integrity integrity = Integrity::kNone;
  std::span<const uint8_t> cipher_key;  ///< of counter modes and GCM with the 4 bytes of the salt behind it
  std::span<const uint8_t> integrity_key;
  bool extended = false;  ///< sequence numbers of 64 bits
};

/// As RFCs write it: "AES-128-GCM", "NULL".
std::string_view name_of(Cipher cipher);
/// As RFCs write it: "HMAC-SHA1-96", "none".
std::string_view name_of(Integrity integrity);
/// Bytes of key material, the salt included.
uint32_t key_length(Cipher cipher);
uint32_t key_length(Integrity integrity);

/// What intel-ipsec-mb needs besides ESPKeys.
struct alignas(64) ESPHostKeys {
  union {
    std::byte gcm[1024];  ///< its gcm_key_data, for GCM
    uint64_t des[3][16];  ///< schedules of the three keys of Triple-DES
  };
  uint32_t decryption_keys[60];  ///< of all rounds, for AES in CBC mode
};

/// Expands keys. Errors: a key of another length than the algorithm's (the message names both); no integrity, unless
/// the cipher is GCM (RFC 4303, section 3.2 and RFC 3686, section 1); GCM with an integrity of its own. Then both
/// are wiped.
Status make_keys(const ESPKeyMaterial& material, ESPKeys& keys, ESPHostKeys& host, Errors& errors);

/// The states of the hash behind the two blocks that HMAC makes of a key (RFC 2104), of 5 or 8 words.
/// \param key up to 64 bytes
void hmac_states(Integrity integrity, std::span<const uint8_t> key, uint32_t* inner, uint32_t* outer);

/// Erases keys, whether or not somebody reads them afterwards.
void wipe(ESPKeys& keys);
void wipe(ESPHostKeys& host);

}  // namespace headrace
