// What the time of a worker goes into, by a clock that the test moves.

#include "offload/balance/load_meter.hh"

#include <gtest/gtest.h>

namespace headrace::offload {
namespace {

/// A worker that has a source and a task that looks for finished jobs.
class LoadMeterTest : public ::testing::Test {
 protected:
  void SetUp() override { JobClock::simulate(&clock_); }
  void TearDown() override { JobClock::simulate(nullptr); }

  void pass(uint64_t cycles) { clock_.cycles += cycles; }
  /// A run of the source: what packets cost outside of their chain, and in it.
  void receive(int packets, uint64_t outside, uint64_t chain) {
    const bool timed = meter_.begin_task(source_, true);
    meter_.bursts().all += packets > 0;
    pass(outside);
    if (timed && packets > 0) {
      meter_.arrive(packets);
      const LoadMeter::Part part = meter_.begin();
      pass(chain);
      EXPECT_EQ(meter_.end(part), chain);
    } else {
      pass(chain);
    }
    if (timed) meter_.end_task(true, true);
  }
  /// A run of the other task, with a job that is released or not.
  void look(bool waits, uint64_t cycles, uint64_t release) {
    const bool timed = meter_.begin_task(looked_, false);
    pass(cycles);
    if (timed && release > 0) {
      const LoadMeter::Part part = meter_.begin();
      pass(release);
      EXPECT_EQ(meter_.end(part), release);
    } else {
      pass(release);
    }
    meter_.look(waits);
    if (timed) meter_.end_task(release > 0, false);
    looks_ += timed;
  }
  /// The part of the time that was timed.
  double part(uint64_t cycles) { return static_cast<double>(cycles) / static_cast<double>(meter_.sum().timed); }

  JobClock::Simulated clock_{.ns = 0, .cycles = 1'000'000};
  LoadMeter meter_;
  uint64_t source_ = 0, looked_ = 0;
  uint64_t looks_ = 0;  // that were timed
};

TEST_F(LoadMeterTest, AllCyclesOfAFullWorkerBelongToPackets) {
  constexpr int kBurst = 128;
  constexpr uint64_t kOutside = 3000, kChain = 5000, kLook = 300, kRelease = 2000, kBetween = 150;
  for (int i = 0; i < 1000; ++i) {
    receive(kBurst, kOutside, kChain);
    pass(kBetween);
    look(false, kLook, i % 8 == 0 ? kRelease : 0);
    pass(kBetween);
  }
  const LoadMeter::Sum& sum = meter_.sum();
  EXPECT_GT(sum.timed, 0u);
  EXPECT_EQ(sum.busy, sum.timed);
  EXPECT_EQ(sum.waiting, 0u);
  const uint64_t runs = sum.outside.batches;
  EXPECT_EQ(sum.outside.packets, runs * kBurst);
  EXPECT_EQ(sum.outside.cycles, runs * (kOutside + kBetween));
  EXPECT_EQ(sum.looks, looks_ * (kLook + kBetween));
}

TEST_F(LoadMeterTest, WaitingForADeviceIsNoWork) {
  for (int i = 0; i < 1000; ++i) {
    look(true, 300, 0);
    pass(100);
  }
  EXPECT_EQ(part(meter_.sum().waiting), 1);
  EXPECT_EQ(meter_.sum().busy, 0u);
  EXPECT_EQ(meter_.sum().looks, 0u);
}

TEST_F(LoadMeterTest, RunsWithoutPacketsAndLongPausesAreIdleTime) {
  constexpr uint64_t kPause = 50'000;
  for (int i = 0; i < 1000; ++i) {
    receive(32, 1000, 1000);
    pass(kPause);
    receive(0, 100, 0);
    pass(100);
  }
  const LoadMeter::Sum& sum = meter_.sum();
  EXPECT_EQ(sum.busy, sum.outside.batches * 2000);
  EXPECT_NEAR(part(sum.busy), 2000.0 / (2000 + kPause + 200), 0.001);
}

TEST_F(LoadMeterTest, SleepIsNotTimed) {
  for (int i = 0; i < 1000; ++i) {
    receive(32, 1000, 1000);
    pass(100'000);
    meter_.slept(100'000);
    pass(100);
  }
  EXPECT_EQ(meter_.sum().slept, 100'000'000u);
  EXPECT_EQ(meter_.sum().busy, meter_.sum().timed);
  EXPECT_EQ(meter_.sum().outside.cycles, meter_.sum().outside.batches * 1100);
}

}  // namespace
}  // namespace headrace::offload
