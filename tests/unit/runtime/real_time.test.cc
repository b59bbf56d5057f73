// plan_real_time(): which priorities the threads get under chrt, and what is refused.

#include "runtime/real_time.hh"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr int kResetOnFork = 0x40000000;

SchedulingFacts fifo(int priority, bool may_raise) {
  return {.policy = SCHED_FIFO, .priority = priority, .may_raise = may_raise, .usable_cpus = 8, .online_cpus = 8};
}

bool refused(const RealTime& plan, const std::string& why) { return plan.refusal.find(why) != std::string::npos; }

TEST(RealTime, NormalPoliciesAreLeftAlone) {
  for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO | kResetOnFork}) {
    SchedulingFacts facts = fifo(10, true);
    facts.policy = policy;
    const RealTime plan = plan_real_time(64, facts);
    EXPECT_FALSE(plan.active()) << policy;
    EXPECT_EQ(plan.refusal, "") << policy;
  }
}

TEST(RealTime, ControlThreadStandsAboveWorkers) {
  const RealTime raised = plan_real_time(4, fifo(10, true));
  EXPECT_TRUE(raised.active());
  EXPECT_EQ(raised.refusal, "");
  EXPECT_EQ(raised.worker_priority, 10);
  EXPECT_EQ(raised.control_priority, 11);

  const RealTime lowered = plan_real_time(4, fifo(99, false));
  EXPECT_EQ(lowered.refusal, "");
  EXPECT_EQ(lowered.worker_priority, 98);
  EXPECT_EQ(lowered.control_priority, 99);
}

TEST(RealTime, RefusesWithoutRoomForTheControlThread) {
  EXPECT_TRUE(refused(plan_real_time(4, fifo(1, false)), "start with priority 2"));
  EXPECT_EQ(plan_real_time(4, fifo(2, false)).refusal, "");
}

TEST(RealTime, RefusesToTakeEveryCpu) {
  EXPECT_EQ(plan_real_time(7, fifo(10, true)).refusal, "");
  EXPECT_TRUE(refused(plan_real_time(8, fifo(10, true)), "--workers 7 or less"));
  SchedulingFacts one = fifo(10, true);
  one.usable_cpus = one.online_cpus = 1;
  EXPECT_TRUE(refused(plan_real_time(1, one), "every CPU"));
  // Other CPUs are left to the rest of the system.
  one.online_cpus = 2;
  EXPECT_EQ(plan_real_time(1, one).refusal, "");
}

TEST(RealTime, RefusesWorkersThatWouldNeverRun) {
  SchedulingFacts facts = fifo(10, true);
  facts.usable_cpus = 2;
  EXPECT_EQ(plan_real_time(2, facts).refusal, "");
  EXPECT_TRUE(refused(plan_real_time(3, facts), "--workers 2"));
  facts.policy = SCHED_RR;
  EXPECT_EQ(plan_real_time(3, facts).refusal, "");
}

TEST(RealTime, RefusesDeadlineScheduling) {
  SchedulingFacts facts = fifo(0, false);
  facts.policy = 6;
  EXPECT_TRUE(refused(plan_real_time(1, facts), "SCHED_DEADLINE"));
}

}  // namespace
}  // namespace headrace
