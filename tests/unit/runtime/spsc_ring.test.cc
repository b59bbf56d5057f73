#include "headrace/spsc_ring.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace headrace {
namespace {

TEST(SpscRing, GivesBackInOrderWhatItTook) {
  SpscRing<int> ring(8);
  int next_in = 0, next_out = 0;
  for (uint32_t n = 1; n <= 8; ++n)
    for (int round = 0; round < 20; ++round) {
      std::vector<int> values(n);
      std::iota(values.begin(), values.end(), next_in);
      ASSERT_EQ(ring.enqueue(values.data(), n), n);
      next_in += static_cast<int>(n);
      EXPECT_EQ(ring.size(), n);
      std::vector<int> out(10);
      ASSERT_EQ(ring.dequeue(out.data(), 10), n);
      for (uint32_t i = 0; i < n; ++i) EXPECT_EQ(out[i], next_out++);
    }
  int none;
  EXPECT_EQ(ring.dequeue(&none, 1), 0u);
  EXPECT_EQ(ring.size(), 0u);
}

TEST(SpscRing, HoldsNoMoreThanItsCapacity) {
  SpscRing<int> ring(5);
  EXPECT_EQ(ring.capacity(), 5u);
  const int values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  int out[8];
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(ring.enqueue(values, 3), 3u);
    EXPECT_EQ(ring.enqueue(values + 3, 5), 2u);
    EXPECT_EQ(ring.enqueue(values, 1), 0u);
    EXPECT_EQ(ring.dequeue(out, 1), 1u);
    EXPECT_EQ(ring.enqueue(values + 5, 2), 1u);
    ASSERT_EQ(ring.dequeue(out, 8), 5u);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], i + 1);
  }
}

TEST(SpscRing, TwoThreadsLoseAndRepeatNothing) {
  constexpr uint32_t kAll = 200000, kBulk = 7;
  SpscRing<uint32_t> ring(50);
  std::thread producer([&] {
    uint32_t values[kBulk];
    for (uint32_t sent = 0; sent < kAll;) {
      const uint32_t n = std::min(kBulk, kAll - sent);
      std::iota(values, values + n, sent);
      const uint32_t k = ring.enqueue(values, n);
      sent += k;
      if (k == 0) std::this_thread::yield();
    }
  });
  uint32_t next = 0, values[kBulk];
  bool in_order = true;
  while (next < kAll) {
    const uint32_t n = ring.dequeue(values, kBulk);
    for (uint32_t i = 0; i < n; ++i) in_order &= values[i] == next + i;
    next += n;
    if (n == 0) std::this_thread::yield();
  }
  producer.join();
  EXPECT_TRUE(in_order);
  EXPECT_EQ(ring.size(), 0u);
}

}  // namespace
}  // namespace headrace
