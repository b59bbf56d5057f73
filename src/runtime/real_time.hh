#pragma once
/// \file
/// Running under a real-time scheduling policy (chrt). A worker that polls never gives its CPU up, so a thread of the
/// same priority on the same CPU would never run again: not the control thread, which ends the run, and not the rest of
/// the system.

#include <sched.h>

#include <string>

namespace headrace {

/// Priorities of a process's threads. The default leaves the scheduling as it is.
struct RealTime {
  int policy = SCHED_OTHER;
  int worker_priority = 0;
  /// Above the workers': this thread is awake for microseconds, a worker always.
  int control_priority = 0;
  /// Why the workers must not run like this; empty when they may.
  std::string refusal;

  bool active() const { return policy != SCHED_OTHER; }
  /// Gives the calling thread a priority under the policy; nothing when there is no such policy.
  void apply(int priority) const;
};

/// What of the system decides; split from plan_real_time() so that it can be chosen.
struct SchedulingFacts {
  int policy = SCHED_OTHER;  // as sched_getscheduler() returns it
  int priority = 0;
  bool may_raise = false;  // to priority + 1
  int usable_cpus = 1;     // in this process's affinity mask
  int online_cpus = 1;
};

/// The plan for `workers` polling threads and one control thread.
RealTime plan_real_time(int workers, const SchedulingFacts& facts);
/// The plan for the calling thread, from which all others inherit.
RealTime plan_real_time(int workers);

}  // namespace headrace
