#pragma once
/// \file
/// A bounded first-in first-out ring for many producers and consumers.

#include <atomic>
#include <cstdint>
#include <memory>

#include "headrace/worker.hh"

namespace headrace {

/// Moves values in bulk without locks: a thread reserves a range by compare-and-swap, copies, and publishes in the
/// order of reservation (the scheme of the FreeBSD buffer ring and of DPDK's rte_ring). The capacity is rounded up to a
/// power of two.
template <typename T>
class Ring {
 public:
  /// \param limit most values held at a time, if less than the capacity
  explicit Ring(uint32_t capacity, uint32_t limit = UINT32_MAX) {
    uint32_t n = 2;
    while (n < capacity) n *= 2;
    mask_ = n - 1;
    limit_ = limit < n ? limit : n;
    cells_.reset(new T[n]);
  }

  uint32_t capacity() const { return limit_; }
  uint32_t size() const {
    const uint32_t tail = consumer_.tail.load(std::memory_order_acquire);
    return producer_.tail.load(std::memory_order_acquire) - tail;
  }

  /// Appends up to `n` values, all that fit; returns how many.
  uint32_t enqueue(const T* values, uint32_t n) {
    uint32_t head = producer_.head.load(std::memory_order_relaxed);
    uint32_t take;
    do {
      const uint32_t free = limit_ - (head - consumer_.tail.load(std::memory_order_acquire));
      take = n < free ? n : free;
      if (take == 0) return 0;
    } while (
        !producer_.head.compare_exchange_weak(head, head + take, std::memory_order_acq_rel, std::memory_order_relaxed));
    for (uint32_t i = 0; i < take; ++i) cells_[(head + i) & mask_] = values[i];
    publish(producer_.tail, head, take);
    return take;
  }

  /// Removes up to `n` values; returns how many.
  uint32_t dequeue(T* values, uint32_t n) {
    uint32_t head = consumer_.head.load(std::memory_order_relaxed);
    uint32_t take;
    do {
      const uint32_t there = producer_.tail.load(std::memory_order_acquire) - head;
      take = n < there ? n : there;
      if (take == 0) return 0;
    } while (
        !consumer_.head.compare_exchange_weak(head, head + take, std::memory_order_acq_rel, std::memory_order_relaxed));
    for (uint32_t i = 0; i < take; ++i) values[i] = cells_[(head + i) & mask_];
    publish(consumer_.tail, head, take);
    return take;
  }

 private:
  struct alignas(64) Ends {
    std::atomic<uint32_t> head{0};
    std::atomic<uint32_t> tail{0};
  };
  static void publish(std::atomic<uint32_t>& tail, uint32_t head, uint32_t n) {
    while (tail.load(std::memory_order_relaxed) != head) __builtin_ia32_pause();
    tail.store(head + n, std::memory_order_release);
  }

  uint32_t mask_;
  uint32_t limit_;
  std::unique_ptr<T[]> cells_;
  Ends producer_;
  Ends consumer_;
};

}  // namespace headrace
