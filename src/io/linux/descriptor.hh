#pragma once
/// \file
/// Things of the operating system that must be given back: file descriptors and mapped memory.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace headrace::io {

/// Owns a file descriptor; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Owns a mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(size_t bytes, int flags, int fd = -1, int64_t offset = 0) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
    base_ = at == MAP_FAILED ? nullptr : static_cast<uint8_t*>(at);
  }
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (base_) munmap(base_, bytes_);
  }
  uint8_t* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  /// False when the system had no memory; errno says why.
  explicit operator bool() const { return base_ != nullptr; }

 private:
  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace headrace::io
