/// \file
/// The way of packets from workers to the control thread; here threads are workers.

#include "control/openflow/switch/packet_in_queue.hh"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>
#include <vector>

#include "headrace/packet_pool.hh"
#include "support/test_router.hh"

namespace headrace::openflow {
namespace {

using enum PacketInReason;
using Loss = PacketInQueue::Loss;
using testing::TestRouter;

constexpr int64_t kNsPerSecond = 1'000'000'000;

int passed(RateLimit& limit, int64_t from, int64_t to, int64_t step) {
  int n = 0;
  for (int64_t now = from; now < to; now += step) n += limit.take(now) ? 1 : 0;
  return n;
}

TEST(OpenFlowRateLimit, HoldsRateAndBurst) {
  RateLimit limit(1000, 50);
  EXPECT_EQ(passed(limit, 5 * kNsPerSecond, 5 * kNsPerSecond + 100, 1), 50);  // at once
  EXPECT_EQ(passed(limit, 6 * kNsPerSecond, 7 * kNsPerSecond, 10'000), 50 + 999);
  EXPECT_EQ(passed(limit, 7 * kNsPerSecond, 8 * kNsPerSecond, 500'000), 1000);     // twice the rate
  EXPECT_EQ(passed(limit, 10 * kNsPerSecond, 11 * kNsPerSecond, 2'000'000), 500);  // below it
  RateLimit none;
  EXPECT_EQ(passed(none, 0, 1000, 1), 1000);
  RateLimit one(1, 0);
  EXPECT_EQ(passed(one, kNsPerSecond, 4 * kNsPerSecond, kNsPerSecond / 10), 3);
}

/// Four threads that ask without end get the rate together, whether all of them ask or one.
TEST(OpenFlowRateLimit, IsSharedByWorkers) {
  TestRouter workers("Idle -> Discard;", 4);
  RateLimit limit(10'000, 100);
  std::atomic<int64_t> now{kNsPerSecond};
  std::atomic<int> passes{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&, id] {
      detail::t_thread_id = id;
      for (int64_t at = now; at < 2 * kNsPerSecond; at = now.fetch_add(1000) + 1000)
        if (limit.take(at)) ++passes;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(passes, 10'000 + 100, 10);
}

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

QueuedPacketIn about(uint32_t entry, PacketInReason reason = kNoMatch) {
  QueuedPacketIn in;
  in.entry = entry;
  in.reason = reason;
  in.table = 3;
  in.max_length = 128;
  in.in_port = 7;
  in.metadata = 8;
  in.tunnel_id = 9;
  return in;
}

struct PacketInQueueTest : ::testing::Test {
  TestRouter workers{"Idle -> Discard;", 4};
  uint32_t before = PacketPool::instance().in_use();
  Packet* const packet = Packet::make("what a packet has", 17);

  void TearDown() override {
    packet->kill();
    EXPECT_EQ(PacketPool::instance().in_use(), before);
  }
  /// The entries of what waits, in order.
  static std::vector<uint32_t> drained(PacketInQueue& queue, int most = 1 << 20) {
    std::vector<uint32_t> entries;
    (void)queue.drain(most, [&](const QueuedPacketIn& in) {
      entries.push_back(in.entry);
      in.packet->kill();
    });
    return entries;
  }
};

TEST_F(PacketInQueueTest, HandsOverACopyWithAllThatIsSaid) {
  PacketInQueue queue({.most = 8, .rates = {}});
  queue.set_wanted(kAction, true);
  EXPECT_FALSE(readable(queue.fd()));
  ASSERT_TRUE(queue.offer(*packet, about(5, kAction), 1));
  packet->data()[0] = 'W';
  EXPECT_TRUE(readable(queue.fd()));
  EXPECT_EQ(queue.drain(4,
                        [&](const QueuedPacketIn& in) {
                          EXPECT_EQ(std::string(reinterpret_cast<const char*>(in.packet->data()), in.packet->length()),
                                    "what a packet has");
                          EXPECT_EQ(in.reason, kAction);
                          EXPECT_EQ(in.table, 3);
                          EXPECT_EQ(in.max_length, 128);
                          EXPECT_EQ(in.entry, 5u);
                          EXPECT_EQ(in.in_port, 7u);
                          EXPECT_EQ(in.metadata, 8u);
                          EXPECT_EQ(in.tunnel_id, 9u);
                          in.packet->kill();
                        }),
            1);
  EXPECT_FALSE(readable(queue.fd()));
  EXPECT_EQ(queue.queued(kAction), 1u);
}

TEST_F(PacketInQueueTest, CountsWhyPacketsAreLost) {
  PacketInQueue queue({.most = 4, .rates = {{{}, {10, 2}, {}}}});
  EXPECT_FALSE(queue.offer(*packet, about(0), 0));
  queue.refuse(kNoMatch);
  EXPECT_EQ(queue.lost(kNoMatch, Loss::kUnwanted), 2u);
  queue.set_wanted(kNoMatch, true);
  queue.set_wanted(kAction, true);
  // Each reason has a rate of its own.
  for (uint32_t i = 0; i < 5; ++i) (void)queue.offer(*packet, about(i, kAction), kNsPerSecond);
  EXPECT_EQ(queue.lost(kAction, Loss::kLimited), 3u);
  for (uint32_t i = 10; i < 15; ++i) (void)queue.offer(*packet, about(i), kNsPerSecond);
  EXPECT_EQ(queue.lost(kNoMatch, Loss::kFull), 3u);
  EXPECT_EQ(drained(queue), (std::vector<uint32_t>{0, 1, 10, 11}));
  queue.set_wanted(kAction, false);
  EXPECT_FALSE(queue.offer(*packet, about(0, kAction), 9 * kNsPerSecond));
  EXPECT_TRUE(queue.offer(*packet, about(0), 9 * kNsPerSecond));
  EXPECT_EQ(queue.queued(kNoMatch), 3u);
  EXPECT_EQ(queue.queued(kAction), 2u);
  EXPECT_EQ(queue.lost(kAction, Loss::kUnwanted), 1u);
  // What waits goes with the queue.
}

TEST_F(PacketInQueueTest, CountsPacketsWithoutABuffer) {
  PacketInQueue queue({.most = 4, .rates = {}});
  queue.set_wanted(kNoMatch, true);
  Packet* rest = nullptr;
  while (Packet* const p = Packet::make(64)) {
    p->set_next(rest, 0);
    rest = p;
  }
  EXPECT_FALSE(queue.offer(*packet, about(0), 0));
  EXPECT_EQ(queue.lost(kNoMatch, Loss::kNoBuffer), 1u);
  EXPECT_FALSE(readable(queue.fd()));
  while (rest != nullptr) {
    Packet* const next = rest->next();
    rest->kill();
    rest = next;
  }
}

/// The control thread takes a few packets at a time, so that others are served between them.
TEST_F(PacketInQueueTest, StaysReadableUntilAllAreTaken) {
  PacketInQueue queue({.most = 64, .rates = {}});
  queue.set_wanted(kNoMatch, true);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_TRUE(queue.offer(*packet, about(i), 0));
  EXPECT_EQ(drained(queue, 2), (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(readable(queue.fd()));
  EXPECT_TRUE(queue.offer(*packet, about(5), 0));
  EXPECT_EQ(drained(queue, 4), (std::vector<uint32_t>{2, 3, 4, 5}));
  EXPECT_TRUE(readable(queue.fd()));
  EXPECT_EQ(drained(queue, 4), std::vector<uint32_t>());
  EXPECT_FALSE(readable(queue.fd()));
}

/// No packet stays behind while the control thread sleeps, and none comes twice or out of its worker's order.
TEST_F(PacketInQueueTest, LosesNoWakeUpBetweenThreads) {
  constexpr uint32_t kEach = 20'000;
  PacketInQueue queue({.most = 256, .rates = {}});
  queue.set_wanted(kNoMatch, true);
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < 3; ++id)
    threads.emplace_back([&, id] {
      detail::t_thread_id = static_cast<int>(id) + 1;
      for (uint32_t i = 0; i < kEach && !ended;) {
        if (queue.offer(*packet, about(id << 16 | i), 0)) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  uint32_t next[3] = {};
  for (uint32_t seen = 0; seen < 3 * kEach;) {
    pollfd p{queue.fd(), POLLIN, 0};
    if (poll(&p, 1, 5000) != 1) {
      ADD_FAILURE() << "asleep with " << seen << " packets seen";
      break;
    }
    seen += static_cast<uint32_t>(queue.drain(16, [&](const QueuedPacketIn& in) {
      EXPECT_EQ(in.entry & 0xffff, next[in.entry >> 16]++);
      in.packet->kill();
    }));
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace headrace::openflow
