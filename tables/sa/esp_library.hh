#pragma once
/// \file
/// ESP's cryptography over batches by intel-ipsec-mb, with the widest instructions of the processor. Host only.

#include <cstdint>
#include <memory>

#include "tables/sa/esp_key_material.hh"

namespace headrace {

/// A packet, as the functions of esp_crypto_view.hh take it.
struct ESPJob {
  uint8_t* esp = nullptr;
  uint32_t length = 0;         ///< bytes from the ESP header on, with the ICV
  uint32_t sequence_high = 0;  ///< upper half of a sequence number of 64 bits
  const ESPKeys* keys = nullptr;
  const ESPHostKeys* host = nullptr;
  bool good = false;  ///< a result: the packet fits its association and, where it was verified, is genuine
};

/// For one thread at a time. Allocates nothing after its construction. Results are bit for bit those of
/// esp_crypto_view.hh, which lacks only Triple-DES; a packet that is not good is as it was before. The packets of a call do not overlap; they may
/// belong to different associations.
class ESPLibrary {
 public:
  static constexpr uint32_t kMostJobs = 256;

  /// Throws std::bad_alloc.
  ESPLibrary();
  ~ESPLibrary();
  ESPLibrary(const ESPLibrary&) = delete;
  ESPLibrary& operator=(const ESPLibrary&) = delete;

  /// The instructions in use: "AVX512" and so on.
  const char* instructions() const;

  /// esp_encrypt() of `n` packets, up to kMostJobs.
  void encrypt(ESPJob* jobs, uint32_t n);
  /// Encrypts a block of 8 bytes with Triple-DES.
  void encrypt_block_des3(const ESPHostKeys& host, uint8_t* block);
  /// esp_decrypt().
  void decrypt(ESPJob* jobs, uint32_t n);
  /// esp_authenticate().
  void authenticate(ESPJob* jobs, uint32_t n);
  /// esp_verify().
  void verify(ESPJob* jobs, uint32_t n);
  /// Encrypts and authenticates.
  void seal(ESPJob* jobs, uint32_t n);
  /// Verifies and decrypts what is genuine.
  void open(ESPJob* jobs, uint32_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
