#include "runtime/signals.hh"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

namespace headrace {

namespace {

constexpr int kSignals = 65;
constexpr int kStopSignals[] = {SIGINT, SIGTERM};
std::atomic<bool> g_pending[kSignals];
std::atomic<bool> g_any_pending{false};
std::atomic<const std::vector<WorkerThread*>*> g_wake{nullptr};

void on_signal_arrived(int number) {
  g_pending[number].store(true, std::memory_order_release);
  g_any_pending.store(true, std::memory_order_release);
  const int saved = errno;
  if (const std::vector<WorkerThread*>* threads = g_wake.load(std::memory_order_acquire))
    for (WorkerThread* t : *threads) t->wake();
  errno = saved;
}

void catch_signal(int number, bool on) {
  struct sigaction action {};
  action.sa_handler = on ? on_signal_arrived : SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

bool is_stop_signal(int number) { return number == SIGINT || number == SIGTERM; }

}  // namespace

Signals::Signals(std::vector<WorkerThread*> wake) : wake_(std::move(wake)) {
  g_wake.store(&wake_, std::memory_order_release);
}

Signals::~Signals() {
  clear();
  g_wake.store(nullptr, std::memory_order_release);
}

void Signals::add(const Router& router, int number, std::function<void()> action) {
  if (number <= 0 || number >= kSignals) return;
  {
    const std::lock_guard guard(lock_);
    actions_[number].push_back({&router, std::move(action)});
  }
  catch_signal(number, true);
}

void Signals::clear() {
  const std::lock_guard guard(lock_);
  for (const auto& [number, actions] : actions_) {
    catch_signal(number, false);
    g_pending[number].store(false);
  }
  actions_.clear();
}

void Signals::forget(const Router& router) {
  const std::lock_guard guard(lock_);
  for (auto it = actions_.begin(); it != actions_.end();) {
    std::erase_if(it->second, [&](const Action& a) { return a.router == &router; });
    if (!it->second.empty()) {
      ++it;
      continue;
    }
    catch_signal(it->first, is_stop_signal(it->first));
    it = actions_.erase(it);
  }
}

void Signals::catch_stop_signals(bool on) {
  for (const int number : kStopSignals) catch_signal(number, on);
}

bool Signals::stop_wanted() {
  if (!g_any_pending.load(std::memory_order_acquire)) return false;
  const std::lock_guard guard(lock_);
  // A running action may install itself again.
  if (acting_) return false;
  bool stop = false;
  for (const int number : kStopSignals)
    if (!actions_.contains(number)) stop |= g_pending[number].exchange(false, std::memory_order_acq_rel);
  return stop;
}

bool Signals::run(const Router* current) {
  if (!g_any_pending.load(std::memory_order_acquire)) return false;
  g_any_pending.store(false, std::memory_order_release);
  bool stop = false;
  for (int number = 1; number < kSignals; ++number) {
    if (!g_pending[number].exchange(false, std::memory_order_acq_rel)) continue;
    // The actions for this arrival; they may install new ones for the next.
    std::vector<std::function<void()>> actions;
    {
      const std::lock_guard guard(lock_);
      if (const auto it = actions_.find(number); it != actions_.end()) {
        for (Action& a : it->second)
          if (a.router == current) actions.push_back(std::move(a.action));
        std::erase_if(it->second, [&](const Action& a) { return a.router == current; });
        if (it->second.empty()) actions_.erase(it);
      }
      acting_ = !actions.empty();
    }
    if (actions.empty()) {
      stop |= is_stop_signal(number);
      continue;
    }
    for (const auto& action : actions) action();
    {
      const std::lock_guard guard(lock_);
      acting_ = false;
      if (actions_.contains(number) || is_stop_signal(number)) continue;
    }
    // The signal was caught until here, so that another arrival could not meet the default while an action was about to
    // install itself again. A signal that arrived meanwhile gets the default now.
    catch_signal(number, false);
    if (g_pending[number].exchange(false, std::memory_order_acq_rel)) raise(number);
  }
  return stop;
}

}  // namespace headrace
