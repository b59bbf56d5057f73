#pragma once
/// \file
/// A bounded first-in first-out ring for one producer and one consumer.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace headrace {

/// Moves values in bulk from one thread to another without locked instructions (L. Lamport, "Specifying Concurrent Program
/// Modules", TOPLAS 1983). Each end remembers how far it has seen the other, and looks again only when that does not
/// suffice, so that the ends seldom share a cache line.
template <typename T>
class SpscRing {
 public:
  /// \param capacity most values held at a time
  explicit SpscRing(uint32_t capacity) : capacity_(capacity) {
    uint32_t n = 2;
    while (n < capacity) n *= 2;
    mask_ = n - 1;
    values_.reset(new T[n]);
  }

  uint32_t capacity() const { return capacity_; }
  /// Any thread may ask.
  uint32_t size() const {
    const uint32_t first = consumer_.next.load(std::memory_order_acquire);
    return producer_.next.load(std::memory_order_acquire) - first;
  }

  /// Appends up to `n` values, all that fit; returns how many. For the producer.
  uint32_t enqueue(const T* values, uint32_t n) {
    const uint32_t next = producer_.next.load(std::memory_order_relaxed);
    if (capacity_ - (next - producer_.seen) < n) producer_.seen = consumer_.next.load(std::memory_order_acquire);
    const uint32_t take = std::min(n, capacity_ - (next - producer_.seen));
    for (uint32_t i = 0; i < take; ++i) values_[(next + i) & mask_] = values[i];
    if (take > 0) producer_.next.store(next + take, std::memory_order_release);
    return take;
  }

  /// Removes up to `n` values; returns how many. For the consumer.
  uint32_t dequeue(T* values, uint32_t n) {
    const uint32_t next = consumer_.next.load(std::memory_order_relaxed);
    if (consumer_.seen - next < n) consumer_.seen = producer_.next.load(std::memory_order_acquire);
    const uint32_t take = std::min(n, consumer_.seen - next);
    for (uint32_t i = 0; i < take; ++i) values[i] = values_[(next + i) & mask_];
    if (take > 0) consumer_.next.store(next + take, std::memory_order_release);
    return take;
  }

 private:
  struct alignas(128) End {
    std::atomic<uint32_t> next{0};
    uint32_t seen = 0;  // `next` of the other end, as this one knows it
  };

  uint32_t capacity_;
  uint32_t mask_;
  std::unique_ptr<T[]> values_;
  End producer_;
  End consumer_;
};

}  // namespace headrace
