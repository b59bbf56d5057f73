#include "runtime/step_meter.hh"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "headrace/real_clock.hh"
#include "support/test_router.hh"

namespace headrace::testing {
namespace {

void work_for(int64_t ns) {
  const int64_t end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

TEST(StepMeter, TellsWhoTookLong) {
  TestRouter r("Idle -> busy :: Counter -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  StepMeter meter(3);
  meter.note(nullptr);
  EXPECT_EQ(meter.times().count(), 0u) << "there is no step before the first";
  work_for(3'000'000);
  meter.note(r.router().find("busy"));
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  meter.note(nullptr);
  EXPECT_EQ(meter.times().count(), 2u);
  const std::vector<LongStep> longest = meter.longest();
  ASSERT_EQ(longest.size(), 2u);
  EXPECT_GE(longest[0].ns, longest[1].ns);
  // Which of them took longer depends on what else the machine does.
  const bool busy_first = longest[0].element == std::string_view("busy");
  const LongStep& busy = longest[busy_first ? 0 : 1];
  const LongStep& idle = longest[busy_first ? 1 : 0];
  EXPECT_GE(idle.ns, 8'000'000);
  EXPECT_STREQ(idle.element, "");
  // Asleep: without the CPU.
  EXPECT_GE(idle.off_cpu_ns, 7'000'000);
  EXPECT_GE(busy.ns, 3'000'000);
  EXPECT_STREQ(busy.element, "busy");
  EXPECT_EQ(busy.worker, 3);
}

TEST(StepMeter, KeepsTheLongestAndForgetsSleeps) {
  StepMeter meter(0);
  meter.note(nullptr);
  for (int i = 0; i < 20; ++i) {
    work_for(StepMeter::kLongNs + 10'000);
    meter.note(nullptr);
  }
  EXPECT_LT(meter.longest().size(), 20u);
  EXPECT_GT(meter.longest().size(), 3u);
  meter.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  meter.note(nullptr);
  EXPECT_EQ(meter.times().count(), 20u);
  meter.reset();
  EXPECT_EQ(meter.times().count(), 0u);
  EXPECT_TRUE(meter.longest().empty());
}

}  // namespace
}  // namespace headrace::testing
