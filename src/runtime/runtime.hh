#pragma once
/// \file
/// The process's workers. They outlive a router.

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"
#include "headrace/task.hh"
#include "headrace/worker.hh"
#include "runtime/barrier.hh"
#include "runtime/real_time.hh"
#include "runtime/signals.hh"
#include "runtime/worker_thread.hh"

namespace headrace {

class Element;
class Router;
class Runtime;
namespace offload {
class LoadMeter;
}

/// What one thread does for one router: its tasks, timers and file descriptors.
class Worker {
 public:
  Worker(Runtime& runtime, int id);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int id() const { return id_; }

  // Tasks (any thread)
  void attach(Task* task);
  void detach(Task* task);
  /// Says that some task's scheduled flag was set.
  void notice();
  // See Task. On this thread.
  void close_chain_gates(uint64_t gates) { closed_gates_ = (closed_gates_ & ~kChainGates) | gates; }
  void set_gate(int gate, bool closed) {
    const uint64_t bit = uint64_t{1} << gate;
    closed_gates_ = closed ? closed_gates_ | bit : closed_gates_ & ~bit;
  }

  // Timers (any thread)
  void schedule(Timer* timer, Timestamp expiry);
  void unschedule(Timer* timer);
  /// Steady time of the next expiry; {INT64_MAX} when there is none.
  Timestamp next_expiry() const;

  /// Measures from now on what the worker does; null: no longer. While the worker stands.
  void set_meter(offload::LoadMeter* meter);

  void select(Element* element, int fd, int mask);
  /// See headrace/alarm.hh.
  void alarm(int fd, bool on);

  /// One round: runs tasks, timers and, now and then, handlers of file descriptors. True if any of them did work.
  bool step();
  bool has_runnable() const { return !heap_.empty() || noticed_.load(std::memory_order_acquire); }
  /// Sleeps until there may be something to do. `reader` is the thread's RCU reader; it is offline during the sleep.
  void idle(rcu::Reader& reader);

 private:
  friend class Runtime;
  bool run_tasks();
  bool run_task(Task& task);
  bool run_timers();
  /// With `alarmed`, alarms end the wait as well.
  int poll_watches(int64_t timeout_ns, bool alarmed);
  /// True while polling again is better than sleeping.
  bool lingers();
  bool run_selected();
  void list_noticed();
  static bool later(const Task* a, const Task* b);
  void push_heap(Task* task);

  struct Watch {
    Element* element;
    int fd;
    int mask;
  };

  Runtime& runtime_;
  WorkerThread& thread_;
  const int id_;
  offload::LoadMeter* meter_ = nullptr;
  std::vector<Task*> tasks_;  // attached; guarded by lock_
  std::vector<Task*> heap_;   // scheduled, lowest pass first; this thread only
  uint64_t pass_ = 0;
  static constexpr uint64_t kChainGates = (uint64_t{1} << Task::kChainGates) - 1;
  uint64_t closed_gates_ = 0;
  uint64_t sequence_ = 0;
  std::atomic<bool> noticed_{false};

  mutable std::mutex lock_;  // tasks_, timers_, watches_, alarms_; never taken for a packet
  std::vector<Timer*> timers_;
  std::atomic<int64_t> next_expiry_;
  std::vector<Watch> watches_;
  std::atomic<bool> have_watches_{false};
  std::vector<int> alarms_;
  std::vector<Watch> polled_;  // this thread only, like the next
  std::vector<pollfd> fds_;
  bool moved_ = false;         // tasks or file descriptors had work since the last check
  int64_t awake_until_ = 0;    // real time in nanoseconds, like the next
  int64_t alarmed_again_ = 0;  // no alarm before this time
};

class Runtime {
 public:
  struct Options {
    int threads = 1;
    /// CPUs of the workers, used in turn; empty: no pinning.
    std::vector<int> cpus;
    /// Workers run on threads of their own and the caller becomes the control thread.
    bool control_thread = false;
    /// From plan_real_time(); for runs with a control thread.
    RealTime real_time{};
    /// Measure the steps of workers.
    bool time_steps = false;
    /// Dry run: elements that touch the machine (headrace/touches_machine.hh) are not initialized.
    bool look_only = false;
  };

