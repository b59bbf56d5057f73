#pragma once
/// \file
/// Counters of entries by number, each worker's for itself.

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "headrace/worker.hh"

namespace headrace {

/// Counts by number. Workers add, without a lock and without shared writes; anyone sums. A `Count` has words of 64 bits, which
/// begin at 0, and operator+=.
template <typename Count>
class EntryCounters {
  static_assert(std::is_trivially_copyable_v<Count> && sizeof(Count) % sizeof(uint64_t) == 0);

 public:
  /// Numbers that can be counted.
  static constexpr uint32_t kMost = 1u << 22;

  EntryCounters() = default;
  ~EntryCounters() {
    for (int thread = 0; thread < threads_.size(); ++thread)
      for (std::atomic<Count*>& part : threads_[thread].parts) delete[] part.load();
  }
  EntryCounters(const EntryCounters&) = delete;
  EntryCounters& operator=(const EntryCounters&) = delete;

  /// Makes room for numbers below `count`. One thread at a time; workers may be counting.
  void reserve(uint32_t count) {
    for (uint32_t first = reserved_.load(); first < count; first += kPart, reserved_.store(first))
      for (int thread = 0; thread < threads_.size(); ++thread) {
        std::atomic<Count*>& part = threads_[thread].parts[first / kPart];
        // There if memory ran out in the middle, the last time.
        if (part.load() == nullptr) part.store(new Count[kPart](), std::memory_order_release);
      }
  }
  /// Numbers below this one have room.
  uint32_t reserved() const { return reserved_.load(); }
  /// What the running worker has counted, by number; it changes words by set().
  class Mine {
   public:
    Count& operator[](uint32_t number) const {
      return parts_[number / kPart].load(std::memory_order_acquire)[number % kPart];
    }

   private:
    friend class EntryCounters;
    explicit Mine(const std::atomic<Count*>* parts) : parts_(parts) {}

    const std::atomic<Count*>* parts_;
  };
  Mine mine() { return Mine(threads_.local().parts); }
  /// Calls `visit(i, count)` for each of `n` packets, with the running worker's count of `number(i)`; null if that is `none`.
  /// Counts are asked for ahead of their visits: they are seldom in the first-level cache.
  template <typename Number, typename Visit>
  void visit_ahead(int n, uint32_t none, Number&& number, Visit&& visit) {
    constexpr int kAhead = 16;  // a core has about that many misses under way
    const Mine mine = this->mine();
    Count* counts[2 * kAhead];
    const auto fetch = [&](int begin) {
      const int end = n - begin < kAhead ? n : begin + kAhead;
      for (int i = begin; i < end; ++i) {
        const uint32_t of = number(i);
        Count* const count = of != none ? &mine[of] : nullptr;
        counts[i & (2 * kAhead - 1)] = count;
        __builtin_prefetch(count, 1);
      }
      return end;
    };
    for (int begin = 0, end = fetch(0); begin < n;) {
      const int next_end = fetch(end);
      for (int i = begin; i < end; ++i) visit(i, counts[i & (2 * kAhead - 1)]);
      begin = end;
      end = next_end;
    }
  }
  /// Atomic for those who sum; one thread writes.
  template <typename T>
  static void set(T& word, T value) {
    __atomic_store_n(&word, value, __ATOMIC_RELAXED);
  }
  Count sum(uint32_t number) const {
    Count total{};
    for (int thread = 0; thread < threads_.size(); ++thread) {
      const Count* const part = threads_[thread].parts[number / kPart].load(std::memory_order_acquire);
      if (part == nullptr) continue;
      Count count{};
      for (size_t i = 0; i < kWords; ++i)
        words_of(count)[i] = __atomic_load_n(words_of(part[number % kPart]) + i, __ATOMIC_RELAXED);
      total += count;
    }
    return total;
  }
  /// Not while a worker may count for the number.
  void clear(uint32_t number) {
    for (int thread = 0; thread < threads_.size(); ++thread)
      for (size_t i = 0; i < kWords; ++i)
        set(words_of(threads_[thread].parts[number / kPart].load()[number % kPart])[i], Word{0});
  }

 private:
  using Word [[gnu::may_alias]] = uint64_t;
  static constexpr uint32_t kPart = 4096;
  struct Parts {
    std::atomic<Count*> parts[kMost / kPart] = {};
  };
  static constexpr size_t kWords = sizeof(Count) / sizeof(uint64_t);

  static Word* words_of(Count& count) { return reinterpret_cast<Word*>(&count); }
  static const Word* words_of(const Count& count) { return reinterpret_cast<const Word*>(&count); }

  PerThread<Parts> threads_;
  std::atomic<uint32_t> reserved_{0};  // workers ask
};

}  // namespace headrace
