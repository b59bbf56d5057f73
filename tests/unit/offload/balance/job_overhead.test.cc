// What a job costs by itself, as far as jobs of several sizes tell.

#include <gtest/gtest.h>

#include "offload/balance/JobOverhead.hh"

namespace headrace::balance {
namespace {

TEST(BalanceJobOverhead, JobsOfSeveralSizesTellIt) {
  // Two chains of unlike cost; in jobs of 16 to 512, a packet has its part of 3,000 cycles.
  JobOverhead overhead(2);
  for (const int job : {16, 512, 64, 32}) {
    overhead.add(0, 50 + 3000.0 / job, job);
    overhead.add(1, 200 + 3000.0 / job, job);
  }
  EXPECT_NEAR(overhead.cycles(), 3000, 1e-6);
  EXPECT_NEAR(overhead.in_full(50 + 3000.0 / 16, 16, 256), 50 + 3000.0 / 256, 1e-6);
  EXPECT_NEAR(overhead.in_full(50 + 3000.0 / 512, 512, 32), 50 + 3000.0 / 32, 1e-6);
}

TEST(BalanceJobOverhead, WhatChainsCostIsNoSignOfIt) {
  JobOverhead overhead(2);
  for (int i = 0; i < 10; ++i) {
    overhead.add(0, 50, 512);
    overhead.add(1, 400, 16);
  }
  EXPECT_EQ(overhead.cycles(), 0);
  EXPECT_EQ(overhead.in_full(400, 16, 512), 400);
}

TEST(BalanceJobOverhead, JobsOfNearlyOneSizeSayNothing) {
  JobOverhead overhead(1);
  for (const int job : {250, 256, 240, 256}) overhead.add(0, job == 256 ? 50 : 60, job);
  EXPECT_EQ(overhead.cycles(), 0);
}

TEST(BalanceJobOverhead, ItIsNeverNearlyAll) {
  JobOverhead overhead(1);
  for (const int job : {2, 512, 2, 512}) overhead.add(0, 50 + 3000.0 / job, job);
  EXPECT_DOUBLE_EQ(overhead.in_full(100, 2, 512), 25);
  // What has no packets has no cost.
  overhead.add(0, 100, 0);
  EXPECT_DOUBLE_EQ(overhead.in_full(100, 0, 512), 100);
}

}  // namespace
}  // namespace headrace::balance
