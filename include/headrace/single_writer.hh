#pragma once
#include <atomic>

namespace headrace {

/// A number that one thread changes while others may read it: a plain load and store, without a locked instruction.
template <typename T>
class SingleWriter {
 public:
  constexpr SingleWriter(T value = T{}) : value_(value) {}
  T get() const { return value_.load(std::memory_order_relaxed); }
  operator T() const { return get(); }
  SingleWriter& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  SingleWriter& operator+=(T by) { return *this = static_cast<T>(get() + by); }

 private:
  std::atomic<T> value_;
};

}  // namespace headrace
