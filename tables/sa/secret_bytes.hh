#pragma once
/// \file
/// Keys in memory.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace headrace {

/// Up to 64 bytes of a key. They lie in the object itself, and are overwritten when it goes. There is no way to print
/// them.
class SecretBytes {
 public:
  static constexpr size_t kMost = 64;

  SecretBytes() = default;
  /// Bytes beyond kMost are left out.
  explicit SecretBytes(std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes) (void)append(byte);
  }
  SecretBytes(const SecretBytes&) = default;
  SecretBytes& operator=(const SecretBytes&) = default;
  ~SecretBytes() { wipe(); }

  /// False when there is no more room.
  bool append(uint8_t byte) {
    if (size_ == kMost) return false;
    bytes_[size_++] = byte;
    return true;
  }
  void wipe() {
    explicit_bzero(bytes_.data(), bytes_.size());
    size_ = 0;
  }

  size_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<uint8_t, kMost> bytes_{};
  size_t size_ = 0;
};

}  // namespace headrace
