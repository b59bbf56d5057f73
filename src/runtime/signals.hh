#pragma once
/// \file
/// What a process does when a signal arrives. The signal handler itself only sets flags and wakes threads.

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/worker_thread.hh"

namespace headrace {

class Router;

/// Only one at a time in a process.
class Signals {
 public:
  /// \param wake threads that handle signals; they outlive this object
  explicit Signals(std::vector<WorkerThread*> wake);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The next arrival of signal `number` while `router` is the current one calls `action`, once.
  void add(const Router& router, int number, std::function<void()> action);
  /// Forgets the actions of one router, or of all (clear). The system's default then applies again.
  void forget(const Router& router);
  void clear();
  /// Makes SIGINT and SIGTERM set flags, or restores the system's default.
  void catch_stop_signals(bool on);

  /// Calls the actions of `current` for the signals that have arrived. True if the router is to stop: SIGINT or SIGTERM
  /// came, and there is no action for it.
  bool run(const Router* current);
  /// Like run(), without calling actions. Any thread, so that a router whose worker 0 does not get to run stops, too.
  bool stop_wanted();

 private:
  struct Action {
    const Router* router;
    std::function<void()> action;
  };
  std::vector<WorkerThread*> wake_;
  std::mutex lock_;
  std::map<int, std::vector<Action>> actions_;
  bool acting_ = false;  // run() is calling actions
};

}  // namespace headrace
