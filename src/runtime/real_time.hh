#pragma once
/// \file
/// Running under a real-time scheduling policy (chrt). A worker that polls never gives up its CPU, so a thread of the
/// same priority on the same CPU would never run again: neither the control thread, which ends the run, nor the rest of
/// the system.

#include <sched.h>

#include <string>

namespace headrace {

/// Priorities of a process's threads. The default leaves the scheduling as it is.
struct RealTime {
  int policy = SCHED_OTHER;
  int worker_priority = 0;
  /// Above the workers' priority: the control thread is awake for microseconds, a worker all the time.
  int control_priority = 0;
  /// Why the workers must not run this way; empty if they may.
  std::string refusal;

  bool active() const { return policy != SCHED_OTHER; }
  /// Gives the calling thread a priority under the policy; does nothing without a policy.
  void apply(int priority) const;
};

/// The facts about the system that determine the plan; separate from plan_real_time() so that tests can choose them.
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
