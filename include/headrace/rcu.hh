#pragma once
/// \file
/// Reclamation by quiescent states (QSBR): readers of shared tables pay one store per loop; writers wait.
///
/// A reader may keep pointers into shared structures from one quiescent state to the next. A writer unpublishes a
/// pointer, waits until every reader has passed a quiescent state, and may then reuse what it pointed to. The method is
/// that of P. E. McKenney and J. D. Slingwine, "Read-Copy Update" (1998), in the form of T. E. Hart et al.,
/// "Performance of memory reclamation for lockless synchronization" (2007), section 2.1.
///
/// Only registration, waiting and retiring lock or allocate; quiescent(), online() and offline() do not.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::rcu {

/// A point in the order of grace periods. 0 means none.
using Epoch = uint64_t;

/// A reader. It is registered and online from construction to destruction.
///
/// A worker thread owns a reader, constructed and destroyed on that thread. The thread calls quiescent() once per loop,
/// when it holds no pointer into a shared structure, and is offline() while it sleeps.
class Reader {
 public:
  Reader();
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Declares that this reader holds no pointer that it took earlier. Costs one load of a shared word that rarely
  /// changes and one store to a cache line of its own.
  void quiescent() { seen_.store(current_.load(std::memory_order_acquire), std::memory_order_release); }

  /// From here until online() writers do not wait for this reader, and it must not touch shared structures.
  void offline() { seen_.store(0, std::memory_order_release); }

  /// Begins to read again. Pointers must be taken after this call.
  void online() {
    seen_.store(current_.load(std::memory_order_acquire), std::memory_order_release);
    // A read-modify-write, although it changes nothing. It comes either before a writer's increment of the same word,
    // so that the writer sees the store above, or after it, so that this reader sees what the writer unpublished.
    current_.fetch_add(0, std::memory_order_acq_rel);
  }

  bool is_online() const { return seen_.load(std::memory_order_relaxed) != 0; }

 private:
  friend struct Registry;
  friend class Offline;
  friend Epoch now();

  static inline constinit std::atomic<Epoch> current_{1};

  /// Alone on two cache lines, because processors prefetch lines in pairs.
  alignas(128) std::atomic<Epoch> seen_{0};
  Reader* next_of_thread_ = nullptr;
};

/// While it lives, the readers of the calling thread are offline, for a wait in the middle of their work. The thread
/// must hold no pointer into a shared structure. The runtime does this wherever a thread waits in a handler, so an
/// element must not keep such a pointer while it pushes packets or calls a handler.
class Offline {
 public:
  Offline();
  ~Offline();
  Offline(const Offline&) = delete;
  Offline& operator=(const Offline&) = delete;

 private:
  std::vector<Reader*> were_online_;
};

/// Waits until every online reader has passed a quiescent state, then runs what was retired before the call. Readers of
/// the calling thread count as quiescent, so the caller must hold no such pointer. Not for the data path.
void synchronize();

/// Begins a grace period without waiting for its end: pass the result to elapsed(). What was unpublished before the
/// call may be reused once elapsed() is true.
Epoch start_grace();

/// True when every online reader has passed a quiescent state since start_grace() returned `grace`. Never waits for
/// readers.
bool elapsed(Epoch grace);

/// The newest grace period that has begun.
Epoch now();

/// A copy of shared structures on a device, or jobs that use one: what they find there comes back later, outside of any
/// reader. It is known from construction to destruction.
class Copy {
 public:
  /// \param oldest nothing will come back that was unpublished before this grace period began; 0: nothing at all will.
  /// Called on any thread.
  explicit Copy(std::function<Epoch()> oldest);
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

 private:
  friend struct Registry;
  friend bool returned(Epoch grace);

  const std::function<Epoch()> oldest_;
};

/// True when, besides elapsed(), no copy brings back what was unpublished before start_grace() returned `grace`. Then a
/// name by which readers and jobs tell what they found may get another meaning. Never waits.
bool returned(Epoch grace);

/// Runs `function` once every online reader has passed a quiescent state: in a later reclaim() or synchronize(), on the
/// thread that calls it. The function may call retire() but not synchronize(). What it captures must outlive it.
void retire(std::function<void()> function);

/// While it lives, what the calling thread retires is kept; its grace period begins when the last of these objects goes.
/// For a writer who makes several parts anew and then publishes them together: as long as the old whole can be reached, a
/// reader may take it anew, although it has passed a quiescent state since.
class Retirements {
 public:
  Retirements();
  ~Retirements();
  Retirements(const Retirements&) = delete;
  Retirements& operator=(const Retirements&) = delete;

 private:
  friend void retire(std::function<void()> function);

  Retirements* const outer_;
  std::vector<std::function<void()>> functions_;  // of the outermost
};

/// Runs the retired functions whose grace period has elapsed, without waiting. Returns how many ran.
size_t reclaim();

/// Retired functions that have not run yet.
size_t pending();

}  // namespace headrace::rcu
