#include "runtime/runtime.hh"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "headrace/router.hh"
#include "headrace/worker.hh"

namespace headrace {

namespace {

constexpr int kSignals = 65;
std::atomic<bool> g_pending[kSignals];
std::atomic<bool> g_any_pending{false};
std::atomic<Runtime*> g_runtime{nullptr};
/// This thread is counted in Runtime::looping_.
thread_local bool t_looping = false;

/// Only sets flags: worker 0 does the work between two rounds.
void on_signal_arrived(int number) {
  g_pending[number].store(true, std::memory_order_release);
  g_any_pending.store(true, std::memory_order_release);
  const int saved = errno;
  if (Runtime* r = g_runtime.load(std::memory_order_acquire)) r->worker(0).wake();
  errno = saved;
}

void catch_signal(int number, bool restore) {
  struct sigaction action {};
  action.sa_handler = restore ? SIG_DFL : on_signal_arrived;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

Runtime::Runtime(const Options& options) : options_(options) {
  // Sizes of per-thread state follow from this, so it comes before any element is made.
  detail::g_thread_count = options.threads + (options.control_thread ? 1 : 0);
  detail::t_thread_id = options.control_thread ? options.threads : 0;
  for (int i = 0; i < options.threads; ++i) workers_.push_back(std::make_unique<Worker>(*this, i));
  g_runtime.store(this, std::memory_order_release);
}

Runtime::~Runtime() {
  clear_signals();
  g_runtime.store(nullptr, std::memory_order_release);
  detail::t_thread_id = 0;
  detail::g_thread_count = 1;
}

void Runtime::on_signal(int number, std::function<void()> action) {
  if (number <= 0 || number >= kSignals) return;
  signal_actions_[number].push_back(std::move(action));
  catch_signal(number, false);
}

void Runtime::clear_signals() {
  for (const auto& [number, actions] : signal_actions_) {
    catch_signal(number, true);
    g_pending[number].store(false);
  }
  signal_actions_.clear();
}

void Runtime::run_signals() {
  if (!g_any_pending.load(std::memory_order_acquire)) return;
  g_any_pending.store(false, std::memory_order_release);
  for (int number = 1; number < kSignals; ++number) {
    if (!g_pending[number].exchange(false, std::memory_order_acq_rel)) continue;
    const auto it = signal_actions_.find(number);
    if (it == signal_actions_.end()) {
      stop();
      continue;
    }
    // The actions of one arrival; they may install new ones for the next.
    const auto actions = std::exchange(it->second, {});
    signal_actions_.erase(it);
    for (const auto& action : actions) action();
    if (signal_actions_.contains(number) || number == SIGINT || number == SIGTERM) continue;
    // Until here the signal was ours, so that another arrival could not find the default while an action was about to
    // install itself again. One that came meanwhile gets the default now.
    catch_signal(number, true);
    if (g_pending[number].exchange(false, std::memory_order_acq_rel)) raise(number);
  }
}

void Runtime::pin(int id) {
  if (options_.cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(options_.cpus[id % options_.cpus.size()], &set);
  // A CPU that is not ours to use leaves the worker where it is.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void Runtime::park() {
  std::unique_lock lock(pause_lock_);
  if (!pause_owner_) return;
  ++parked_;
  pause_changed_.notify_all();
  pause_changed_.wait(lock, [this] { return !pause_owner_; });
  --parked_;
}

void Runtime::quiesce(const std::function<void()>& action) {
  std::unique_lock lock(pause_lock_);
  const std::thread::id me = std::this_thread::get_id();
  if (pause_owner_ && pause_thread_ == me) {
    lock.unlock();
    action();
    return;
  }
  pause_wanted_.fetch_add(1, std::memory_order_seq_cst);
  // While another thread's action runs, this one counts as parked.
  const bool counted = pause_owner_ && t_looping;
  const bool exclusive = exclusive_thread_ == me;
  if (counted) ++parked_;
  if (exclusive) exclusive_waits_ = true;
  if (counted || exclusive) pause_changed_.notify_all();
  pause_changed_.wait(lock, [this] { return !pause_owner_; });
  if (counted) --parked_;
  if (exclusive) exclusive_waits_ = false;
  pause_owner_ = true;
  pause_thread_ = me;
  const auto others = [this] { return looping_ - (t_looping ? 1 : 0); };
  for (auto& w : workers_)
    if (others() > 0 && !(t_looping && w->id() == thread_id())) w->wake();
  pause_changed_.wait(lock, [&] { return parked_ >= others(); });
  lock.unlock();
  action();
  lock.lock();
  pause_owner_ = false;
  pause_thread_ = {};
  pause_wanted_.fetch_sub(1, std::memory_order_seq_cst);
  pause_changed_.notify_all();
}

Runtime::Exclusive::Exclusive(Runtime& runtime) : runtime_(runtime) {
  std::unique_lock lock(runtime.pause_lock_);
  const std::thread::id me = std::this_thread::get_id();
  const auto mine = [&] {
    if (runtime.exclusive_thread_ == me) return true;
    if (runtime.pause_owner_ && runtime.pause_thread_ != me) return false;
    // A holder that waits for the action in which this is called will not move before it ends.
    return runtime.exclusive_thread_ == std::thread::id() || (runtime.pause_owner_ && runtime.exclusive_waits_);
  };
  if (!mine()) {
    const bool counted = t_looping && !(runtime.pause_owner_ && runtime.pause_thread_ == me);
    if (counted) {
      ++runtime.parked_;
      runtime.pause_changed_.notify_all();
    }
    runtime.pause_changed_.wait(lock, mine);
    if (counted) --runtime.parked_;
  }
  previous_ = std::exchange(runtime.exclusive_thread_, me);
}

Runtime::Exclusive::~Exclusive() {
  const std::lock_guard lock(runtime_.pause_lock_);
  runtime_.exclusive_thread_ = previous_;
  runtime_.pause_changed_.notify_all();
}

void Runtime::between_rounds(Router& router, int id) {
  if (pause_wanted_.load(std::memory_order_acquire)) [[unlikely]]
    park();
  if (id == 0 && router.run_count() <= 0) [[unlikely]] {
    if (!router.consult_stop_listener()) stop();
  }
}

void Runtime::loop(Router& router, int id) {
  detail::t_thread_id = id;
  if (options_.control_thread) options_.real_time.apply(options_.real_time.worker_priority);
  pin(id);
  rcu::Reader reader;
  {
    std::lock_guard guard(pause_lock_);
    ++looping_;
    t_looping = true;
  }
  Worker& worker = *workers_[id];
  while (!stopping()) {
    between_rounds(router, id);
    if (stopping()) break;
    reader.quiescent();
    if (!worker.step()) {
      reader.offline();
      worker.idle();
      reader.online();
    }
  }
  router.drain();
  {
    std::lock_guard guard(pause_lock_);
    --looping_;
    t_looping = false;
    pause_changed_.notify_all();
  }
  for (auto& w : workers_) w->wake();
}

void Runtime::loop_simulated(Router& router) {
  // One thread plays all workers in turn, so that a simulation always goes the same way.
  rcu::Reader reader;
  while (!stopping()) {
    bool worked = false, runnable = false;
    for (auto& worker : workers_) {
      detail::t_thread_id = worker->id();
      between_rounds(router, worker->id());
      if (stopping()) break;
      reader.quiescent();
      worked |= worker->step();
      runnable |= worker->has_runnable();
    }
    detail::t_thread_id = 0;
    if (worked || runnable || stopping()) continue;
    Timestamp next{INT64_MAX};
    for (auto& worker : workers_) next = std::min(next, worker->next_expiry());
    if (next.ns != INT64_MAX) {
      clock::jump_steady(next);
    } else {
      workers_[0]->idle();
    }
  }
  for (auto& worker : workers_) {
    detail::t_thread_id = worker->id();
    router.drain();
  }
  detail::t_thread_id = 0;
}

void Runtime::run(Router& router, const std::function<bool()>& control, int control_period_ms) {
  stopping_.store(false, std::memory_order_release);
  if (!signal_actions_.contains(SIGINT)) catch_signal(SIGINT, false);
  if (!signal_actions_.contains(SIGTERM)) catch_signal(SIGTERM, false);
  running_.store(true, std::memory_order_release);
  const bool simulated = clock::warp() == clock::Warp::kSimulation;
  if (simulated) {
    loop_simulated(router);
  } else {
    std::vector<std::thread> threads;
    // Before there are workers: the first of them could take the CPU for good.
    if (options_.control_thread) options_.real_time.apply(options_.real_time.control_priority);
    for (int id = options_.control_thread ? 0 : 1; id < this->threads(); ++id)
      threads.emplace_back([this, &router, id] { loop(router, id); });
    if (options_.control_thread) {
      while (!stopping()) {
        usleep(static_cast<useconds_t>(control_period_ms) * 1000);
        rcu::reclaim();
        if (control && !control()) stop();
      }
    } else {
      loop(router, 0);
    }
    stop();
    for (auto& w : workers_) w->wake();
    for (std::thread& t : threads) t.join();
    detail::t_thread_id = options_.control_thread ? options_.threads : 0;
  }
  running_.store(false, std::memory_order_release);
  catch_signal(SIGINT, true);
  catch_signal(SIGTERM, true);
  rcu::reclaim();
}

}  // namespace headrace
