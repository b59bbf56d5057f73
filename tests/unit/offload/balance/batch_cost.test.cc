#include <gtest/gtest.h>

#include "offload/balance/BatchCost.hh"

namespace headrace::balance {
namespace {

/// Batches of 1 to `most` packets: `overhead` cycles each, and `packet` for each packet.
BatchSums batches(uint64_t most, uint64_t overhead, uint64_t packet) {
  BatchSums sums;
  for (uint64_t i = 0; i < 64; ++i) {
    const uint64_t n = 1 + i % most;
    sums.add(n, overhead + packet * n);
  }
  return sums;
}

TEST(BatchCost, SeesWhatALargeBatchCosts) {
  BatchCost cost;
  for (int i = 0; i < 5; ++i) cost.add(batches(16, 1000, 70));
  const double mean = 8.5, seen = 70 + 1000 / mean;
  EXPECT_NEAR(cost.in_full(seen), 70 + 1000.0 / 64, 2);
}

TEST(BatchCost, LargerBatchesThatCostLessSayNothing) {
  // Batches that cost nothing by themselves, but the small ones find caches cold.
  BatchSums cold;
  for (int i = 0; i < 64; ++i) cold.add(i % 2 ? 16 : 4, i % 2 ? 16 * 72 : 20000);
  BatchCost cost;
  for (int i = 0; i < 5; ++i) cost.add(cold);
  EXPECT_EQ(cost.in_full(72), 72);
  for (int i = 0; i < 5; ++i) cost.add(batches(16, 0, 72));
  EXPECT_NEAR(cost.in_full(72), 72, 0.1);
}

}  // namespace
}  // namespace headrace::balance
