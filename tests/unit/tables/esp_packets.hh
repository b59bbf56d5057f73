#pragma once
/// \file
/// ESP packets and associations for tests of tables/sa.

#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tables/sa/esp_crypto_view.hh"
#include "tables/sa/esp_key_material.hh"
#include "tables/sa/esp_library.hh"

namespace headrace::testing {

using ByteVector = std::vector<uint8_t>;

inline ByteVector from_hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; };
  ByteVector bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
  return bytes;
}
inline std::string to_hex(const uint8_t* bytes, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}
inline std::string to_hex(const ByteVector& bytes) { return to_hex(bytes.data(), bytes.size()); }

inline ByteVector random_bytes(std::mt19937& random, size_t n) {
  ByteVector bytes(n);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

/// An association with its keys.
struct TestAssociation {
  ESPKeys keys;
  ESPHostKeys host;

  TestAssociation(Cipher cipher, Integrity integrity, const ByteVector& cipher_key, const ByteVector& integrity_key,
                  bool extended = false) {
    Errors errors;
    if (!make_keys({cipher, integrity, cipher_key, integrity_key, extended}, keys, host, errors))
      throw std::invalid_argument(errors.str());
  }
  TestAssociation(Cipher cipher, Integrity integrity, std::mt19937& random, bool extended = false)
      : TestAssociation(cipher, integrity, random_bytes(random, key_length(cipher)),
                        random_bytes(random, key_length(integrity)), extended) {}
};

/// Bytes that lie at a chosen distance (0 to 15) behind an address that 16 divides, with others around them that must
/// not change. A sanitizer sees an access to what comes `behind` or more bytes after them.
class PlacedBytes {
 public:
  PlacedBytes(const ByteVector& bytes, uint32_t skip, uint32_t behind = 0)
      : skip_(skip), size_(bytes.size()), behind_(behind), memory_(make(skip + size_ + behind)) {
    std::memset(memory_.get(), kAround, skip + size_ + behind);
    if (size_ != 0) std::memcpy(data(), bytes.data(), size_);
  }
  uint8_t* data() { return memory_.get() + skip_; }
  ByteVector bytes() { return ByteVector(data(), data() + size_); }
  bool intact() const {
    for (size_t i = 0; i < skip_ + size_ + behind_; ++i) {
      if ((i < skip_ || i >= skip_ + size_) && memory_[i] != kAround) return false;
    }
    return true;
  }

 private:
  static constexpr uint8_t kAround = 0xa5;
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{16}); }
  };
  static std::unique_ptr<uint8_t[], Free> make(size_t n) {
    return std::unique_ptr<uint8_t[], Free>(static_cast<uint8_t*>(::operator new[](n, std::align_val_t{16})));
  }
  uint32_t skip_;
  size_t size_;
  uint32_t behind_;
  std::unique_ptr<uint8_t[], Free> memory_;
};

/// The bodies of ESP's cryptography: a team of 1, of 32, of 5 for the seams, and the library.
enum class Body { kOne, kTeam, kFive, kLibrary };
inline constexpr Body kBodies[] = {Body::kOne, Body::kTeam, Body::kFive, Body::kLibrary};

/// Those that have a cipher.
inline std::span<const Body> bodies_of(Cipher cipher) {
  return std::span(kBodies).last(cipher == Cipher::k3DESCBC ? 1 : std::size(kBodies));
}

inline ESPLibrary& test_library() {
  static ESPLibrary library;
  return library;
}

/// Encrypts and authenticates a packet at a place.
inline ByteVector seal(Body body, const TestAssociation& a, const ByteVector& packet, uint32_t high, uint32_t skip) {
  PlacedBytes placed(packet, skip, body == Body::kLibrary ? 64 : 0);
  const auto length = static_cast<uint32_t>(packet.size());
  if (body == Body::kLibrary) {
    ESPJob job = {placed.data(), length, high, &a.keys, &a.host};
    test_library().seal(&job, 1);
  } else {
    if (body == Body::kOne) esp_encrypt(HostTeam<1>(), a.keys, placed.data(), length, high);
    if (body == Body::kFive) esp_encrypt(HostTeam<5>(), a.keys, placed.data(), length, high);
    if (body == Body::kTeam) esp_encrypt(HostTeam<32>(), a.keys, placed.data(), length, high);
    esp_authenticate(a.keys, placed.data(), length, high);
  }
  return placed.intact() ? placed.bytes() : ByteVector();
}

/// Verifies and decrypts a packet, and says whether it was good.
inline bool open(Body body, const TestAssociation& a, ByteVector& packet, uint32_t high, uint32_t skip) {
  PlacedBytes placed(packet, skip, body == Body::kLibrary ? 64 : 0);
  const auto length = static_cast<uint32_t>(packet.size());
  bool good = false;
  if (body == Body::kLibrary) {
    ESPJob job = {placed.data(), length, high, &a.keys, &a.host};
    test_library().open(&job, 1);
    good = job.good;
  } else if (esp_verify(a.keys, placed.data(), length, high)) {
    if (body == Body::kOne) good = esp_decrypt(HostTeam<1>(), a.keys, placed.data(), length, high);
    if (body == Body::kFive) good = esp_decrypt(HostTeam<5>(), a.keys, placed.data(), length, high);
    if (body == Body::kTeam) good = esp_decrypt(HostTeam<32>(), a.keys, placed.data(), length, high);
  }
  packet = placed.intact() ? placed.bytes() : ByteVector();
  return good;
}

struct Algorithms {
  Cipher cipher;
  Integrity integrity;
};
inline constexpr Algorithms kAllAlgorithms[] = {
    {Cipher::kNull, Integrity::kHMACSHA1},      {Cipher::kNull, Integrity::kHMACSHA256},
    {Cipher::kAES128CTR, Integrity::kHMACSHA1}, {Cipher::kAES128CTR, Integrity::kHMACSHA256},
    {Cipher::kAES256CTR, Integrity::kHMACSHA1}, {Cipher::kAES256CTR, Integrity::kHMACSHA256},
    {Cipher::kAES128GCM, Integrity::kNone},     {Cipher::kAES256GCM, Integrity::kNone},
    {Cipher::kAES128CBC, Integrity::kHMACSHA1}, {Cipher::kAES128CBC, Integrity::kHMACSHA256},
    {Cipher::kAES256CBC, Integrity::kHMACSHA1}, {Cipher::kAES256CBC, Integrity::kHMACSHA256},
    {Cipher::k3DESCBC, Integrity::kHMACSHA1},   {Cipher::k3DESCBC, Integrity::kHMACSHA256},
};

}  // namespace headrace::testing
