#pragma once
/// \file
/// A bounded first-in first-out ring for many producers and consumers.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace headrace {

/// Moves values in bulk without locks: a thread reserves a range by compare-and-swap, copies, and marks each cell when it
/// is done (the numbered cells of D. Vyukov's bounded MPMC queue). A thread that loses its CPU in between holds up its
/// own cells only: until it returns, consumers find nothing at the first of them, and other threads never wait. The
/// capacity is rounded up to a power of two.
template <typename T>
class Ring {
 public:
  /// \param limit most values held at a time, if less than the capacity
  explicit Ring(uint32_t capacity, uint32_t limit = UINT32_MAX) {
    uint32_t n = 2;
    while (n < capacity) n *= 2;
    mask_ = n - 1;
    limit_ = limit < n ? limit : n;
    cells_.reset(new Cell[n]);
    for (uint32_t i = 0; i < n; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  uint32_t capacity() const { return limit_; }
  uint32_t size() const {
    const uint32_t first = consumer_.next.load(std::memory_order_acquire);
    return producer_.next.load(std::memory_order_acquire) - first;
  }

  /// Appends up to `n` values, all that fit; returns how many.
  uint32_t enqueue(const T* values, uint32_t n) {
    uint32_t take;
    const uint32_t first = reserve(producer_, 0, take, [&](uint32_t next) {
      const uint32_t used = next - consumer_.next.load(std::memory_order_acquire);
      return used < limit_ ? std::min(n, limit_ - used) : 0;
    });
    for (uint32_t i = 0; i < take; ++i) {
      Cell& cell = cells_[(first + i) & mask_];
      cell.value = values[i];
      cell.turn.store(first + i + 1, std::memory_order_release);
    }
    return take;
  }

  /// Removes up to `n` values; returns how many.
  uint32_t dequeue(T* values, uint32_t n) {
    uint32_t take;
    const uint32_t first = reserve(consumer_, 1, take, [&](uint32_t) { return n; });
    for (uint32_t i = 0; i < take; ++i) {
      Cell& cell = cells_[(first + i) & mask_];
      values[i] = cell.value;
      cell.turn.store(first + i + mask_ + 1, std::memory_order_release);
    }
    return take;
  }

 private:
  /// The cell of position `i` is free for its producer when `turn` is i, and full for its consumer when it is i + 1.
  struct Cell {
    std::atomic<uint32_t> turn;
    T value;
  };
  struct alignas(64) End {
    std::atomic<uint32_t> next{0};
  };

  /// Reserves up to `most(next)` positions from the next one of `end` on whose cells say that it is their turn. Returns
  /// the first position.
  template <typename Most>
  uint32_t reserve(End& end, uint32_t turn, uint32_t& take, const Most& most) {
    uint32_t next = end.next.load(std::memory_order_acquire);
    for (;;) {
      const uint32_t wanted = most(next);
      for (take = 0; take < wanted; ++take)
        if (cells_[(next + take) & mask_].turn.load(std::memory_order_acquire) != next + take + turn) break;
      if (take == 0) {
        // Full or empty, unless other threads have moved on since.
        const uint32_t now = end.next.load(std::memory_order_acquire);
        if (now == next) return next;
        next = now;
      } else if (end.next.compare_exchange_weak(next, next + take, std::memory_order_acq_rel,
                                                std::memory_order_acquire)) {
        return next;
      }
    }
  }

  uint32_t mask_;
  uint32_t limit_;
  std::unique_ptr<Cell[]> cells_;
  End producer_;
  End consumer_;
};

}  // namespace headrace
