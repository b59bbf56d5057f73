#include "control/openflow/switch/packet_buffers.hh"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "headrace/packet_pool.hh"
#include "support/test_router.hh"

namespace headrace::openflow {
namespace {

using testing::TestRouter;

Packet* packet_of(uint32_t number) { return Packet::make(&number, sizeof number); }
uint32_t number_of(const Packet& p) {
  uint32_t number;
  std::memcpy(&number, p.data(), sizeof number);
  return number;
}

struct PacketBuffersTest : ::testing::Test {
  TestRouter pool{"Idle -> Discard;"};
  uint32_t before = PacketPool::instance().in_use();

  void TearDown() override { EXPECT_EQ(PacketPool::instance().in_use(), before); }

  /// The number of the packet that was taken.
  static uint32_t take(PacketBuffers& buffers, uint32_t id) {
    PacketBuffers::Buffered buffered;
    EXPECT_EQ(buffers.take(id, buffered), ErrorCode::kNone);
    if (buffered.packet == nullptr) return UINT32_MAX;
    const uint32_t number = number_of(*buffered.packet);
    buffered.packet->kill();
    return number;
  }
  static ErrorCode error_of(PacketBuffers& buffers, uint32_t id) {
    PacketBuffers::Buffered buffered;
    const ErrorCode error = buffers.take(id, buffered);
    EXPECT_EQ(buffered.packet, nullptr);
    return error;
  }
};

TEST_F(PacketBuffersTest, GivesEachPacketOnce) {
  PacketBuffers buffers({.places = 4, .age_limit = 100});
  PacketBuffers::Buffered buffered;
  const uint32_t id = buffers.store(packet_of(7), 12, 0);
  ASSERT_NE(id, kNoBuffer);
  ASSERT_EQ(buffers.take(id, buffered), ErrorCode::kNone);
  EXPECT_EQ(number_of(*buffered.packet), 7u);
  EXPECT_EQ(buffered.in_port, 12u);
  buffered.packet->kill();
  EXPECT_EQ(error_of(buffers, id), ErrorCode::kRequestBufferEmpty);
}

TEST_F(PacketBuffersTest, KnowsNoIdThatItHasNotGivenOut) {
  PacketBuffers buffers({.places = 3, .age_limit = 100});
  for (uint32_t id = 0; id < 64; ++id) EXPECT_EQ(error_of(buffers, id), ErrorCode::kRequestBufferUnknown) << id;
  EXPECT_EQ(error_of(buffers, kNoBuffer), ErrorCode::kRequestBufferUnknown);
  const uint32_t id = buffers.store(packet_of(1), 1, 0);
  for (uint32_t bit = 0; bit < 32; ++bit)
    EXPECT_EQ(error_of(buffers, id ^ 1u << bit), ErrorCode::kRequestBufferUnknown) << bit;
  EXPECT_EQ(take(buffers, id), 1u);
}

/// A switch should not use a buffer again before a controller has handled it or some time has passed (ONF TS-023, section
/// 7.4.1).
TEST_F(PacketBuffersTest, UsesAPlaceAgainAfterTheAgeLimitOnly) {
  PacketBuffers buffers({.places = 2, .age_limit = 100});
  const uint32_t first = buffers.store(packet_of(1), 1, 10), second = buffers.store(packet_of(2), 1, 60);
  Packet* const third = packet_of(3);
  EXPECT_EQ(buffers.store(third, 1, 109), kNoBuffer);
  EXPECT_EQ(buffers.refused(), 1u);
  EXPECT_EQ(buffers.next_expiry(), 110);
  const uint32_t id = buffers.store(third, 1, 110);
  ASSERT_NE(id, kNoBuffer);
  EXPECT_EQ(buffers.expired(), 1u);
  EXPECT_EQ(error_of(buffers, first), ErrorCode::kRequestBufferUnknown);
  EXPECT_EQ(take(buffers, second), 2u);
  EXPECT_EQ(take(buffers, id), 3u);
  EXPECT_EQ(buffers.next_expiry(), INT64_MAX);
}

TEST_F(PacketBuffersTest, GivesOldPacketsBackToThePool) {
  PacketBuffers buffers({.places = 8, .age_limit = 100});
  const uint32_t in_use = PacketPool::instance().in_use();
  const uint32_t id = buffers.store(packet_of(1), 1, 0);
  (void)buffers.store(packet_of(2), 1, 50);
  buffers.expire(100);
  EXPECT_EQ(PacketPool::instance().in_use(), in_use + 1);
  EXPECT_EQ(error_of(buffers, id), ErrorCode::kRequestBufferUnknown);
  EXPECT_EQ(buffers.waiting(), 1u);
  // The last one goes with the store.
}

/// Against a plain map: many rounds, so that places are used again many times.
TEST_F(PacketBuffersTest, AgreesWithAMap) {
  std::mt19937 random(11);
  for (const uint32_t places : {1u, 2u, 5u, 64u}) {
    PacketBuffers buffers({.places = places, .age_limit = 40});
    EXPECT_EQ(buffers.places(), places);
    std::map<uint32_t, std::pair<uint32_t, int64_t>> waiting;  // by id: number, time
    std::deque<uint32_t> taken;
    std::set<uint32_t> ids;
    int64_t now = 0;
    for (uint32_t number = 0; number < 20'000; ++number) {
      now += static_cast<int64_t>(random() % 4);
      std::erase_if(waiting, [&](const auto& entry) { return entry.second.second + 40 <= now; });
      if (random() % 3 == 0 && !waiting.empty()) {
        auto it = waiting.begin();
        std::advance(it, random() % waiting.size());
        buffers.expire(now);
        ASSERT_EQ(take(buffers, it->first), it->second.first);
        ASSERT_EQ(error_of(buffers, it->first), ErrorCode::kRequestBufferEmpty);
        taken.push_back(it->first);
        waiting.erase(it);
      } else {
        Packet* const packet = packet_of(number);
        const uint32_t id = buffers.store(packet, 1, now);
        ASSERT_EQ(id == kNoBuffer, waiting.size() == places);
        if (id == kNoBuffer) {
          packet->kill();
        } else {
          ASSERT_TRUE(ids.insert(id).second) << "an id was given out twice";
          waiting[id] = {number, now};
        }
      }
      if (taken.size() > 50) {
        ASSERT_NE(error_of(buffers, taken.front()), ErrorCode::kNone);
        taken.pop_front();
      }
    }
  }
}

/// Generations of the largest store wrap after 65,535 uses of a place, where the id of all ones is left out.
TEST_F(PacketBuffersTest, NeverGivesOutNoBuffer) {
  PacketBuffers buffers({.places = PacketBuffers::kMostPlaces, .age_limit = 1000});
  // All places but the last one, whose number is all ones, stay in use.
  std::vector<uint32_t> ids;
  Packet* const other = packet_of(0);
  for (uint32_t i = 0; i + 1 < buffers.places(); ++i) ids.push_back(buffers.store(other, 1, 0));
  Packet* packet = packet_of(1);
  std::set<uint32_t> seen;
  for (int i = 0; i < 65'535; ++i) {
    const uint32_t id = buffers.store(packet, 1, 0);
    ASSERT_NE(id, kNoBuffer);
    ASSERT_TRUE(seen.insert(id).second) << i;
    PacketBuffers::Buffered buffered;
    ASSERT_EQ(buffers.take(id, buffered), ErrorCode::kNone);
    packet = buffered.packet;
  }
  EXPECT_TRUE(seen.contains(buffers.store(packet, 1, 0)));
  for (const uint32_t id : ids) {
    PacketBuffers::Buffered buffered;
    ASSERT_EQ(buffers.take(id, buffered), ErrorCode::kNone);
  }
  other->kill();
}

}  // namespace
}  // namespace headrace::openflow