  /// Only one at a time in a process.
  explicit Runtime(const Options& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  bool look_only() const { return options_.look_only; }
  int threads() const { return static_cast<int>(threads_.size()); }
  /// The CPU that a worker is pinned to; -1: not pinned.
  int cpu_of(int id) const {
    return options_.cpus.empty() ? -1 : options_.cpus[static_cast<size_t>(id) % options_.cpus.size()];
  }
  /// From now on SIGINT and SIGTERM end the present run(), or the next one. run() calls this, too.
  void catch_stop_signals() { signals_.catch_stop_signals(true); }
  /// With Options::time_steps: of all workers, in nanoseconds, since reset_step_times(). Any thread.
  Histogram step_times() const;
  /// Some of each worker, longest first.
  std::vector<LongStep> longest_steps() const;
  void reset_step_times();
  /// True when every worker has begun to run the router. Any thread.
  bool workers_began() const {
    return std::all_of(threads_.begin(), threads_.end(),
                       [](const auto& t) { return t->generation.load() != UINT64_MAX; });
  }
  WorkerThread& thread(int id) { return *threads_[static_cast<size_t>(id)]; }

  /// Runs until the router's run count falls to zero or stop() is called. With a control thread, `control` is called on
  /// the calling thread every `control_period_ms` while workers run; it returns false to stop. Meanwhile replace() may
  /// put another router in the place of `router`.
  void run(std::unique_ptr<Router>& router, const std::function<bool()>& control = {}, int control_period_ms = 100);
  /// Ends run(). Any thread, and signal handlers.
  void stop() { stopping_.store(true, std::memory_order_release); }
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  bool running() const { return running_.load(std::memory_order_acquire); }
  /// The router that run() runs.
  Router* current() const { return current_.load(std::memory_order_acquire); }

  /// Runs `action` while every other thread stands, see Barrier. An action may call quiesce() again.
  void quiesce(const std::function<void()>& action) { barrier_.quiesce(action); }

  /// Replaces the current router by `next`, which was made for this runtime while the current one runs. Every worker
  /// finishes its round and its jobs on devices; the last one moves the state over (Router::take_over), and all
  /// continue with `next`. Afterwards the devices of `next` receive the changes of tables that it shares with the old
  /// router. The old router is destroyed soon, but not before the call that asked for this has returned, since that
  /// call may be one of its handlers. Only in run(), and where may_replace() is true. Returns how long the workers
  /// stood, in nanoseconds: from the first that stopped until the state had moved.
  int64_t replace(std::unique_ptr<Router> next);
  /// True on the control thread, unless workers wait for what it is doing.
  bool may_replace() const { return on_control_thread() && (simulated_ || !barrier_.inside()); }
  /// How often a router was replaced, and how long workers stood for it: the last time, and at most.
  struct Swaps {
    uint64_t count = 0;
    int64_t last_ns = 0;
    int64_t most_ns = 0;
  };
  Swaps swaps() const { return swaps_; }

  /// What the control thread is to call: when it can, or also while it does something long (attend_while()). Then another
  /// thread without thread_id() calls it, never both at a time.
  enum class Urgency : uint8_t { kUsual, kUrgent };
  /// Runs `action` on the control thread; at once if called there.
  void post(std::function<void()> action);
  /// Runs `action` on the control thread soon, not within this call.
  void post_later(std::function<void()> action, Urgency urgency = Urgency::kUsual);
  /// Calls `ready` on the control thread whenever `fd` is readable, or what else `events` of poll(2) say; a null `ready`
  /// ends that: another thread that is just calling the old one is waited for. Any thread. From then on there is a
  /// control thread (also in simulated time, and if run() is called without one).
  void watch(int fd, std::function<void()> ready, short events = POLLIN, Urgency urgency = Urgency::kUsual);
  /// Runs `action`, which takes long, such as making a large router. Peers that wait for an answer in a certain time do not
  /// notice: a thread stands in for this one, and calls what is urgent. Control thread; in simulated time there is no other.
  void attend_while(const std::function<void()>& action);
  /// Requires a control thread, though nothing is watched yet.
  void want_control_thread() { control_wanted_.store(true); }
  bool on_control_thread() const { return thread_id() == threads() || simulated_; }

  /// See Barrier::Exclusive. For elements whose state persists across handler calls, such as Script.
  class Exclusive : public Barrier::Exclusive {
   public:
    explicit Exclusive(Runtime& runtime) : Barrier::Exclusive(runtime.barrier_) {}
  };

  /// Calls `action` on worker 0 when signal `number` arrives while `router` is the current one. Without an action,
  /// SIGINT and SIGTERM stop the router.
  void on_signal(const Router& router, int number, std::function<void()> action) {
    signals_.add(router, number, std::move(action));
  }
  /// Forgets on_signal() actions, so that the default applies again.
  void clear_signals() { signals_.clear(); }

 private:
  friend class Worker;
  /// What thread `id` does. All threads begin together, when each is `ready`.
  void loop(int id, std::latch& ready);
  void loop_simulated();
  Router& between_rounds(int id);
  void run_signals() {
    if (signals_.run(current())) stop();
  }
  void pin(int id);
  /// Makes the kernel provide packets' memory, near the workers' CPUs: before ports are open, since packets may be waiting
  /// there as soon as they are.
  void provide_packets();
  /// Keeps this thread, and those that it starts from now on (of drivers, too), off the CPUs of workers if there are
  /// others: it would take a worker's CPU in the middle of its packets.
  void leave_cpus_to_workers();
  void control_loop(const std::function<bool()>& control, int period_ms);
  /// Runs posted actions, and handlers of watched descriptors that become readable within `timeout_ms`; those of
  /// `least` urgency.
  void control_step(int timeout_ms, Urgency least = Urgency::kUsual);
  /// Destroys routers that were replaced, while another thread attends to what is urgent.
  void drop_replaced();
  bool control_needed() const { return control_wanted_.load(); }

  Options options_;
  std::optional<cpu_set_t> cpus_before_;  // of the control thread, if they were changed
  std::vector<std::unique_ptr<WorkerThread>> threads_;
  WorkerThread control_;  // for its wake-up
  Barrier barrier_{threads_};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> running_{false};
  bool simulated_ = false;

  std::atomic<Router*> current_{nullptr};
  std::unique_ptr<Router>* owner_ = nullptr;  // the argument of run()
  std::vector<std::unique_ptr<Router>> replaced_;
  Swaps swaps_;  // used by the control thread

  struct Watch {
    int fd;
    std::function<void()> ready;
    short events;
    Urgency urgency;
  };
  struct Posted {
    std::function<void()> action;
    Urgency urgency;
  };
  std::mutex control_lock_;
  std::deque<Posted> posted_;
  std::vector<Watch> watches_;
  /// The watch whose function is being called, and by whom.
  struct Calling {
    int fd = -1;
    std::thread::id thread;
  };
  Calling calling_;
  std::condition_variable called_;
  std::atomic<bool> control_wanted_{false};

  Signals signals_;
};

/// How many CPUs this process may use.
int available_cpus();

}  // namespace headrace
