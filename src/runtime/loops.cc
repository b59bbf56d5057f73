// What the threads of a runtime do while a router runs: workers, the control thread, and the one thread of a simulation.

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <latch>
#include <thread>
#include <utility>

#include "headrace/packet_pool.hh"
#include "headrace/rcu.hh"
#include "headrace/router.hh"
#include "headrace/thread_name.hh"
#include "headrace/worker.hh"
#include "runtime/runtime.hh"

namespace headrace {

namespace {

/// How long a thread that stands in for the control thread sleeps at most: it is woken when something comes.
constexpr int kStandInPollMs = 100;

/// Elements call each other, with a batch on each one's stack.
[[gnu::noinline]] void touch_stack() {
  constexpr size_t kBytes = size_t{256} << 10, kPage = 4096;
  uint8_t deep[kBytes];
  for (size_t at = 0; at < kBytes; at += kPage) *const_cast<volatile uint8_t*>(deep + at) = 0;
}

}  // namespace

void Runtime::pin(int id) {
  if (options_.cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu_of(id), &set);
  // A CPU that is not ours to use leaves the worker where it is.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void Runtime::control_step(int timeout_ms, Urgency least) {
  const auto next_posted = [this, least] {
    return std::find_if(posted_.begin(), posted_.end(), [least](const Posted& p) { return p.urgency >= least; });
  };
  std::vector<pollfd> fds;
  {
    const std::lock_guard guard(control_lock_);
    for (const Watch& w : watches_)
      if (w.urgency >= least) fds.push_back({w.fd, w.events, 0});
    if (next_posted() != posted_.end()) timeout_ms = 0;
  }
  fds.push_back({control_.wake_fd(), POLLIN, 0});
  const int ready = poll(fds.data(), fds.size(), timeout_ms);
  if (fds.back().revents) control_.clear_wake();
  for (;;) {
    std::function<void()> action;
    {
      const std::lock_guard guard(control_lock_);
      const auto next = next_posted();
      if (next == posted_.end()) break;
      action = std::move(next->action);
      posted_.erase(next);
    }
    action();
  }
  if (ready <= 0) return;
  fds.pop_back();
  for (const pollfd& fd : fds) {
    if (!fd.revents) continue;
    std::function<void()> action;
    // The watch that this thread was called for, which may have led here.
    Calling before;
    {
      // One that was called before may have ended this watch.
      const std::lock_guard guard(control_lock_);
      for (const Watch& w : watches_)
        if (w.fd == fd.fd && w.urgency >= least) action = w.ready;
      if (action) before = std::exchange(calling_, {fd.fd, std::this_thread::get_id()});
    }
    if (!action) continue;
    action();
    const std::lock_guard guard(control_lock_);
    calling_ = before;
    called_.notify_all();
  }
}

void Runtime::drop_replaced() {
  if (replaced_.empty()) return;
  for (const auto& router : replaced_) router->leave_control();
  // Large tables take long to go.
  attend_while([this] { replaced_.clear(); });
}

void Runtime::attend_while(const std::function<void()>& action) {
  if (simulated_) return action();
  std::atomic<bool> done{false};
  const auto attend = [this, &done] {
    while (!done.load(std::memory_order_acquire)) control_step(kStandInPollMs, Urgency::kUrgent);
  };
  struct StandIn {
    std::atomic<bool>& done;
    WorkerThread& control;
    std::thread thread;
    ~StandIn() {
      done.store(true, std::memory_order_release);
      control.wake();
      thread.join();
    }
  };
  const StandIn stand_in{done, control_, std::thread(attend)};
  action();
}

void Runtime::control_loop(const std::function<bool()>& control, int period_ms) {
  while (!stopping()) {
    // What the new router does first comes before the old one goes.
    control_step(replaced_.empty() ? period_ms : 0);
    drop_replaced();
    if (signals_.stop_wanted()) stop();
    rcu::reclaim();
    if (control && !control()) stop();
  }
}

Router& Runtime::between_rounds(int id) {
  if (barrier_.wanted()) [[unlikely]]
    barrier_.pass([this] { current_.load(std::memory_order_acquire)->drain(); });
  Router& router = *current_.load(std::memory_order_acquire);
  if (id == 0 && router.run_count() <= 0) [[unlikely]] {
    if (!router.consult_stop_listener()) stop();
  }
  return router;
}

Histogram Runtime::step_times() const {
  Histogram all;
  for (const auto& t : threads_)
    if (t->steps) all.add(t->steps->times());
  return all;
}

std::vector<LongStep> Runtime::longest_steps() const {
  std::vector<LongStep> all;
  for (const auto& t : threads_) {
    if (!t->steps) continue;
    const std::vector<LongStep> longest = t->steps->longest();
    all.insert(all.end(), longest.begin(), longest.end());
  }
  std::sort(all.begin(), all.end(), [](const LongStep& a, const LongStep& b) { return a.ns > b.ns; });
  return all;
}

void Runtime::reset_step_times() {
  for (const auto& t : threads_)
    if (t->steps) t->steps->reset();
}

void Runtime::loop(int id, std::latch& ready) {
  detail::t_thread_id = id;
  if (options_.control_thread) options_.real_time.apply(options_.real_time.worker_priority);
  pin(id);
  // A page fault takes as long as hundreds of packets; these come before the first one. Most of the pool's memory is there
  // already, but the elements of this router may need more.
  touch_stack();
  PacketPool::instance().settle(id);
  // Workers that spin would keep the others from the CPUs, and from locks of the allocator.
  ready.arrive_and_wait();
  rcu::Reader reader;
  WorkerThread& thread = *threads_[static_cast<size_t>(id)];
  thread.kernel_id.store(gettid(), std::memory_order_relaxed);
  barrier_.enter();
  thread.generation.store(barrier_.generation());
  while (!stopping()) {
    // Read before the router, so that a router is never taken for a younger one.
    const uint64_t generation = barrier_.generation();
    Router& router = between_rounds(id);
    if (thread.generation.load(std::memory_order_relaxed) != generation) [[unlikely]]
      thread.generation.store(generation, std::memory_order_release);
    if (stopping()) break;
    reader.quiescent();
    Worker& worker = router.worker(id);
    if (!worker.step()) worker.idle(reader);
  }
  current_.load(std::memory_order_acquire)->drain();
  thread.generation.store(UINT64_MAX, std::memory_order_release);
  barrier_.leave();
  // run() waits for one of them, and wakes the others.
  threads_[0]->wake();
  control_.wake();
}

void Runtime::loop_simulated() {
  // One thread plays all workers in turn, so that a simulation always goes the same way.
  rcu::Reader reader;
  constexpr uint64_t kRoundsPerControl = 64;
  // After so many rounds in which no task did anything, those that still want to run wait for what only time brings.
  constexpr int kIdleRounds = 64;
  int idle_rounds = 0;
  for (uint64_t round = 0; !stopping(); ++round) {
    bool worked = false, runnable = false;
    const Router* const router = current_.load();
    for (int id = 0; id < threads() && router == current_.load(); ++id) {
      detail::t_thread_id = id;
      Router& current = between_rounds(id);
      if (stopping()) break;
      reader.quiescent();
      Worker& worker = current.worker(id);
      worked |= worker.step();
      runnable |= worker.has_runnable();
    }
    detail::t_thread_id = 0;
    if (control_needed() && round % kRoundsPerControl == 0) {
      replaced_.clear();
      control_step(0);
    }
    if (worked) idle_rounds = 0;
    if (worked || stopping() || router != current_.load()) continue;
    if (runnable && ++idle_rounds < kIdleRounds) continue;
    Timestamp next{INT64_MAX};
    for (int id = 0; id < threads(); ++id) next = std::min(next, current_.load()->worker(id).next_expiry());
    if (next.ns != INT64_MAX) {
      clock::jump_steady(next);
    } else if (runnable) {
      continue;
    } else if (control_needed()) {
      replaced_.clear();
      control_step(5);
    } else {
      current_.load()->worker(0).idle(reader);
    }
  }
  for (int id = 0; id < threads(); ++id) {
    detail::t_thread_id = id;
    current_.load()->drain();
  }
  detail::t_thread_id = 0;
}

void Runtime::run(std::unique_ptr<Router>& router, const std::function<bool()>& control, int control_period_ms) {
  // Here and not in the first worker that makes a packet, so that the caller hears of too little memory.
  PacketPool::instance().prepare();
  stopping_.store(false, std::memory_order_release);
  owner_ = &router;
  current_.store(router.get(), std::memory_order_release);
  catch_stop_signals();
  running_.store(true, std::memory_order_release);
  simulated_ = clock::warp() == clock::Warp::kSimulation;
  if (simulated_) {
    loop_simulated();
  } else {
    std::latch ready(this->threads());
    std::vector<std::thread> threads;
    // Before there are workers: the first of them could take the CPU for good.
    if (options_.control_thread) options_.real_time.apply(options_.real_time.control_priority);
    for (int id = options_.control_thread ? 0 : 1; id < this->threads(); ++id)
      threads.emplace_back([this, id, &ready] {
        name_thread("worker " + std::to_string(id));
        loop(id, ready);
      });
    if (options_.control_thread) {
      control_loop(control, control_period_ms);
    } else {
      if (control_needed())
        threads.emplace_back([this] {
          name_thread("control");
          detail::t_thread_id = this->threads();
          control_loop({}, 100);
        });
      loop(0, ready);
    }
    stop();
    for (auto& t : threads_) t->wake();
    control_.wake();
    for (std::thread& t : threads) t.join();
    detail::t_thread_id = options_.control_thread ? options_.threads : 0;
  }
  running_.store(false, std::memory_order_release);
  replaced_.clear();
  simulated_ = false;
  owner_ = nullptr;
  signals_.catch_stop_signals(false);
  rcu::reclaim();
}

}  // namespace headrace
