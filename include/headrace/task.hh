#pragma once
/// \file
/// Work that a worker does by itself: tasks, repeatedly while scheduled, and timers, once each time they are scheduled.

#include <atomic>
#include <cstdint>
#include <functional>

#include "headrace/timestamp.hh"

namespace headrace {

class Element;
class Router;
class ThreadCounters;
class Worker;
namespace offload {
struct Bursts;
}

/// A unit of repeated work. It runs on its home thread when scheduled, and must call fast_reschedule() to run again. A
/// task with nothing to do leaves itself unscheduled until a Notifier wakes it, so that an idle router sleeps.
class Task {
 public:
  /// Calls owner->run_task(*this).
  explicit Task(Element* owner);
  /// Calls `body`, which returns whether it did any work.
  Task(Element* owner, std::function<bool(Task&)> body);
  ~Task();
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Attaches the task to a thread (-1: the owner's home thread), scheduled or not. Call in Element::initialize.
  void initialize(bool schedule, int thread = -1);
  bool initialized() const { return worker_ != nullptr; }

  bool scheduled() const { return scheduled_.load(std::memory_order_acquire); }
  /// Any thread may call these.
  void reschedule();
  void unschedule() { scheduled_.store(false, std::memory_order_release); }
  /// Only from within the task's own run.
  void fast_reschedule() { scheduled_.store(true, std::memory_order_relaxed); }

  Element* owner() const { return owner_; }
  int home_thread() const;
  /// A source says how many packets it received, of at most how many, so that a balancer sees the load of its worker.
  void received(int packets, int most) {
    if (bursts_ && packets > 0) [[unlikely]]
      note_burst(packets >= most);
  }

  /// Share of its thread: a task with twice the tickets runs twice as often. 1 to 32768, default 1024.
  int tickets() const { return tickets_; }
  void set_tickets(int n);

  /// Each worker has 64 gates. A task does not run while one of its gates (bits) is closed. The first kChainGates are those
  /// of the engine, which closes one while a worker can take no more packets for a chain, so that its sources rest and
  /// everything else goes on. The others belong to elements that at times cannot take more: see Router::add_gate().
  static constexpr int kGates = 64, kChainGates = 32;
  void add_gates(uint64_t gates) { gates_ |= gates; }
  /// Of the gates for chains, closes these of the task's worker and opens the others. Call on that worker's thread.
  void close_chain_gates(uint64_t gates);
  /// Closes or opens the gate of an element at the task's worker. Call on that worker's thread, or while no worker runs.
  void set_gate(int gate, bool closed);

 private:
  friend class Router;
  friend class Worker;
  bool run();
  void note_burst(bool full);

  Element* owner_;
  std::function<bool(Task&)> body_;
  Worker* worker_ = nullptr;
  ThreadCounters* profile_ = nullptr;
  offload::Bursts* bursts_ = nullptr;  // of the worker; null: nobody wants to know
  uint64_t looked_ = 0;                // when it ran last, if that was measured
  bool source_ = false;                // it has received packets
  std::atomic<bool> scheduled_{false};
  bool listed_ = false;  // in the worker's run list; used by the home thread only
  int tickets_ = 1024;
  uint64_t gates_ = 0;
  uint64_t pass_ = 0;
  uint64_t sequence_ = 0;
};

/// Fires once at its expiry, on its home thread.
class Timer {
 public:
  /// Calls owner->run_timer(*this).
  explicit Timer(Element* owner) : owner_(owner) {}
  Timer(Element* owner, std::function<void(Timer&)> body) : owner_(owner), body_(std::move(body)) {}
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Attaches the timer to a thread (-1: the owner's home thread). Call in Element::initialize.
  void initialize(int thread = -1);
  bool initialized() const { return worker_ != nullptr; }

  /// Any thread may call these. `expiry` is steady time, see clock::steady().
  void schedule_at(Timestamp expiry);
  void schedule_after(Timestamp delay);
  /// Relative to the last expiry, so that a periodic timer does not drift.
  void reschedule_after(Timestamp delay);
  void unschedule();
  bool scheduled() const { return index_ >= 0; }
  Timestamp expiry() const { return expiry_; }

  Element* owner() const { return owner_; }

 private:
  friend class Worker;
  void fire();

  Element* owner_;
  std::function<void(Timer&)> body_;
  Worker* worker_ = nullptr;
  Timestamp expiry_;
  int index_ = -1;  // 0 while scheduled, else -1
};

}  // namespace headrace
