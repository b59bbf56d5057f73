#pragma once
/// \file
/// Large zeroed arrays on huge pages.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <headrace/out_of_memory.hh>
#include <type_traits>
#include <utility>

namespace headrace {

/// An array of zeros in memory of its own, aligned to 2 MiB and, where the kernel agrees, on huge pages: random access
/// to tens of megabytes is bound by TLB misses otherwise. A page costs memory only once it has been written.
template <typename T>
class HugeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HugeArray() = default;
  /// Throws OutOfMemory when there is no address space.
  explicit HugeArray(size_t size) : size_(size) {
    constexpr size_t kPage = size_t{2} << 20;
    const size_t bytes = (size * sizeof(T) + kPage - 1) / kPage * kPage;
    if (bytes == 0) return;
    mapped_ = bytes + kPage;
    map_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map_ == MAP_FAILED) {
      map_ = nullptr;
      throw OutOfMemory("a table", mapped_);
    }
    const uintptr_t aligned = (reinterpret_cast<uintptr_t>(map_) + kPage - 1) / kPage * kPage;
    data_ = reinterpret_cast<T*>(aligned);
    madvise(data_, bytes, MADV_HUGEPAGE);  // only advice: small pages work too
  }
  ~HugeArray() {
    if (map_ != nullptr) munmap(map_, mapped_);
  }
  HugeArray(HugeArray&& other) noexcept { swap(other); }
  HugeArray& operator=(HugeArray&& other) noexcept {
    HugeArray(std::move(other)).swap(*this);
    return *this;
  }

  void swap(HugeArray& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  void* map_ = nullptr;
  size_t mapped_ = 0;
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace headrace
