#include "headrace/packet.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/packet_pool.hh"
#include "headrace/ring.hh"

namespace headrace {
namespace {

std::string text_of(const Packet& p) { return {reinterpret_cast<const char*>(p.data()), p.length()}; }

TEST(Packet, BeginsAnewWhenItIsReceived) {
  Packet* const p = Packet::make("abcdefgh", 8);
  ASSERT_NE(p, nullptr);
  p->set_network_header(2, 4);
  p->set_timestamp(Timestamp{7});
  p->add_turn();
  std::fill_n(p->anno(), Packet::kAnnoSize, uint8_t{0xff});
  p->reset_received(1514, {100, PacketType::kMulticast});
  EXPECT_EQ(p->length(), 1514u);
  EXPECT_EQ(p->headroom(), 100u);
  EXPECT_EQ(p->mac_header(), p->data());
  EXPECT_FALSE(p->has_network_header());
  EXPECT_FALSE(p->has_transport_header());
  EXPECT_EQ(p->packet_type(), PacketType::kMulticast);
  EXPECT_EQ(p->timestamp().ns, 0);
  EXPECT_EQ(p->turns(), 0);
  EXPECT_EQ(p->capacity(), kBufferBytes);
  EXPECT_TRUE(std::all_of(p->anno(), p->anno() + Packet::kAnnoSize, [](uint8_t byte) { return byte == 0; }));
  p->kill();
}

TEST(Packet, PullAndPushMoveTheFront) {
  Packet* p = Packet::make("abcdefgh", 8);
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(p->pull(3));
  EXPECT_EQ(text_of(*p), "defgh");
  EXPECT_FALSE(p->pull(6));
  EXPECT_EQ(text_of(*p), "defgh");
  EXPECT_TRUE(p->push(3));
  EXPECT_EQ(text_of(*p), "abcdefgh");
  p->kill();
}

TEST(Packet, PushBeyondTheHeadroomMovesTheData) {
  Packet* p = Packet::make("abc", 3, 4);
  ASSERT_NE(p, nullptr);
  p->set_network_header(1, 2);
  EXPECT_TRUE(p->push(100));
  ASSERT_EQ(p->length(), 103u);
  EXPECT_EQ(text_of(*p).substr(100), "abc");
  EXPECT_EQ(p->network_header_offset(), 101);
  EXPECT_FALSE(p->push(4000));
  EXPECT_EQ(p->length(), 103u);
  p->kill();
}

TEST(Packet, PutBeyondTheTailroomMovesTheData) {
  Packet* p = Packet::make("abc", 3);
  ASSERT_NE(p, nullptr);
  const uint32_t room = p->tailroom();
  EXPECT_TRUE(p->put(room + 20));
  EXPECT_EQ(text_of(*p).substr(0, 3), "abc");
  EXPECT_EQ(p->length(), room + 23);
  EXPECT_FALSE(p->put(5000));
  EXPECT_TRUE(p->take(room + 20));
  EXPECT_EQ(text_of(*p), "abc");
  p->kill();
}

TEST(Packet, PulledBytesMoveWithTheData) {
  Packet* p = Packet::make("0123456789", 10);
  ASSERT_NE(p, nullptr);
  ASSERT_TRUE(p->pull(4));
  ASSERT_TRUE(p->put(p->tailroom() + 20));
  ASSERT_TRUE(p->push(4));
  EXPECT_EQ(std::memcmp(p->data(), "0123456789", 10), 0);
  p->kill();
}

TEST(Packet, ALargePacketPulledFarKeepsItsBytes) {
  Packet* p = Packet::make(65000);
  ASSERT_NE(p, nullptr);
  for (uint32_t i = 0; i < p->length(); ++i) p->data()[i] = static_cast<uint8_t>(i * 7);
  EXPECT_TRUE(p->pull(64990));
  ASSERT_TRUE(p->pull(5));
  for (uint32_t i = 0; i < p->length(); ++i) EXPECT_EQ(p->data()[i], static_cast<uint8_t>((i + 64995) * 7));
  p->kill();
  EXPECT_EQ(Packet::make(70000), nullptr);
}

TEST(Packet, CloneIsIndependentAndComplete) {
  Packet* p = Packet::make("abcdef", 6);
  p->pull(2);
  p->set_network_header(1, 1);
  p->set_anno_u8(anno_offset::kPaint, 7);
  p->set_timestamp(Timestamp::from_us(5));
  Packet* q = p->clone();
  p->data()[0] = 'X';
  EXPECT_EQ(text_of(*q), "cdef");
  EXPECT_EQ(q->network_header_offset(), 1);
  EXPECT_EQ(q->anno_u8(anno_offset::kPaint), 7);
  EXPECT_EQ(q->timestamp(), Timestamp::from_us(5));
  EXPECT_TRUE(q->push(2));
  EXPECT_EQ(text_of(*q), "abcdef");
  p->kill();
  q->kill();
}

TEST(Packet, TimestampIsZeroUntilSet) {
  Packet* p = Packet::make(10);
  p->set_timestamp(Timestamp::from_sec(1));
  p->kill();
  std::vector<Packet*> all;
  // The same buffer comes round again; its old timestamp must not show.
  for (int i = 0; i < 20000; ++i) {
    Packet* q = Packet::make(10);
    ASSERT_NE(q, nullptr);
    ASSERT_FALSE(q->timestamp());
    all.push_back(q);
  }
  for (Packet* q : all) q->kill();
}

TEST(PacketPool, EveryBufferComesBack) {
  PacketPool& pool = PacketPool::instance();
  const uint32_t before = pool.in_use();
  std::vector<Packet*> all;
  for (int i = 0; i < 30000; ++i) all.push_back(Packet::make(64));
  EXPECT_EQ(pool.in_use(), before + 30000);
  Batch batch;
  for (Packet* p : all) {
    batch.push_back(p);
    if (batch.full()) batch.kill();
  }
  batch.kill();
  EXPECT_EQ(pool.in_use(), before);
}

TEST(PacketPool, ExhaustionIsNotACrash) {
  PacketPool& pool = PacketPool::instance();
  std::vector<Packet*> all;
  for (;;) {
    Packet* p = Packet::make(64);
    if (!p) break;
    all.push_back(p);
    ASSERT_LE(all.size(), pool.buffers());
  }
  EXPECT_GT(all.size(), pool.buffers() / 2);
  Packet* some[16];
  EXPECT_EQ(pool.allocate_bulk(some, 16), 0u);
  for (Packet* p : all) p->kill();
  Packet* again = Packet::make(64);
  EXPECT_NE(again, nullptr);
  again->kill();
}

TEST(Ring, KeepsOrderAndCapacity) {
  Ring<int> ring(8);
  int in[10];
  std::iota(in, in + 10, 0);
  EXPECT_EQ(ring.enqueue(in, 10), ring.capacity() < 10 ? ring.capacity() : 10);
  int out[10];
  EXPECT_EQ(ring.dequeue(out, 3), 3u);
  EXPECT_EQ(out[2], 2);
  EXPECT_EQ(ring.enqueue(in + 8, 2), 2u);
  EXPECT_EQ(ring.dequeue(out, 10), 7u);
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[6], 9);
  EXPECT_EQ(ring.dequeue(out, 1), 0u);
}

TEST(Ring, LosesAndDoublesNothingAmongThreads) {
  constexpr uint32_t kEach = 200000;
  Ring<uint32_t> ring(1024);
  std::vector<std::vector<uint32_t>> got(2);
  std::atomic<uint32_t> taken{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kEach;) {
        uint32_t values[7];
        uint32_t n = std::min<uint32_t>(7, kEach - i);
        for (uint32_t j = 0; j < n; ++j) values[j] = t * kEach + i + j;
        const uint32_t sent = ring.enqueue(values, n);
        if (sent == 0) std::this_thread::yield();
        i += sent;
      }
    });
    threads.emplace_back([&, t] {
      while (taken.load() < 2 * kEach) {
        uint32_t values[5];
        const uint32_t n = ring.dequeue(values, 5);
        if (n == 0) std::this_thread::yield();
        taken += n;
        got[t].insert(got[t].end(), values, values + n);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::vector<int> seen(2 * kEach);
  for (const auto& list : got) {
    uint32_t last[2] = {0, 0};
    bool any[2] = {false, false};
    for (const uint32_t v : list) {
      ++seen[v];
      const uint32_t who = v / kEach;
      // One consumer sees each producer's values in their order.
      if (any[who]) {
        ASSERT_GT(v, last[who]);
      }
      last[who] = v;
      any[who] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 2 * kEach);
}

}  // namespace
}  // namespace headrace
