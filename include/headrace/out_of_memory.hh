#pragma once
/// \file
/// An allocation that failed, with its size.

#include <cstddef>
#include <cstdio>
#include <new>

namespace headrace {

class OutOfMemory final : public std::bad_alloc {
 public:
  /// \param purpose "packet buffers"
  OutOfMemory(const char* purpose, size_t bytes) noexcept {
    std::snprintf(text_, sizeof text_, "%zu MB wanted for %s", (bytes + 999999) / 1000000, purpose);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[96];
};

}  // namespace headrace
