#include "tables/sa/association_config.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tables/sa/replay_window.hh"

namespace headrace {

namespace {

constexpr CipherTraits kCipherTraits[] = {
    {Cipher::kNull, "null", 0, 0, false},
    {Cipher::kAES128CTR, "aes-128-ctr", 16, 4, false},
    {Cipher::kAES256CTR, "aes-256-ctr", 32, 4, false},
    {Cipher::kAES128GCM, "aes-128-gcm", 16, 4, true},
    {Cipher::kAES256GCM, "aes-256-gcm", 32, 4, true},
    {Cipher::kAES128CBC, "aes-128-cbc", 16, 0, false},
    {Cipher::kAES256CBC, "aes-256-cbc", 32, 0, false},
    {Cipher::k3DESCBC, "3des-cbc", 24, 0, false},
};

static_assert(std::size(kCipherTraits) == kCiphers);

constexpr IntegrityTraits kIntegrityTraits[] = {
    {Integrity::kNone, "null", 0},
    {Integrity::kHMACSHA1, "sha1-hmac", 20},
    {Integrity::kHMACSHA256, "sha256-hmac", 32},
};

template <typename Table>
auto find_traits(const Table& table, std::string_view name) -> decltype(&table[0]) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const auto& t) { return t.name == name; });
  return found == std::end(table) ? nullptr : found;
}

const char* mode_name(IPsecMode mode) {
  switch (mode) {
    case IPsecMode::kTunnel4:
      return "ipv4-tunnel";
    case IPsecMode::kTunnel6:
      return "ipv6-tunnel";
    case IPsecMode::kTransport:
      break;
  }
  return "transport";
}

}  // namespace

const CipherTraits& traits_of(Cipher cipher) { return kCipherTraits[static_cast<size_t>(cipher)]; }
const CipherTraits* find_cipher(std::string_view name) { return find_traits(kCipherTraits, name); }
const IntegrityTraits& traits_of(Integrity integrity) { return kIntegrityTraits[static_cast<size_t>(integrity)]; }
const IntegrityTraits* find_integrity(std::string_view name) { return find_traits(kIntegrityTraits, name); }

std::string key_sizes(const CipherTraits& traits) {
  if (traits.salt_bytes == 0) return fmt::format("{} bytes", traits.key_bytes);
  return fmt::format("{} bytes ({} of the key, then {} of the salt)", traits.key_bytes + traits.salt_bytes,
                     traits.key_bytes, traits.salt_bytes);
}

std::span<const uint8_t> AssociationConfig::cipher_key() const {
  return key.bytes().first(std::min<size_t>(key.size(), traits_of(cipher).key_bytes));
}

std::span<const uint8_t> AssociationConfig::salt() const { return key.bytes().subspan(cipher_key().size()); }

KeyFingerprint AssociationConfig::cipher_fingerprint() const { return fingerprint_of(cipher_key()); }

KeyFingerprint AssociationConfig::fingerprint() const {
  // Lengths follow from the algorithms, so different keys never read as the same bytes.
  std::array<uint8_t, 2 + 2 * SecretBytes::kMost> all;
  all[0] = static_cast<uint8_t>(cipher);
  all[1] = static_cast<uint8_t>(integrity);
  auto end = std::copy(key.bytes().begin(), key.bytes().end(), all.begin() + 2);
  end = std::copy(integrity_key.bytes().begin(), integrity_key.bytes().end(), end);
  const KeyFingerprint fingerprint = fingerprint_of({all.begin(), end});
  explicit_bzero(all.data(), all.size());
  return fingerprint;
}

