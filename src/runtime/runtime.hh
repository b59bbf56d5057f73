#pragma once
/// \file
/// The process's workers. They outlive a router.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"
#include "headrace/task.hh"
#include "runtime/real_time.hh"

namespace headrace {

class Element;
class Router;
class Runtime;

/// One thread's tasks, timers and file descriptors.
class Worker {
 public:
  Worker(Runtime& runtime, int id);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int id() const { return id_; }

  // Tasks (any thread)
  void attach(Task* task);
  void detach(Task* task);
  /// Says that some task's scheduled flag was set.
  void notice();

  // Timers (any thread)
  void schedule(Timer* timer, Timestamp expiry);
  void unschedule(Timer* timer);
  /// Steady time of the next expiry; {INT64_MAX} when there is none.
  Timestamp next_expiry() const;

  void select(Element* element, int fd, int mask);

  /// One round: tasks, timers, now and then file descriptors. True if anything ran that did work.
  bool step();
  bool has_runnable() const { return !heap_.empty() || noticed_.load(std::memory_order_acquire); }
  /// Sleeps until something may be there to do.
  void idle();
  void wake();

  /// Rounds and rounds with work since the start, and times slept; for `headrace run`'s live line.
  uint64_t rounds() const { return rounds_; }
  uint64_t busy_rounds() const { return busy_rounds_; }

 private:
  friend class Runtime;
  bool run_tasks();
  bool run_timers();
  bool run_selects(int64_t timeout_ns);
  void list_noticed();
  static bool later(const Task* a, const Task* b);
  void push_heap(Task* task);

  struct Watch {
    Element* element;
    int fd;
    int mask;
  };

  Runtime& runtime_;
  const int id_;
  std::vector<Task*> tasks_;  // attached; guarded by lock_
  std::vector<Task*> heap_;   // scheduled, lowest pass first; this thread only
  uint64_t pass_ = 0;
  uint64_t sequence_ = 0;
  std::atomic<bool> noticed_{false};

  mutable std::mutex lock_;  // tasks_, timers_, watches_: never taken for a packet
  std::vector<Timer*> timers_;
  std::atomic<int64_t> next_expiry_;
  std::vector<Watch> watches_;
  std::atomic<bool> have_watches_{false};

  int event_fd_ = -1;
  std::atomic<bool> sleeping_{false};
  uint64_t rounds_ = 0;
  uint64_t busy_rounds_ = 0;
  unsigned quiet_rounds_ = 0;
};

class Runtime {
 public:
  struct Options {
    int threads = 1;
    /// CPU of each worker, in turn; empty: no pinning.
    std::vector<int> cpus;
    /// Workers run on threads of their own and the caller becomes the control thread.
    bool control_thread = false;
    /// From plan_real_time(); for runs with a control thread.
    RealTime real_time{};
  };

  /// One at a time in a process.
  explicit Runtime(const Options& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int threads() const { return static_cast<int>(workers_.size()); }
  Worker& worker(int id) { return *workers_[id]; }

  /// Runs until the router's run count falls to zero or stop() is called. With a control thread, `control` is called
  /// on the calling thread every `control_period_ms` while workers run; it returns false to stop.
  void run(Router& router, const std::function<bool()>& control = {}, int control_period_ms = 100);
  /// Ends run(); any thread, also a signal handler.
  void stop() { stopping_.store(true, std::memory_order_release); }
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  bool running() const { return running_.load(std::memory_order_acquire); }

  /// Runs `action` while every other thread stands between two rounds. An action may call quiesce() again.
  void quiesce(const std::function<void()>& action);

  /// Holds off other threads that also want to be the exclusive one, until it is destroyed; a thread may be so more
  /// than once. For elements whose state lives on across handler calls, such as Script: unlike a mutex it goes together
  /// with quiesce(), since who waits for it stands still, and an action of quiesce() passes a holder that waits for
  /// that action.
  class Exclusive {
   public:
    explicit Exclusive(Runtime& runtime);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    Runtime& runtime_;
    std::thread::id previous_;
  };

  /// Calls `action` on worker 0 after signal `number` arrived. Without an action SIGINT and SIGTERM stop the router.
  void on_signal(int number, std::function<void()> action);
  /// Forgets on_signal() actions, so that the default applies again.
  void clear_signals();

 private:
  friend class Worker;
  void loop(Router& router, int id);
  void loop_simulated(Router& router);
  void between_rounds(Router& router, int id);
  void park();
  void run_signals();
  void pin(int id);

  Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> running_{false};

  std::mutex pause_lock_;
  std::condition_variable pause_changed_;
  std::atomic<int> pause_wanted_{0};
  int parked_ = 0;
  int looping_ = 0;
  bool pause_owner_ = false;
  std::thread::id pause_thread_;
  std::thread::id exclusive_thread_;
  bool exclusive_waits_ = false;  // its holder waits for another thread's action to end

  std::map<int, std::vector<std::function<void()>>> signal_actions_;
};

/// How many CPUs this process may use.
int available_cpus();

}  // namespace headrace
