#pragma once
/// \file
/// A bounded first-in first-out ring for many producers and consumers.

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "headrace/worker.hh"

namespace headrace {

/// Moves values in bulk: a thread reserves a range by compare-and-swap, copies, and publishes it. At each end one thread
/// does so at a time, and the others wait before they reserve (the head/tail synchronization of DPDK's rte_ring). If
/// they waited behind that, as in the FreeBSD buffer ring, they would have to publish in the order of reservation, and
/// with more threads than CPUs each handover would wait for one particular thread to get a CPU. The capacity is rounded
/// up to a power of two.
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
    uint32_t head, take;
    do {
      head = wait_for_turn(producer_);
      const uint32_t free = limit_ - (head - consumer_.tail.load(std::memory_order_acquire));
      take = n < free ? n : free;
      if (take == 0) return 0;
    } while (
        !producer_.head.compare_exchange_weak(head, head + take, std::memory_order_acq_rel, std::memory_order_relaxed));
    for (uint32_t i = 0; i < take; ++i) cells_[(head + i) & mask_] = values[i];
    producer_.tail.store(head + take, std::memory_order_release);
    return take;
  }

  /// Removes up to `n` values; returns how many.
  uint32_t dequeue(T* values, uint32_t n) {
    uint32_t head, take;
    do {
      head = wait_for_turn(consumer_);
      const uint32_t there = producer_.tail.load(std::memory_order_acquire) - head;
      take = n < there ? n : there;
      if (take == 0) return 0;
    } while (
        !consumer_.head.compare_exchange_weak(head, head + take, std::memory_order_acq_rel, std::memory_order_relaxed));
    for (uint32_t i = 0; i < take; ++i) values[i] = cells_[(head + i) & mask_];
    consumer_.tail.store(head + take, std::memory_order_release);
    return take;
  }

 private:
  struct alignas(64) Ends {
    std::atomic<uint32_t> head{0};
    std::atomic<uint32_t> tail{0};
  };
  /// Returns the head, when nothing is reserved that is not published. As long as the head is that value, this is so.
  static uint32_t wait_for_turn(const Ends& ends) {
    // A thread that has reserved may have lost its CPU: it gets it back sooner if the others sleep.
    constexpr unsigned kSpins = 1000, kSleepUs = 100;
    for (unsigned n = 0;; ++n) {
      const uint32_t head = ends.head.load(std::memory_order_relaxed);
      if (ends.tail.load(std::memory_order_acquire) == head) return head;
      if (n < kSpins)
        __builtin_ia32_pause();
      else
        usleep(kSleepUs);
    }
  }

  uint32_t mask_;
  uint32_t limit_;
  std::unique_ptr<T[]> cells_;
  Ends producer_;
  Ends consumer_;
};

}  // namespace headrace
