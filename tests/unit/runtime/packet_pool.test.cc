#include "headrace/packet_pool.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace headrace {
namespace {

/// Takes `n` buffers as worker `worker`, without a cache.
std::vector<Packet*> take(PacketPool& pool, int worker, uint32_t n) {
  std::vector<Packet*> packets(n);
  std::thread([&] {
    detail::t_thread_id = worker;
    packets.resize(pool.allocate_shared(packets.data(), n));
  }).join();
  return packets;
}

TEST(PacketPool, SortPutsFreeBuffersInOrder) {
  PacketPool pool;
  pool.set_buffers(8192);
  std::thread([&pool] {
    detail::t_thread_id = 0;
    pool.sort();  // none yet
    ASSERT_GE(pool.reserve(3000), 3000u);
    std::mt19937_64 random(1);
    std::vector<Packet*> some(3000);
    // The cache's slots are used in a circle.
    for (int round = 0; round < 40; ++round) {
      SCOPED_TRACE(round);
      ASSERT_EQ(pool.allocate_bulk(some.data(), 3000), 3000u);
      std::shuffle(some.begin(), some.end(), random);
      pool.release_bulk(some.data(), 3000);
      pool.sort();
      ASSERT_EQ(pool.allocate_bulk(some.data(), 3000), 3000u);
      ASSERT_EQ(std::set<Packet*>(some.begin(), some.end()).size(), 3000u);
      ASSERT_TRUE(std::is_sorted(some.begin(), some.end(), std::less<>()));
      pool.release_bulk(some.data(), 3000);
    }
  }).join();
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(PacketPool, WorkersGetBuffersOfTheirNode) {
  PacketPool pool;
  pool.set_buffers(4096);
  pool.set_nodes({5, 7, 5, 5});
  pool.prepare();
  EXPECT_EQ(pool.part_of_worker(0), pool.part_of_worker(2));
  EXPECT_NE(pool.part_of_worker(0), pool.part_of_worker(1));
  for (int worker = 0; worker < 4; ++worker) pool.settle(worker);
  std::vector<Packet*> all;
  for (int round = 0; round < 3; ++round) {
    all.clear();
    for (int worker = 0; worker < 4; ++worker) {
      const std::vector<Packet*> some = take(pool, worker, 200);
      ASSERT_EQ(some.size(), 200u);
      for (const Packet* p : some) {
        EXPECT_EQ(pool.part_of(p), pool.part_of_worker(worker));
        EXPECT_TRUE(pool.contains(p));
        EXPECT_EQ(p->capacity(), PacketPool::kCapacity);
      }
      all.insert(all.end(), some.begin(), some.end());
    }
    EXPECT_EQ(std::set<Packet*>(all.begin(), all.end()).size(), all.size());
    EXPECT_EQ(pool.in_use(), 800u);
    // Whoever returns them, they go home.
    std::rotate(all.begin(), all.begin() + 37, all.end());
    pool.release_shared(all.data(), static_cast<uint32_t>(all.size()));
    EXPECT_EQ(pool.in_use(), 0u);
  }
}

TEST(PacketPool, ANodeWithoutBuffersTakesThoseOfOthers) {
  PacketPool pool;
  pool.set_buffers(1000);
  pool.set_nodes({0, 1});
  pool.prepare();
  std::vector<Packet*> packets = take(pool, 0, 2000);
  EXPECT_EQ(packets.size(), 1000u);
  EXPECT_EQ(pool.in_use(), 1000u);
  EXPECT_TRUE(take(pool, 1, 1).empty());
  EXPECT_EQ(std::count_if(packets.begin(), packets.end(), [&](const Packet* p) { return pool.part_of(p) == 1; }), 500);
  pool.release_shared(packets.data(), 1000);
  EXPECT_EQ(take(pool, 1, 500).size(), 500u);
  EXPECT_EQ(pool.in_use(), 500u);
}

TEST(PacketPool, BuffersThatWereUsedAreUsedAgainFirst) {
  PacketPool pool;
  pool.set_buffers(3000);
  const std::vector<Packet*> first = take(pool, 0, 100);
  pool.release_shared(first.data(), 100);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Packet*> again = take(pool, 0, 70);
    for (Packet* p : again) EXPECT_NE(std::find(first.begin(), first.end(), p), first.end());
    pool.release_shared(again.data(), 70);
  }
}

TEST(PacketPool, WithoutWorkersThereIsOnePart) {
  PacketPool pool;
  pool.set_buffers(10);
  Packet* all[20];
  EXPECT_EQ(pool.allocate_shared(all, 20), 10u);
  EXPECT_EQ(pool.part_of_worker(3), 0);
  pool.release_shared(all, 10);
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace headrace
