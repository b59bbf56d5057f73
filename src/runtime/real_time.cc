#include "runtime/real_time.hh"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "runtime/runtime.hh"

namespace headrace {

namespace {

// SCHED_DEADLINE of <linux/sched.h>, which cannot be included beside <sched.h>.
constexpr int kDeadlinePolicy = 6;

const char* policy_name(int policy) { return policy == SCHED_FIFO ? "SCHED_FIFO" : "SCHED_RR"; }

}  // namespace

void RealTime::apply(int priority) const {
  if (!active()) return;
  sched_param param{};
  param.sched_priority = priority;
  // plan_real_time() has found that this is allowed; the priority is never above the one that it tried.
  (void)pthread_setschedparam(pthread_self(), policy, &param);
}

RealTime plan_real_time(int workers, const SchedulingFacts& facts) {
  RealTime plan;
  if (facts.policy == kDeadlinePolicy) {
    plan.refusal = "a process under SCHED_DEADLINE cannot start threads; use another scheduling policy";
    return plan;
  }
  // With SCHED_RESET_ON_FORK, workers start with the normal policy, and nothing starves the control thread.
  if (facts.policy != SCHED_FIFO && facts.policy != SCHED_RR) return plan;

  const char* name = policy_name(facts.policy);
  if (workers > facts.usable_cpus && facts.policy == SCHED_FIFO) {
    plan.refusal = fmt::format("of {} workers on {} CPU{} some would never run under {}; use --workers {}", workers,
                               facts.usable_cpus, facts.usable_cpus == 1 ? "" : "s", name, facts.usable_cpus);
    return plan;
  }
  if (workers >= facts.online_cpus && facts.usable_cpus >= facts.online_cpus) {
    plan.refusal = fmt::format("under {} the workers would take every CPU from the rest of the system; use {}", name,
                               facts.online_cpus > 1
                                   ? fmt::format("--workers {} or less, or a normal policy", facts.online_cpus - 1)
                                   : "a normal policy");
    return plan;
  }
  if (!facts.may_raise && facts.priority <= sched_get_priority_min(facts.policy)) {
    plan.refusal = fmt::format(
        "the control thread needs a priority above the workers', which {} at {} leaves no room for; "
        "start with priority {} (chrt)",
        name, facts.priority, facts.priority + 1);
    return plan;
  }
  plan.policy = facts.policy;
  plan.control_priority = facts.may_raise ? facts.priority + 1 : facts.priority;
  plan.worker_priority = plan.control_priority - 1;
  return plan;
}

RealTime plan_real_time(int workers) {
  SchedulingFacts facts;
  facts.policy = sched_getscheduler(0);
  if (facts.policy == SCHED_FIFO || facts.policy == SCHED_RR) {
    sched_param param{};
    sched_getparam(0, &param);
    facts.priority = param.sched_priority;
    // Only a trial shows whether a limit or a capability allows it.
    param.sched_priority = facts.priority + 1;
    facts.may_raise = sched_setscheduler(0, facts.policy, &param) == 0;
    param.sched_priority = facts.priority;
    if (facts.may_raise) sched_setscheduler(0, facts.policy, &param);
    facts.usable_cpus = available_cpus();
    facts.online_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  }
  return plan_real_time(workers, facts);
}

}  // namespace headrace
