#pragma once
/// \file
/// Which thread is running, and state per thread.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace headrace {

/// Maximum number of threads in a process: workers and the control thread.
inline constexpr int kMaxThreads = 256;

namespace detail {
extern constinit thread_local int t_thread_id;
extern int g_thread_count;
}  // namespace detail

/// Index of the running thread. Workers count from 0; the control thread of `headrace run` comes after them. The first
/// thread of a process has index 0 while there are no workers. All other threads have kForeignThread: they may make and
/// release packets, but have no PerThread state and cannot write handlers (see Runtime::post).
inline constexpr int kForeignThread = -1;
inline int thread_id() { return detail::t_thread_id; }
/// Threads in use: valid indices are 0 .. thread_count()-1.
inline int thread_count() { return detail::g_thread_count; }

/// One `T` per thread, each on cache lines of its own. A reader on another thread may see a slightly old value.
template <typename T>
class PerThread {
 public:
  PerThread() : slots_(new Slot[kSlots]) {}
  ~PerThread() { delete[] slots_; }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& local() {
    assert(thread_id() >= 0);
    return slots_[thread_id()].value;
  }
  T& operator[](int thread) { return slots_[thread].value; }
  const T& operator[](int thread) const { return slots_[thread].value; }
  int size() const { return kSlots; }

 private:
  struct alignas(64) Slot {
    T value{};
  };
  const int kSlots = thread_count();
  Slot* slots_;
};

/// `count` event counters per thread. Only the owner adds; anyone may sum.
class ThreadCounters {
 public:
  explicit ThreadCounters(int count = 0) { resize(count); }
  ~ThreadCounters() { std::free(cells_); }
  ThreadCounters(const ThreadCounters&) = delete;
  ThreadCounters& operator=(const ThreadCounters&) = delete;

  /// Sets the number of counters and zeroes them. Not while workers run.
  void resize(int count);
  int count() const { return count_; }
  /// The running thread's counters.
  uint64_t* local() {
    assert(thread_id() >= 0);
    return of(thread_id());
  }
  /// Those of another thread, for it to use.
  uint64_t* of(int thread) { return cells_ + static_cast<size_t>(thread) * stride_; }
  void add(int index, uint64_t n) {
    // Atomic for concurrent readers that sum; only one thread writes, so a load and a store suffice.
    uint64_t* const cell = local() + index;
    __atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
  }
  /// Sum over threads since the last reset.
  uint64_t sum(int index) const;
  uint64_t of_thread(int thread, int index) const;
  /// Sums restart from zero; workers may keep counting meanwhile.
  void reset();

 private:
  uint64_t load(int thread, int index) const;

  int count_ = 0;
  int threads_ = 0;
  size_t stride_ = 0;
  uint64_t* cells_ = nullptr;  // threads_ * stride_, then the values at the last reset
};

}  // namespace headrace
