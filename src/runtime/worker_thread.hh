#pragma once
/// \file
/// A thread of the runtime: how it sleeps and wakes up, and what it has done. It outlives routers.

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/step_meter.hh"

namespace headrace {

class WorkerThread {
 public:
  WorkerThread();
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// Ends the thread's sleep, or its next one. Any thread, and signal handlers.
  void wake();
  int wake_fd() const { return event_fd_; }
  void clear_wake();

  /// Awake: the thread runs elements. Asleep: it holds nothing of a router. Held: it is asleep and must not run
  /// elements before the barrier lets it (see Barrier).
  enum State : int { kAwake, kAsleep, kHeld };
  std::atomic<int> state{kAwake};
  /// A short sleep between two polls. The barrier cannot hold the thread meanwhile: it may have jobs on a device.
  std::atomic<bool> napping{false};
  bool sleeping() const { return state.load() != kAwake || napping.load(); }
  /// The router generation that the thread was last seen to run.
  std::atomic<uint64_t> generation{UINT64_MAX};

  uint64_t rounds = 0;
  unsigned quiet_rounds = 0;

  /// The thread's number in the kernel; 0 before it runs.
  std::atomic<int> kernel_id{0};
  /// Times of its steps; null: not measured.
  std::unique_ptr<StepMeter> steps;

 private:
  int event_fd_ = -1;
};

}  // namespace headrace
