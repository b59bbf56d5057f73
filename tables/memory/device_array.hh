#pragma once
/// \file
/// Arrays that are made once and may be copied to devices.

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "headrace/mirror.hh"
#include "tables/memory/allocation_failures.hh"

namespace headrace {

/// An array of zeros to be filled before it is mirrored for the first time; a device then copies it once, and later only
/// what changed() names. Large ones lie on huge pages where the kernel agrees.
template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t size) : size_(size) {
    if (size == 0) return;
    if (AllocationFailures::next()) [[unlikely]]
      throw std::bad_alloc();
    constexpr size_t kHuge = size_t{2} << 20;
    const size_t alignment = bytes() >= kHuge ? kHuge : 64;
    const size_t whole = (bytes() + alignment - 1) / alignment * alignment;
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, whole)));
    if (!data_) throw std::bad_alloc();
    if (alignment == kHuge) madvise(data_.get(), whole, MADV_HUGEPAGE);  // only advice: small pages work too
    std::memset(static_cast<void*>(data_.get()), 0, whole);
    changes_ = std::make_unique<ChangedPages>(bytes());
    changes_->mark(0, bytes());
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }

  /// Elements have changed, or are about to, since the array was mirrored. Not while it is.
  void changed(size_t first, size_t count) { changes_->mark(first * sizeof(T), (first + count) * sizeof(T)); }

  /// The address of a device's copy.
  const T* mirror(Mirror& mirror) const { return mirror.array(data_.get(), size_, changes_.get()); }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  std::unique_ptr<T[], Free> data_;
  std::unique_ptr<ChangedPages> changes_;
  size_t size_ = 0;
};

}  // namespace headrace
