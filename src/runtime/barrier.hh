#pragma once
/// \file
/// The barrier at which the threads of a router stand while something that they use changes.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/rcu.hh"
#include "runtime/worker_thread.hh"

namespace headrace {

/// The locks of the system. A test replaces them to try other orders of events.
struct SystemSync {
  using Mutex = std::mutex;
  using Condition = std::condition_variable;
  /// How often a thread polls before it sleeps: to sleep and wake up takes longer than the rest of a swap.
  static constexpr unsigned kSpins = 2000;
  /// Called before each access to shared state that no lock guards.
  static void point() {}
};

namespace detail {
/// True on a worker in its loop.
inline constinit thread_local bool t_in_loop = false;
}  // namespace detail

/// One state machine for everything that needs workers to stand, that is, to wait here and run no elements:
///
/// - A **section** (quiesce()): its owner runs an action while no other thread runs elements. One section is open at a
///   time. A worker stands for it wherever it waits at the barrier: between two rounds or, in the middle of one, in a
///   handler that waits for a section of its own or to become the exclusive thread.
/// - A **swap**: the last worker to arrive runs the action. A worker stands for it only between two rounds, with no job
///   on a device. Sections go first: a worker that wants one is in the middle of a round and arrives later.
/// - The **exclusive** thread: see Exclusive.
///
/// A sleeping worker is not woken for any of these. Instead it is held: it may not run until no section is open and no
/// swap is pending. Every worker counts as exactly one of: running, standing, arrived, held, or out of its loop.
///
///     section is ready:  standing + arrived + held = all workers in their loops, without the owner
///     swap is ready:     arrived + held = all workers in their loops, and no section is open
///
/// A standing thread is offline for RCU, so that an action may wait for a grace period.
template <typename Sync>
class BasicBarrier {
 public:
  explicit BasicBarrier(const std::vector<std::unique_ptr<WorkerThread>>& workers) : workers_(workers) {}
  BasicBarrier(const BasicBarrier&) = delete;
  BasicBarrier& operator=(const BasicBarrier&) = delete;

  // Workers

  /// The calling thread starts (enter) or stops (leave) running elements.
  void enter();
  void leave();
  /// Whether a worker must call pass() before its next round.
  bool wanted() const { return wanted_.load(std::memory_order_acquire) != 0; }
  /// Call between two rounds: stands as long as required. If a swap is pending, calls `drain` first, after which no job
  /// of the worker is on a device.
  template <typename Drain>
  void pass(const Drain& drain);
  /// From here until wake_up() the worker holds nothing of a router and may be held. False if it must not go to sleep
  /// because others wait for it.
  bool fall_asleep(WorkerThread& thread);
  void wake_up(WorkerThread& thread);
  /// As fall_asleep(), for a sleep in which the worker cannot be held. Clearing WorkerThread::napping ends it.
  bool nap(WorkerThread& thread);
  /// Number of swaps so far. A thread that sees a new value sees what the swap's action did.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Any thread

  /// Runs `action` while every other thread stands. An action may call this again.
  void quiesce(const std::function<void()>& action);
  /// Runs `action`, on some thread, when every worker has arrived. Only one call at a time, and not where inside() is
  /// true. Returns how long workers stood, in nanoseconds: from the first arrival to the end of `action`.
  int64_t swap(const std::function<void()>& action);
  /// True if the calling thread is the exclusive one or runs an action of quiesce(), so that others may stand because
  /// of it.
  bool inside() const;

  /// While it lives, no other thread can become the exclusive one; one thread may hold several. Unlike a mutex it works
  /// together with quiesce(): a thread that waits for it stands, and an action of quiesce() does not wait for a holder
  /// that itself waits for that action to end.
  class Exclusive {
   public:
    explicit Exclusive(BasicBarrier& barrier) : barrier_(barrier), previous_(barrier.become_exclusive()) {}
    ~Exclusive() { barrier_.cede_exclusive(previous_); }
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    BasicBarrier& barrier_;
    const std::thread::id previous_;
  };

 private:
  using Lock = std::unique_lock<typename Sync::Mutex>;

