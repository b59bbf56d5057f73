#include "offload/balance/Cost.hh"

#include <gtest/gtest.h>

namespace headrace::balance {
namespace {

TEST(BalanceCost, TwoSamplesFarOffBeginItAnew) {
  Cost cost;
  for (int i = 0; i < 10; ++i) cost.add(100 * 1000, 1000, i);
  EXPECT_EQ(cost.began_ns(), 0);
  cost.add(200 * 10, 10, 10);
  EXPECT_TRUE(cost.suspect());
  EXPECT_NEAR(cost.mean(), 100, 1);
  cost.add(200 * 10, 10, 11);
  EXPECT_EQ(cost.mean(), 200);
  EXPECT_EQ(cost.began_ns(), 11);
}

TEST(BalanceCost, AProbeCountsBehindManyPackets) {
  // A device that was in use costs a fifth less now, as probes of a thousandth of the packets tell.
  Cost cost;
  for (int i = 0; i < 10; ++i) cost.add(100 * 64000, 64000, i);
  for (int i = 10; i < 30; ++i) cost.add(80 * 64, 64, i, true);
  EXPECT_NEAR(cost.mean(), 80, 4);
}

}  // namespace
}  // namespace headrace::balance
