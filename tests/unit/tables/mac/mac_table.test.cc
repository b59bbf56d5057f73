#include "tables/mac/mac_table.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace headrace {
namespace {

constexpr uint64_t kHost = 0x020000000001;

TEST(MacTable, KnowsWhereAnAddressWasSeenLast) {
  MacTable table(64);
  EXPECT_EQ(table.find(kHost, 0, 5), std::nullopt);
  table.learn(kHost, 0, 7, 5);
  EXPECT_EQ(table.find(kHost, 0, 5), 7u);
  table.learn(kHost, 0, 0xfffffffe, 6);
  EXPECT_EQ(table.find(kHost, 0, 6), 0xfffffffeu);
  // One worker's clock may be a second ahead.
  EXPECT_EQ(table.find(kHost, 0, 5), 0xfffffffeu);
}

TEST(MacTable, KeepsNetworksApart) {
  MacTable table(64);
  table.learn(kHost, 10, 1, 0);
  table.learn(kHost, 20, 2, 0);
  EXPECT_EQ(table.find(kHost, 10, 0), 1u);
  EXPECT_EQ(table.find(kHost, 20, 0), 2u);
  EXPECT_EQ(table.find(kHost, 0, 0), std::nullopt);
  const std::vector<MacTable::Known> known = table.known(3);
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[1].address, kHost);
  EXPECT_EQ(known[1].network, 20);
  EXPECT_EQ(known[1].port, 2u);
  EXPECT_EQ(known[1].silent, 3u);
}

TEST(MacTable, ForgetsAfterTheTimeout) {
  MacTable table(64);
  table.set_timeout(10);
  table.learn(kHost, 0, 1, 100);
  EXPECT_EQ(table.find(kHost, 0, 109), 1u);
  EXPECT_EQ(table.find(kHost, 0, 110), std::nullopt);
  EXPECT_TRUE(table.known(110).empty());
  table.set_timeout(0);
  table.learn(kHost, 0, 1, 110);
  EXPECT_EQ(table.find(kHost, 0, 110), std::nullopt);
}

TEST(MacTable, LearnsNoGroupAndNoZero) {
  MacTable table(64);
  for (const uint64_t address : {uint64_t{0}, uint64_t{0xffffffffffff}, uint64_t{0x01005e000001}}) {
    table.learn(address, 0, 1, 0);
    EXPECT_EQ(table.find(address, 0, 0), std::nullopt);
  }
  EXPECT_TRUE(table.known(0).empty());
}

TEST(MacTable, ForgetsAPort) {
  MacTable table(1024);
  for (uint64_t i = 1; i <= 100; ++i) table.learn(i, 0, i % 3, 0);
  table.forget_port(1);
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(table.find(i, 0, 0).has_value(), i % 3 != 1) << i;
  table.clear();
  EXPECT_TRUE(table.known(0).empty());
}

/// What it finds is what was learned last; and without need it forgets little.
TEST(MacTable, AgreesWithAMap) {
  std::mt19937_64 random(5);
  MacTable table(4096);
  std::map<std::pair<uint64_t, uint16_t>, uint32_t> model;
  for (uint32_t now = 0; now < 50'000; ++now) {
    const std::pair key{uint64_t{0x020000000000} | random() % 1000, static_cast<uint16_t>(random() % 2)};
    const auto port = static_cast<uint32_t>(random() % 64);
    table.learn(key.first, key.second, port, 1);
    model[key] = port;
  }
  int found = 0;
  for (const auto& [key, port] : model) {
    const std::optional<uint32_t> is = table.find(key.first, key.second, 1);
    if (!is) continue;
    ++found;
    EXPECT_EQ(*is, port);
  }
  EXPECT_GT(found, 1950);
  EXPECT_EQ(table.known(1).size(), static_cast<size_t>(found));
}

TEST(MacTable, AFloodReplacesTheLongestSilent) {
  MacTable table(64);
  table.learn(kHost, 0, 1, 1'000'000);
  for (uint64_t i = 0; i < 10'000; ++i) {
    table.learn(0x060000000000 + i, 0, 2, 1'000'001 + static_cast<uint32_t>(i / 1000));
    // It goes on sending.
    table.learn(kHost, 0, 1, 1'000'001 + static_cast<uint32_t>(i / 1000) + 1);
    ASSERT_EQ(table.find(kHost, 0, 1'000'001), 1u);
  }
  EXPECT_EQ(table.known(1'000'011).size(), 64u);
}

/// Workers that learn in the same few places never make one see another address's port.
TEST(MacTable, HalfAChangeIsNotFound) {
  MacTable table(8);
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> finds{0};
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < 2; ++id)
    threads.emplace_back([&, id] {
      std::mt19937_64 random(id);
      for (int i = 0; i < 300'000; ++i) {
        const uint64_t host = 1 + random() % 32;
        table.learn(host, 0, static_cast<uint32_t>(host * 1000 + random() % 4), static_cast<uint32_t>(i));
      }
      ended = true;
    });
  threads.emplace_back([&] {
    while (!ended)
      for (uint64_t host = 1; host <= 32; ++host)
        if (const std::optional<uint32_t> port = table.find(host, 0, 0)) {
          EXPECT_EQ(*port / 1000, host);
          ++finds;
        }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(finds, 0u);
}

}  // namespace
}  // namespace headrace
