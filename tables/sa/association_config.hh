#pragma once
/// \file
/// What an operator says about a security association.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/addresses.hh"
#include "tables/sa/esp_keys_view.hh"
#include "tables/sa/ipsec_types.hh"
#include "tables/sa/key_fingerprint.hh"
#include "tables/sa/secret_bytes.hh"

namespace headrace {

/// How a cipher is named in files, and its keys.
struct CipherTraits {
  Cipher cipher;
  const char* name;
  uint8_t key_bytes;
  uint8_t salt_bytes;  // at the end of the key material
  bool authenticates;  // and so takes no Integrity
};
const CipherTraits& traits_of(Cipher cipher);
/// "20 bytes (16 of the key, then 4 of the salt)"
std::string key_sizes(const CipherTraits& traits);
/// Those with this name, or null.
const CipherTraits* find_cipher(std::string_view name);

struct IntegrityTraits {
  Integrity integrity;
  const char* name;
  uint8_t key_bytes;
};
const IntegrityTraits& traits_of(Integrity integrity);
const IntegrityTraits* find_integrity(std::string_view name);

/// The DF bit of an outer IPv4 header (RFC 4301, section 8.1).
enum class OuterDF : uint8_t { kCopy, kSet, kClear };

/// ESP within UDP (RFC 3948), with these ports on what is sent.
struct UDPEncapsulation {
  uint16_t source_port = 4500, destination_port = 4500;
  bool operator==(const UDPEncapsulation&) const = default;
};

/// A security association (RFC 4301, section 4.4.2.1).
struct AssociationConfig {
  IPsecDirection direction = IPsecDirection::kOut;
  uint32_t spi = 0;
  /// What policies name instead of the SPI, where a daemon replaces associations (XFRM's reqid); 0: they name the SPI.
  uint32_t reqid = 0;
  IPsecMode mode = IPsecMode::kTransport;
  /// The ends of a tunnel; IPv4-mapped for kTunnel4. `::` in transport mode.
  Ip6Address source, destination;

  Cipher cipher = Cipher::kNull;
  Integrity integrity = Integrity::kNone;
  /// The cipher's key material: the key, and after it the salt that RFC 4106 and the nonce that RFC 3686 put there.
  SecretBytes key;
  SecretBytes integrity_key;

  /// Sequence numbers have 64 bits (RFC 4303, section 2.2.1).
  bool extended_sequence = false;
  /// The number of the first packet that is sent or expected.
  uint64_t first_sequence = 1;
  /// The anti-replay window of an inbound association, in packets.
  uint32_t replay_window = 64;

  std::optional<UDPEncapsulation> udp_encapsulation;

  /// The DSCP of outer headers; none: that of the inner header (RFC 4301, section 5.1.2).
  std::optional<uint8_t> outer_dscp;
  OuterDF outer_df = OuterDF::kCopy;

  /// After so many packets or bytes of plaintext the association stops; 0: never.
  uint64_t most_packets = 0, most_bytes = 0;

  std::span<const uint8_t> cipher_key() const;
  /// 4 bytes, or none.
  std::span<const uint8_t> salt() const;
  /// Whether its packets have an ICV. Without one there is no anti-replay service (RFC 4303, section 3.4.3).
  bool authenticates() const { return traits_of(cipher).authenticates || integrity != Integrity::kNone; }
  uint64_t last_sequence() const { return extended_sequence ? ~uint64_t{0} : 0xffffffffu; }

  /// The same for all associations that encrypt under one key, whatever the cipher is: two modes with one key and IV
  /// make the same key stream.
  KeyFingerprint cipher_fingerprint() const;
  /// The same for associations with the same algorithms and keys.
  KeyFingerprint fingerprint() const;

  /// As a line of a file of ipsec-secgw, without the keys.
  std::string unparse() const;
};

/// What is wrong with an association.
struct AssociationProblem {
  std::string word;  // of the file that says it
  std::string text;
  bool fatal = true;  // otherwise a warning
};

/// Everything that is wrong with an association taken by itself.
std::vector<AssociationProblem> check_association(const AssociationConfig& config);

}  // namespace headrace