  // All of these need the lock.
  bool section_ready() const { return section_ && standing_ + arrived_ + held_ >= in_ - (owner_counts_ ? 1 : 0); }
  void tell_owner() {
    if (section_ready()) gathered_.notify_all();
  }
  template <typename Ready>
  void stand(Lock& lock, const Ready& ready);
  void arrive(Lock& lock);
  void stop_workers();
  void resume_workers();
  bool swap_if_ready();
  std::thread::id become_exclusive();
  void cede_exclusive(std::thread::id previous);

  const std::vector<std::unique_ptr<WorkerThread>>& workers_;
  std::atomic<int> wanted_{0};  // open sections and pending swaps
  std::atomic<bool> swap_{false};
  std::atomic<uint64_t> generation_{0};

  mutable typename Sync::Mutex lock_;  // guards what follows, and writes of the above
  typename Sync::Condition gathered_;  // the owner of the section waits for the others
  typename Sync::Condition changed_;   // all others wait
  int in_ = 0;                         // workers in their loops; of those:
  int standing_ = 0;
  int arrived_ = 0;
  int held_ = 0;
  bool section_ = false;
  std::thread::id owner_;
  bool owner_counts_ = false;  // the owner is one of in_
  std::thread::id exclusive_;
  bool exclusive_waits_ = false;  // for another thread's section to close
  const std::function<void()>* swap_action_ = nullptr;
  std::chrono::steady_clock::time_point first_arrival_;
  int64_t stood_ns_ = 0;
};

using Barrier = BasicBarrier<SystemSync>;

template <typename Sync>
void BasicBarrier<Sync>::enter() {
  const Lock lock(lock_);
  ++in_;
  detail::t_in_loop = true;
}

template <typename Sync>
void BasicBarrier<Sync>::leave() {
  const Lock lock(lock_);
  --in_;
  detail::t_in_loop = false;
  tell_owner();
  (void)swap_if_ready();
}

template <typename Sync>
template <typename Drain>
void BasicBarrier<Sync>::pass(const Drain& drain) {
  Sync::point();
  const bool drained = swap_.load(std::memory_order_acquire);
  if (drained) drain();
  Lock lock(lock_, std::defer_lock);
  // All workers arrive at once: a thread that slept on this lock would keep the others standing.
  for (unsigned n = 0; n < Sync::kSpins && !lock.owns_lock(); ++n)
    if (!lock.try_lock()) __builtin_ia32_pause();
  if (!lock.owns_lock()) lock.lock();
  if (drained && swap_.load(std::memory_order_relaxed))
    arrive(lock);
  else
    stand(lock, [this] { return !section_; });
}

template <typename Sync>
bool BasicBarrier<Sync>::fall_asleep(WorkerThread& thread) {
  Sync::point();
  thread.state.store(WorkerThread::kAsleep, std::memory_order_seq_cst);
  // Either stop_workers() finds the thread asleep, or the thread finds that it is wanted.
  Sync::point();
  return wanted_.load(std::memory_order_seq_cst) == 0;
}

template <typename Sync>
bool BasicBarrier<Sync>::nap(WorkerThread& thread) {
  Sync::point();
  thread.napping.store(true, std::memory_order_seq_cst);
  Sync::point();
  return wanted_.load(std::memory_order_seq_cst) == 0;
}

template <typename Sync>
void BasicBarrier<Sync>::wake_up(WorkerThread& thread) {
  for (;;) {
    int state = WorkerThread::kAsleep;
    Sync::point();
    if (thread.state.compare_exchange_strong(state, WorkerThread::kAwake, std::memory_order_seq_cst)) return;
    Lock lock(lock_);
    changed_.wait(lock, [&] { return thread.state.load(std::memory_order_relaxed) != WorkerThread::kHeld; });
  }
}

template <typename Sync>
void BasicBarrier<Sync>::quiesce(const std::function<void()>& action) {
  Lock lock(lock_);
  const std::thread::id me = std::this_thread::get_id();
  if (section_ && owner_ == me) {
    lock.unlock();
    action();
    return;
  }
  const rcu::Offline offline;
  const bool exclusive = exclusive_ == me;
  if (exclusive && section_) {
    exclusive_waits_ = true;
    changed_.notify_all();
  }
  stand(lock, [this] { return !section_; });
  if (exclusive) exclusive_waits_ = false;
  section_ = true;
  owner_ = me;
  owner_counts_ = detail::t_in_loop;
  stop_workers();
  gathered_.wait(lock, [this] { return section_ready(); });
  lock.unlock();
  action();
  lock.lock();
  section_ = false;
  owner_ = {};
  resume_workers();
  (void)swap_if_ready();
}

template <typename Sync>
int64_t BasicBarrier<Sync>::swap(const std::function<void()>& action) {
  Lock lock(lock_);
  swap_action_ = &action;
  arrived_ = 0;
  swap_.store(true, std::memory_order_release);
  stop_workers();
  if (!swap_if_ready()) changed_.wait(lock, [this] { return !swap_.load(std::memory_order_relaxed); });
  return stood_ns_;
}

template <typename Sync>
bool BasicBarrier<Sync>::inside() const {
  const Lock lock(lock_);
  const std::thread::id me = std::this_thread::get_id();
  return exclusive_ == me || (section_ && owner_ == me);
}

/// Waits until `ready()`, which must be false while another thread's section is open.
template <typename Sync>
template <typename Ready>
void BasicBarrier<Sync>::stand(Lock& lock, const Ready& ready) {
  if (ready()) return;
  const rcu::Offline offline;
  const bool counts = detail::t_in_loop && !(section_ && owner_ == std::this_thread::get_id());
  if (counts) ++standing_;
  tell_owner();
  changed_.wait(lock, ready);
  if (counts) --standing_;
}

template <typename Sync>
void BasicBarrier<Sync>::arrive(Lock& lock) {
  if (arrived_++ == 0) first_arrival_ = std::chrono::steady_clock::now();
  const uint64_t before = generation_.load(std::memory_order_relaxed);
  if (swap_if_ready()) return;
  const rcu::Offline offline;
  tell_owner();
  lock.unlock();
  for (unsigned n = 0; n < Sync::kSpins; ++n) {
    if (generation_.load(std::memory_order_acquire) != before) return;
    __builtin_ia32_pause();
  }
  lock.lock();
  changed_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != before; });
}