std::string AssociationConfig::unparse() const {
  std::string text = fmt::format("sa {} {}", to_string(direction), spi);
  if (traits_of(cipher).authenticates) {
    text += fmt::format(" aead_algo {}", traits_of(cipher).name);
  } else {
    text += fmt::format(" cipher_algo {} auth_algo {}", traits_of(cipher).name, traits_of(integrity).name);
  }
  if (reqid != 0) text += fmt::format(" reqid {}", reqid);
  text += fmt::format(" mode {}", mode_name(mode));
  if (mode != IPsecMode::kTransport)
    text += fmt::format(" src {} dst {}", unparse_either(source), unparse_either(destination));
  if (extended_sequence) text += fmt::format(" esn {}", first_sequence);
  if (direction == IPsecDirection::kIn) text += fmt::format(" replay-window {}", replay_window);
  if (udp_encapsulation)
    text +=
        fmt::format(" udp-encap encap-port {}:{}", udp_encapsulation->source_port, udp_encapsulation->destination_port);
  if (outer_dscp) text += fmt::format(" dscp {}", *outer_dscp);
  if (outer_df != OuterDF::kCopy) text += outer_df == OuterDF::kSet ? " df set" : " df clear";
  if (most_packets != 0) text += fmt::format(" most-packets {}", most_packets);
  if (most_bytes != 0) text += fmt::format(" most-bytes {}", most_bytes);
  return text;
}

std::vector<AssociationProblem> check_association(const AssociationConfig& config) {
  std::vector<AssociationProblem> problems;
  const auto error = [&](std::string word, std::string text) {
    problems.push_back({std::move(word), std::move(text)});
  };
  const auto warning = [&](std::string word, std::string text) {
    problems.push_back({std::move(word), std::move(text), false});
  };

  const std::string spi = fmt::format("{}", config.spi);
  if (config.spi == 0) error(spi, "SPI 0 never goes over the wire (RFC 4303, section 2.1)");
  if (config.spi > 0 && config.spi < 256)
    warning(spi, "SPIs up to 255 are reserved (RFC 4303, section 2.1); peers that negotiate keys never use them");

  const CipherTraits& cipher = traits_of(config.cipher);
  const IntegrityTraits& integrity = traits_of(config.integrity);
  if (config.key.size() != size_t{cipher.key_bytes} + cipher.salt_bytes)
    error(cipher.authenticates ? "aead_key" : "cipher_key",
          fmt::format("{} needs {}, found {}", cipher.name, key_sizes(cipher), config.key.size()));
  if (config.integrity_key.size() != integrity.key_bytes)
    error("auth_key",
          fmt::format("{} needs {} bytes, found {}", integrity.name, integrity.key_bytes, config.integrity_key.size()));
  if (cipher.authenticates && config.integrity != Integrity::kNone)
    error("auth_algo", fmt::format("{} authenticates by itself", cipher.name));
  if (!config.authenticates()) {
    if (cipher.salt_bytes != 0) {
      error("auth_algo", fmt::format("{} must not be used without authentication (RFC 3686, section 7)", cipher.name));
    } else {
      warning("auth_algo", "nothing authenticates the packets, and replays are not seen: anybody can forge them");
    }
    if (config.extended_sequence) error("esn", "needs authentication, which covers the half that is not sent");
  }

  if (config.first_sequence == 0 || config.first_sequence > config.last_sequence())
    error("esn", fmt::format("the first number is 1 to {}, found {}", config.last_sequence(), config.first_sequence));
  if (config.replay_window < ReplayWindow::kSmallest || config.replay_window > ReplayWindow::kLargest)
    error("replay-window", fmt::format("expected {} to {} packets, found {}", ReplayWindow::kSmallest,
                                       ReplayWindow::kLargest, config.replay_window));

  for (const auto& [word, address] : {std::pair{"src", &config.source}, std::pair{"dst", &config.destination}}) {
    switch (config.mode) {
      case IPsecMode::kTunnel4:
        if (!address->is_v4_mapped() || !address->embedded_v4())
          error(word, fmt::format("an ipv4-tunnel needs an IPv4 address, found {}", *address));
        break;
      case IPsecMode::kTunnel6:
        if (address->is_v4_mapped() || !*address)
          error(word, fmt::format("an ipv6-tunnel needs an IPv6 address, found {}", *address));
        break;
      case IPsecMode::kTransport:
        if (*address) error(word, "an association in transport mode has no addresses of its own");
        break;
    }
  }
  if (config.udp_encapsulation &&
      (config.udp_encapsulation->source_port == 0 || config.udp_encapsulation->destination_port == 0))
    error("encap-port", "port 0 cannot be used");
  if (config.outer_dscp && *config.outer_dscp > 63)
    error("dscp", fmt::format("expected 0 to 63, found {}", *config.outer_dscp));
  return problems;
}

}  // namespace headrace
