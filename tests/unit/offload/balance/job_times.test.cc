// What is believed of jobs of sizes that were seen, and of others.

#include <gtest/gtest.h>

#include "offload/balance/JobTimes.hh"

namespace headrace::balance {
namespace {

TEST(BalanceJobTimes, ShortestTimesOfTwoSizesTellOthers) {
  JobTimes times;
  EXPECT_EQ(times.of(64), 0);
  for (const double slow : {1.5, 1.0, 2.0}) {
    times.add(64, slow * 50'000);
    times.add(256, slow * 170'000);
  }
  EXPECT_DOUBLE_EQ(times.of(64), 50'000);
  EXPECT_DOUBLE_EQ(times.of(256), 170'000);
  EXPECT_DOUBLE_EQ(times.of(128), 90'000);
  EXPECT_DOUBLE_EQ(times.of(512), 330'000);
  EXPECT_DOUBLE_EQ(times.of(32), 30'000);
}

TEST(BalanceJobTimes, SmallJobsTellThatALargeOneWaited) {
  JobTimes times;
  times.add(128, 140'000);  // behind others
  EXPECT_DOUBLE_EQ(times.at_least(128), 140'000);
  times.add(32, 35'000);
  // From one size nothing follows.
  EXPECT_DOUBLE_EQ(times.at_least(128), 140'000);
  times.add(64, 55'000);
  EXPECT_DOUBLE_EQ(times.at_least(128), 95'000);
  EXPECT_DOUBLE_EQ(times.of(128), 140'000);
  // A large job that was quick was no mistake.
  times.add(128, 60'000);
  EXPECT_DOUBLE_EQ(times.at_least(128), 60'000);
}

TEST(BalanceJobTimes, OneSizeIsWorthATry) {
  JobTimes times;
  times.add(64, 50'000);
  // Up to twice as large: less than twice as long. Beyond that it is as careful as can be.
  EXPECT_GT(times.of(128), 50'000);
  EXPECT_LT(times.of(128), 100'000);
  EXPECT_DOUBLE_EQ(times.of(512), 4 * times.of(128));
  EXPECT_LT(times.of(16), 50'000);
  EXPECT_GT(times.of(16), 50'000 / 4.0);
}

TEST(BalanceJobTimes, WhatWasSeenOnceIsTriedAgain) {
  JobTimes times;
  times.add(64, 50'000);
  times.add(256, 1'000'000);  // behind others
  for (int ms = 0; ms < 500; ++ms) {
    times.add(64, 50'000);
    times.pass(1e-3);
  }
  EXPECT_LT(times.of(256), 550'000);
  EXPECT_NEAR(times.of(64), 50'000, 2'500);
  // What is seen then counts. If it was right before, it is doubted more slowly.
  times.add(256, 990'000);
  EXPECT_DOUBLE_EQ(times.of(256), 990'000);
  for (int ms = 0; ms < 500; ++ms) times.pass(1e-3);
  const double slowly = times.of(256);
  EXPECT_GT(slowly, 600'000);
  times.add(256, 170'000);
  EXPECT_DOUBLE_EQ(times.of(256), 170'000);
  for (int ms = 0; ms < 500; ++ms) times.pass(1e-3);
  EXPECT_LT(times.of(256), 90'000);
}

TEST(BalanceJobTimes, ALargerJobTakesNoLess) {
  JobTimes times;
  times.add(64, 80'000);
  times.add(256, 60'000);
  EXPECT_LE(times.of(64), times.of(256));
  times.add(0, 10);
  times.add(32, -1);
  times.add(1e9, 1e9);
  EXPECT_LE(times.of(16), 80'000);
}

}  // namespace
}  // namespace headrace::balance
