#include "runtime/runtime.hh"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

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
  if (Runtime* r = g_runtime.load(std::memory_order_acquire)) r->thread(0).wake();
  errno = saved;
}

void catch_signal(int number, bool restore) {
  struct sigaction action {};
  action.sa_handler = restore ? SIG_DFL : on_signal_arrived;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

WorkerThread::WorkerThread() : generation(UINT64_MAX), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

WorkerThread::~WorkerThread() {
  if (event_fd_ >= 0) close(event_fd_);
}

void WorkerThread::wake() {
  const uint64_t one = 1;
  if (write(event_fd_, &one, sizeof one) < 0 && errno != EAGAIN) return;
}

void WorkerThread::clear_wake() {
  uint64_t count;
  if (read(event_fd_, &count, sizeof count) < 0 && errno != EAGAIN) return;
}

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

Runtime::Runtime(const Options& options) : options_(options) {
  // Sizes of per-thread state follow from this, so it comes before any element is made.
  // One more than there are workers: the control thread, which there may be or not.
  detail::g_thread_count = options.threads + 1;
  detail::t_thread_id = options.control_thread ? options.threads : 0;
  for (int i = 0; i < options.threads; ++i) threads_.push_back(std::make_unique<WorkerThread>());
  g_runtime.store(this, std::memory_order_release);
}

Runtime::~Runtime() {
  clear_signals();
  g_runtime.store(nullptr, std::memory_order_release);
  detail::t_thread_id = 0;
  detail::g_thread_count = 1;
}

void Runtime::on_signal(const Router& router, int number, std::function<void()> action) {
  if (number <= 0 || number >= kSignals) return;
  {
    const std::lock_guard guard(signal_lock_);
    signal_actions_[number].push_back({&router, std::move(action)});
  }
  catch_signal(number, false);
}

void Runtime::clear_signals() {
  const std::lock_guard guard(signal_lock_);
  for (const auto& [number, actions] : signal_actions_) {
    catch_signal(number, true);
    g_pending[number].store(false);
  }
  signal_actions_.clear();
}

void Runtime::forget_signals(const Router& router) {
  const std::lock_guard guard(signal_lock_);
  for (auto it = signal_actions_.begin(); it != signal_actions_.end();) {
    std::erase_if(it->second, [&](const SignalAction& a) { return a.router == &router; });
    if (!it->second.empty()) {
      ++it;
      continue;
    }
    catch_signal(it->first, it->first != SIGINT && it->first != SIGTERM);
    it = signal_actions_.erase(it);
  }
}

void Runtime::run_signals() {
  if (!g_any_pending.load(std::memory_order_acquire)) return;
  g_any_pending.store(false, std::memory_order_release);
  const Router* current = current_.load(std::memory_order_acquire);
  for (int number = 1; number < kSignals; ++number) {
    if (!g_pending[number].exchange(false, std::memory_order_acq_rel)) continue;
    // The actions of one arrival; they may install new ones for the next.
    std::vector<std::function<void()>> actions;
    {
      const std::lock_guard guard(signal_lock_);
      if (const auto it = signal_actions_.find(number); it != signal_actions_.end()) {
        for (SignalAction& a : it->second)
          if (a.router == current) actions.push_back(std::move(a.action));
        std::erase_if(it->second, [&](const SignalAction& a) { return a.router == current; });
        if (it->second.empty()) signal_actions_.erase(it);
      }
    }
    if (actions.empty()) {
      if (number == SIGINT || number == SIGTERM) stop();
      continue;
    }
    for (const auto& action : actions) action();
    {
      const std::lock_guard guard(signal_lock_);
      if (signal_actions_.contains(number) || number == SIGINT || number == SIGTERM) continue;
    }
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
  CPU_SET(cpu_of(id), &set);
  // A CPU that is not ours to use leaves the worker where it is.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void Runtime::park() {
  std::unique_lock lock(pause_lock_, std::defer_lock);
  if (swap_wanted_.load(std::memory_order_acquire)) {
    // What this worker has on devices comes back while it may still push it on.
    current_.load(std::memory_order_acquire)->drain();
    // All arrive at once: who slept in this lock would keep the others standing.
    while (!lock.try_lock()) __builtin_ia32_pause();
    if (swap_wanted_.load(std::memory_order_relaxed)) {
      arrive(lock);
      return;
    }
  } else {
    lock.lock();
  }
  if (!pause_owner_) return;
  ++parked_;
  pause_changed_.notify_all();
  pause_changed_.wait(lock, [this] { return !pause_owner_; });
  --parked_;
}

void Runtime::arrive(std::unique_lock<std::mutex>& lock) {
  if (arrived_++ == 0) first_arrival_ = std::chrono::steady_clock::now();
  ++parked_;
  const uint64_t generation = generation_.load(std::memory_order_relaxed);
  if (take_over_if_all_stand()) return;
  // Another thread's quiesce() may wait for this one, too.
  if (pause_wanted_.load(std::memory_order_relaxed) > 1) pause_changed_.notify_all();
  lock.unlock();
  // Spinning, because to sleep and be woken takes longer than all the rest; yielding, in case the others wait for this
  // CPU.
  constexpr unsigned kSpins = 2000;
  for (unsigned n = 0; generation_.load(std::memory_order_acquire) == generation; ++n) {
    if (n < kSpins)
      __builtin_ia32_pause();
    else
      sched_yield();
  }
}

bool Runtime::take_over_if_all_stand() {
  if (!swap_wanted_.load(std::memory_order_relaxed) || pause_owner_ || arrived_ + held_ < looping_) return false;
  if (arrived_ == 0) first_arrival_ = std::chrono::steady_clock::now();
  Router* const old = current_.load(std::memory_order_relaxed);
  swap_next_->take_over(*old);
  current_.store(swap_next_, std::memory_order_release);
  stood_ns_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - first_arrival_).count();
  parked_ -= arrived_;
  arrived_ = held_ = 0;
  swap_wanted_.store(false, std::memory_order_relaxed);
  pause_wanted_.fetch_sub(1, std::memory_order_seq_cst);
  generation_.fetch_add(1, std::memory_order_release);
  for (auto& t : threads_) {
    int held = WorkerThread::kHeld;
    t->state.compare_exchange_strong(held, WorkerThread::kAsleep, std::memory_order_acq_rel);
  }
  pause_changed_.notify_all();
  return true;
}

void Runtime::wait_while_held(WorkerThread& thread) {
  int asleep = WorkerThread::kAsleep;
  while (!thread.state.compare_exchange_weak(asleep, WorkerThread::kAwake, std::memory_order_acq_rel)) {
    asleep = WorkerThread::kAsleep;
    sched_yield();
  }
}

int64_t Runtime::replace(std::unique_ptr<Router> next) {
  if (simulated_) {
    const int me = thread_id();
    for (int id = 0; id < threads(); ++id) {
      detail::t_thread_id = id;
      current_.load()->drain();
    }
    detail::t_thread_id = me;
  }
  int64_t stood_ns;
  uint64_t generation;
  {
    std::unique_lock lock(pause_lock_);
    swap_next_ = next.get();
    arrived_ = held_ = 0;
    swap_wanted_.store(true, std::memory_order_release);
    pause_wanted_.fetch_add(1, std::memory_order_seq_cst);
    for (auto& t : threads_) {
      int asleep = WorkerThread::kAsleep;
      if (t->state.compare_exchange_strong(asleep, WorkerThread::kHeld, std::memory_order_acq_rel)) ++held_;
    }
    if (!take_over_if_all_stand()) {
      for (auto& t : threads_)
        if (t->napping.load()) t->wake();
      pause_changed_.wait(lock, [this] { return !swap_wanted_.load(std::memory_order_relaxed); });
    }
    stood_ns = stood_ns_;
    generation = generation_.load();
  }
  std::swap(*owner_, next);
  // A thread that slept may still stand in the old router's Worker.
  for (auto& t : threads_) {
    t->wake();
    while (t->generation.load(std::memory_order_acquire) < generation && !simulated_) usleep(20);
  }
  (*owner_)->remember(*next);
  forget_signals(*next);
  replaced_.push_back(std::move(next));
  swaps_ = {swaps_.count + 1, stood_ns, std::max(swaps_.most_ns, stood_ns)};
  return stood_ns;
}

void Runtime::post(std::function<void()> action) {
  if (on_control_thread()) {
    action();
    return;
  }
  {
    const std::lock_guard guard(control_lock_);
    posted_.push_back(std::move(action));
  }
  control_.wake();
}

void Runtime::watch(int fd, std::function<void()> ready) {
  control_wanted_.store(true);
  {
    const std::lock_guard guard(control_lock_);
    std::erase_if(watches_, [&](const Watch& w) { return w.fd == fd; });
    if (ready) watches_.push_back({fd, std::move(ready)});
  }
  control_.wake();
}

void Runtime::control_step(int timeout_ms) {
  replaced_.clear();
  std::vector<pollfd> fds;
  {
    const std::lock_guard guard(control_lock_);
    for (const Watch& w : watches_) fds.push_back({w.fd, POLLIN, 0});
    if (!posted_.empty()) timeout_ms = 0;
  }
  fds.push_back({control_.wake_fd(), POLLIN, 0});
  const int ready = poll(fds.data(), fds.size(), timeout_ms);
  if (fds.back().revents) control_.clear_wake();
  for (;;) {
    std::function<void()> action;
    {
      const std::lock_guard guard(control_lock_);
      if (posted_.empty()) break;
      action = std::move(posted_.front());
      posted_.pop_front();
    }
    action();
  }
  if (ready <= 0) return;
  fds.pop_back();
  for (const pollfd& fd : fds) {
    if (!fd.revents) continue;
    std::function<void()> action;
    {
      // One that was called before may have ended this watch.
      const std::lock_guard guard(control_lock_);
      for (const Watch& w : watches_)
        if (w.fd == fd.fd) action = w.ready;
    }
    if (action) action();
  }
}

void Runtime::control_loop(const std::function<bool()>& control, int period_ms) {
  while (!stopping()) {
    control_step(period_ms);
    rcu::reclaim();
    if (control && !control()) stop();
  }
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
  for (int id = 0; id < threads(); ++id)
    if (others() > 0 && !(t_looping && id == thread_id())) thread(id).wake();
  pause_changed_.wait(lock, [&] { return parked_ >= others(); });
  lock.unlock();
  action();
  lock.lock();
  pause_owner_ = false;
  pause_thread_ = {};
  pause_wanted_.fetch_sub(1, std::memory_order_seq_cst);
  pause_changed_.notify_all();
  (void)take_over_if_all_stand();
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

Router& Runtime::between_rounds(int id) {
  if (pause_wanted_.load(std::memory_order_acquire)) [[unlikely]]
    park();
  Router& router = *current_.load(std::memory_order_acquire);
  if (id == 0 && router.run_count() <= 0) [[unlikely]] {
    if (!router.consult_stop_listener()) stop();
  }
  return router;
}

void Runtime::loop(int id) {
  detail::t_thread_id = id;
  if (options_.control_thread) options_.real_time.apply(options_.real_time.worker_priority);
  pin(id);
  rcu::Reader reader;
  WorkerThread& thread = *threads_[static_cast<size_t>(id)];
  {
    std::lock_guard guard(pause_lock_);
    ++looping_;
    t_looping = true;
    thread.generation.store(generation_.load());
  }
  while (!stopping()) {
    // Read before the router, so that a router is never taken for a younger one.
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    Router& router = between_rounds(id);
    if (thread.generation.load(std::memory_order_relaxed) != generation) [[unlikely]]
      thread.generation.store(generation, std::memory_order_release);
    if (stopping()) break;
    reader.quiescent();
    Worker& worker = router.worker(id);
    if (!worker.step()) {
      reader.offline();
      worker.idle();
      reader.online();
    }
  }
  current_.load(std::memory_order_acquire)->drain();
  {
    std::lock_guard guard(pause_lock_);
    --looping_;
    t_looping = false;
    thread.generation.store(UINT64_MAX, std::memory_order_release);
    pause_changed_.notify_all();
    (void)take_over_if_all_stand();
  }
  for (auto& t : threads_) t->wake();
  control_.wake();
}

void Runtime::loop_simulated() {
  // One thread plays all workers in turn, so that a simulation always goes the same way.
  rcu::Reader reader;
  constexpr uint64_t kRoundsPerControl = 64;
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
    if (control_needed() && round % kRoundsPerControl == 0) control_step(0);
    if (worked || runnable || stopping() || router != current_.load()) continue;
    Timestamp next{INT64_MAX};
    for (int id = 0; id < threads(); ++id) next = std::min(next, current_.load()->worker(id).next_expiry());
    if (next.ns != INT64_MAX) {
      clock::jump_steady(next);
    } else if (control_needed()) {
      control_step(5);
    } else {
      current_.load()->worker(0).idle();
    }
  }
  for (int id = 0; id < threads(); ++id) {
    detail::t_thread_id = id;
    current_.load()->drain();
  }
  detail::t_thread_id = 0;
}

void Runtime::run(std::unique_ptr<Router>& router, const std::function<bool()>& control, int control_period_ms) {
  stopping_.store(false, std::memory_order_release);
  owner_ = &router;
  current_.store(router.get(), std::memory_order_release);
  for (const int number : {SIGINT, SIGTERM}) catch_signal(number, false);
  running_.store(true, std::memory_order_release);
  simulated_ = clock::warp() == clock::Warp::kSimulation;
  if (simulated_) {
    loop_simulated();
  } else {
    std::vector<std::thread> threads;
    // Before there are workers: the first of them could take the CPU for good.
    if (options_.control_thread) options_.real_time.apply(options_.real_time.control_priority);
    for (int id = options_.control_thread ? 0 : 1; id < this->threads(); ++id)
      threads.emplace_back([this, id] { loop(id); });
    if (options_.control_thread) {
      control_loop(control, control_period_ms);
    } else {
      if (control_needed())
        threads.emplace_back([this] {
          detail::t_thread_id = this->threads();
          control_loop({}, 100);
        });
      loop(0);
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
  catch_signal(SIGINT, true);
  catch_signal(SIGTERM, true);
  rcu::reclaim();
}

}  // namespace headrace
