#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "offload/balance/DeviceTimes.hh"

namespace headrace::balance {
namespace {

DeviceTimes::Seen seen(double mpps_0, double mpps_1) {
  DeviceTimes::Seen seen(2);
  seen.per_second = {mpps_0 * 1e6, mpps_1 * 1e6};
  return seen;
}

/// A device that takes 370 and 118 ns for a packet of two chains, as was learnt from what it did.
DeviceTimes learnt() {
  DeviceTimes times(2);
  for (int i = 0; i < 20; ++i) {
    times.busy(seen(2.0, 2.2), 1, true);
    times.busy(seen(1.0, 5.339), 1, true);
  }
  return times;
}

TEST(DeviceTimes, FollowFromTwoMixtures) {
  const DeviceTimes times = learnt();
  EXPECT_NEAR(times.seconds(0), 370e-9, 5e-9);
  EXPECT_NEAR(times.seconds(1), 118e-9, 3e-9);
}

TEST(DeviceTimes, ALimitLeavesUnsureWhatItDoesNotSay) {
  // The device becomes several times faster: 44 and 94 ns. It does more than was believed to be possible, and has time
  // left: so packets take less, but nobody knows how much less. Then it is full, with one mixture of chains, from which
  // only a sum follows. The true times must stay believable.
  DeviceTimes times = learnt();
  times.doubt();
  for (const auto& [a, b] : {std::pair{4.58, 0.0}, {5.53, 1.09}, {6.6, 6.4}}) times.busy(seen(a, b), 1, false);
  for (int i = 0; i < 10; ++i) times.busy(seen(7.75, 7.03), 1, true);
  EXPECT_NEAR(times.used(seen(7.75, 7.03).per_second), 1, 0.02);
  for (const auto& [chain, truth] : {std::pair{0, 44e-9}, {1, 94e-9}}) {
    const double error = times.most_seconds(chain) - times.seconds(chain);
    EXPECT_LT(std::abs(times.seconds(chain) - truth), 2 * error) << chain << ": " << times.seconds(chain);
    EXPECT_GT(times.seconds(chain), 0);
  }
}

TEST(DeviceTimes, AJobMoreInASampleIsOneLessInTheNext) {
  // Jobs of 512 packets take 1.792 ms each, so two or three of them end in a sample of 5 ms.
  constexpr double kPacket = 3.5e-6, kJob = 512, kStep = 5e-3;
  const auto worst = [&](bool follows) {
    DeviceTimes times(1);
    double worst = 0;
    int before = 0;
    for (int i = 1; i <= 200; ++i) {
      const int jobs = static_cast<int>(i * kStep / (kJob * kPacket));
      DeviceTimes::Seen seen(1);
      seen.per_second = {(jobs - std::exchange(before, jobs)) * kJob / kStep};
      seen.at_end = {std::pow(0.29 * kJob / kStep, 2)};
      seen.follows = follows && i > 1;
      times.busy(seen, 1, true);
      if (i > 20) worst = std::max(worst, std::abs(times.seconds(0) / kPacket - 1));
    }
    return worst;
  };
  EXPECT_LT(worst(true), 0.02);
  // Where each sample stands alone, no more follows from many of them than from a few.
  EXPECT_GT(worst(false), worst(true));
}

TEST(DeviceTimes, WhatWasOnlyTriedIsSoonForgotten) {
  DeviceTimes times(2);
  for (int i = 0; i < 40; ++i) times.busy(seen(2, 3), 1, true);
  const double known = times.used(seen(2, 3).per_second);
  EXPECT_NEAR(known, 1, 0.01);
  // It takes all that comes, so more and more is tried; and then it turns out to be no faster than before.
  for (int i = 0; i < 7; ++i) times.calm(false);
  EXPECT_LT(times.used(seen(2, 3).per_second), 0.9);
  for (int i = 0; i < 2; ++i) times.busy(seen(2, 3), 1, true);
  EXPECT_NEAR(times.used(seen(2, 3).per_second), 1, 0.02);
}

TEST(DeviceTimes, OneTryAtATime) {
  DeviceTimes times = learnt();
  EXPECT_TRUE(times.suppose(0).empty()) << "it is known well";
  // More and more is tried of both chains. To suppose besides that one of them takes even less would be too much at once.
  for (int i = 0; i < 6; ++i) times.calm(false);
  EXPECT_TRUE(times.suppose(0).empty());
  EXPECT_TRUE(times.suppose(1).empty());
  // But if that has led to nothing, as when the plan then wants no more of the device, it does not bar others for ever.
  for (int i = 0; i < 10; ++i) times.pass();
  EXPECT_FALSE(times.suppose(0).empty());
}

TEST(DeviceTimes, OfADeviceThatBecameFasterAnyChainMayTakeMore) {
  // It was known well, by many mixtures, to take 1 us and 0.14. Now it takes 0.2 and 0.22: far more of the first chain
  // than was believed to be possible. That is found out step by step, until it is full.
  DeviceTimes times(2);
  for (int i = 0; i < 60; ++i) times.busy(i % 2 == 0 ? seen(0.9, 0.1 / 0.14) : seen(0.5, 0.5 / 0.14), 1, true);
  ASSERT_NEAR(times.seconds(0), 1e-6, 2e-8);
  ASSERT_NEAR(times.seconds(1), 0.14e-6, 1e-8);
  while (times.used(seen(3.4, 1.5).per_second) > 0.6) times.calm(true);
  for (int i = 0; i < 4; ++i) times.busy(seen(3.4, (1 - 3.4 * 0.2) / 0.22), 1, true);
  const double error = times.most_seconds(1) - times.seconds(1);
  EXPECT_LT(std::abs(times.seconds(1) - 0.22e-6), 2 * error) << times.seconds(1) << ", " << error;
  for (int i = 0; i < 10; ++i) times.pass();
  EXPECT_FALSE(times.suppose(1).empty() && times.suppose(0).empty());
}

}  // namespace
}  // namespace headrace::balance
