#pragma once
/// \file
/// Room on the stack for what a batch needs.

#include <cstddef>
#include <type_traits>

namespace headrace {

/// Room for N values, each of which is written before it is read. An array of a class with default values would be
/// filled with them first, all N for a batch of one packet.
template <typename T, size_t N>
class Scratch {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* data() { return reinterpret_cast<T*>(bytes_); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_); }

 private:
  alignas(T) std::byte bytes_[N * sizeof(T)];
};

}  // namespace headrace