template <typename Sync>
void BasicBarrier<Sync>::stop_workers() {
  wanted_.fetch_add(1, std::memory_order_seq_cst);
  for (const std::unique_ptr<WorkerThread>& t : workers_) {
    int asleep = WorkerThread::kAsleep;
    Sync::point();
    if (t->state.compare_exchange_strong(asleep, WorkerThread::kHeld, std::memory_order_seq_cst))
      ++held_;
    else if (t->napping.load(std::memory_order_seq_cst))
      t->wake();
  }
  // A swap may hold the worker that the owner of a section waits for.
  tell_owner();
}

template <typename Sync>
void BasicBarrier<Sync>::resume_workers() {
  wanted_.fetch_sub(1, std::memory_order_seq_cst);
  if (!section_ && !swap_.load(std::memory_order_relaxed)) {
    for (const std::unique_ptr<WorkerThread>& t : workers_) {
      int held = WorkerThread::kHeld;
      t->state.compare_exchange_strong(held, WorkerThread::kAsleep, std::memory_order_seq_cst);
    }
    held_ = 0;
  }
  changed_.notify_all();
}

/// True if the swap took place.
template <typename Sync>
bool BasicBarrier<Sync>::swap_if_ready() {
  if (!swap_.load(std::memory_order_relaxed) || section_ || arrived_ + held_ < in_) return false;
  if (arrived_ == 0) first_arrival_ = std::chrono::steady_clock::now();
  (*swap_action_)();
  stood_ns_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - first_arrival_).count();
  arrived_ = 0;
  swap_.store(false, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  resume_workers();
  return true;
}

template <typename Sync>
std::thread::id BasicBarrier<Sync>::become_exclusive() {
  Lock lock(lock_);
  const std::thread::id me = std::this_thread::get_id();
  stand(lock, [&] {
    if (exclusive_ == me) return true;
    if (section_ && owner_ != me) return false;
    // A holder that waits for the action in which this is called cannot continue before that action ends.
    return exclusive_ == std::thread::id() || (section_ && exclusive_waits_);
  });
  return std::exchange(exclusive_, me);
}

template <typename Sync>
void BasicBarrier<Sync>::cede_exclusive(std::thread::id previous) {
  const Lock lock(lock_);
  exclusive_ = previous;
  changed_.notify_all();
}

extern template class BasicBarrier<SystemSync>;

}  // namespace headrace
