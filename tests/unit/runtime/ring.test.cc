#include "headrace/ring.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace headrace {
namespace {

TEST(Ring, GivesBackInOrderWhatItTook) {
  Ring<int> ring(8);
  EXPECT_EQ(ring.capacity(), 8u);
  int next_in = 0, next_out = 0;
  // All fill levels at all places, several times round.
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
}

TEST(Ring, HoldsNoMoreThanItsLimit) {
  Ring<int> ring(5, 5);
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
  Ring<int> closed(1, 0);
  EXPECT_EQ(closed.enqueue(values, 1), 0u);
}

// With more threads than CPUs, so that some lose theirs between reserving and publishing.
TEST(Ring, ManyThreadsLoseAndRepeatNothingAndKeepEachProducersOrder) {
  constexpr uint32_t kProducers = 6, kConsumers = 6, kEach = 20000, kBulk = 7;
  struct Value {
    uint32_t producer, number;
  };
  Ring<Value> ring(64, 50);
  std::atomic<uint32_t> taken{0};
  std::vector<std::vector<Value>> got(kConsumers);
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < kProducers; ++id)
    threads.emplace_back([&, id] {
      Value values[kBulk];
      for (uint32_t sent = 0; sent < kEach;) {
        const uint32_t n = std::min(kBulk, kEach - sent);
        for (uint32_t i = 0; i < n; ++i) values[i] = {id, sent + i};
        const uint32_t k = ring.enqueue(values, n);
        sent += k;
        if (k == 0) std::this_thread::yield();
      }
    });
  for (uint32_t id = 0; id < kConsumers; ++id)
    threads.emplace_back([&, id] {
      Value values[kBulk];
      while (taken.load() < kProducers * kEach) {
        const uint32_t n = ring.dequeue(values, kBulk);
        got[id].insert(got[id].end(), values, values + n);
        if (n > 0)
          taken.fetch_add(n);
        else
          std::this_thread::yield();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(taken.load(), kProducers * kEach);
  EXPECT_EQ(ring.size(), 0u);
  std::vector<std::vector<int>> seen(kProducers, std::vector<int>(kEach));
  for (const auto& values : got) {
    std::vector<int64_t> last(kProducers, -1);
    for (const Value& v : values) {
      EXPECT_GT(int64_t{v.number}, last[v.producer]);
      last[v.producer] = v.number;
      ++seen[v.producer][v.number];
    }
  }
  for (const auto& numbers : seen)
    for (const int n : numbers) ASSERT_EQ(n, 1);
}

}  // namespace
}  // namespace headrace
