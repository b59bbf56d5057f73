#include "tables/lpm4/lpm4.hh"

#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <vector>

#include "headrace/rcu.hh"
#include "lpm4_naive.hh"

namespace headrace {
namespace {

using Route = Lpm4::Route;
constexpr uint32_t kMiss = Lpm4::kMiss;

constexpr uint32_t ip(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

/// What is in front of the entry of an address, in an array of generation `g`.
uint32_t answer_of(const Lpm4Generation& g, const uint8_t* answers, uint32_t address) {
  return Lpm4Generation::answer(answers, address, g.shift, g.half, g.ask);
}

static_assert(std::is_trivially_copyable_v<Lpm4View> && sizeof(Lpm4View) == sizeof(void*));

TEST(Lpm4, AnEmptyTableMisses) {
  Lpm4 table;
  EXPECT_EQ(table.lookup(0), kMiss);
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 3)), kMiss);
  EXPECT_EQ(table.lookup(0xffffffff), kMiss);
  EXPECT_EQ(table.route_count(), 0u);
  EXPECT_TRUE(table.routes().empty());
  EXPECT_FALSE(table.match(0));
  EXPECT_FALSE(table.remove(0, 0));
  EXPECT_FALSE(table.wide());
}

TEST(Lpm4, TheLongestPrefixWinsInWhateverOrderRoutesCome) {
  const std::vector<Route> routes = {{0, 0, 1},
                                     {ip(10, 0, 0, 0), 8, 2},
                                     {ip(10, 1, 0, 0), 16, 3},
                                     {ip(10, 1, 2, 0), 24, 4},
                                     {ip(10, 1, 2, 64), 26, 5},
                                     {ip(10, 1, 2, 65), 32, 6}};
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  std::mt19937 random(1);
  for (int round = 0; round < 3; ++round) {
    Lpm4 table;
    for (const size_t i : order) ASSERT_TRUE(table.add(routes[i].prefix, routes[i].length, routes[i].next_hop));
    EXPECT_EQ(table.lookup(ip(9, 255, 255, 255)), 1u);
    EXPECT_EQ(table.lookup(ip(10, 0, 0, 0)), 2u);
    EXPECT_EQ(table.lookup(ip(10, 1, 255, 1)), 3u);
    EXPECT_EQ(table.lookup(ip(10, 1, 2, 0)), 4u);
    EXPECT_EQ(table.lookup(ip(10, 1, 2, 64)), 5u);
    EXPECT_EQ(table.lookup(ip(10, 1, 2, 65)), 6u);
    EXPECT_EQ(table.lookup(ip(10, 1, 2, 66)), 5u);
    EXPECT_EQ(table.lookup(ip(10, 1, 2, 128)), 4u);
    EXPECT_EQ(table.lookup(ip(11, 0, 0, 0)), 1u);
    EXPECT_EQ(table.match(ip(10, 1, 2, 65)), (Route{ip(10, 1, 2, 65), 32, 6}));
    EXPECT_EQ(table.match(ip(10, 200, 0, 0)), routes[1]);
    EXPECT_EQ(table.routes(), routes);
    EXPECT_EQ(table.group_count(), 1u);
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) ASSERT_TRUE(table.remove(routes[i].prefix, routes[i].length));
    EXPECT_EQ(table.group_count(), 0u);
    EXPECT_EQ(count_wrong(table.view(), segments({})), 0u);
    std::shuffle(order.begin(), order.end(), random);
  }
}

TEST(Lpm4, RemovalUncoversTheRouteBeneath) {
  Lpm4 table;
  table.add(ip(10, 0, 0, 0), 8, 1);
  table.add(ip(10, 1, 2, 0), 25, 2);
  table.add(ip(10, 1, 2, 0), 24, 3);
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 127)), 2u);
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 128)), 3u);
  EXPECT_TRUE(table.remove(ip(10, 1, 2, 0), 24));
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 127)), 2u);
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 128)), 1u);
  EXPECT_TRUE(table.remove(ip(10, 0, 0, 0), 8));
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 127)), 2u);
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 128)), kMiss);
  EXPECT_TRUE(table.remove(ip(10, 1, 2, 0), 25));
  EXPECT_EQ(table.lookup(ip(10, 1, 2, 127)), kMiss);
}

TEST(Lpm4, AddRefusesAPrefixThatIsThereAndSetReplacesIt) {
  Lpm4 table;
  EXPECT_TRUE(table.add(ip(10, 0, 0, 0), 8, 1));
  EXPECT_FALSE(table.add(ip(10, 9, 9, 9), 8, 2)) << "bits beyond the length are ignored";
  EXPECT_EQ(table.lookup(ip(10, 5, 5, 5)), 1u);
  EXPECT_TRUE(table.set(ip(10, 9, 9, 9), 8, 2));
  EXPECT_EQ(table.lookup(ip(10, 5, 5, 5)), 2u);
  EXPECT_EQ(table.find_exact(ip(10, 0, 0, 0), 8), 2u);
  EXPECT_EQ(table.find_exact(ip(10, 0, 0, 0), 9), std::nullopt);
  EXPECT_EQ(table.route_count(), 1u);
  EXPECT_TRUE(table.set(ip(10, 0, 0, 1), 32, 3));
  EXPECT_TRUE(table.set(ip(10, 0, 0, 1), 32, 4));
  EXPECT_EQ(table.lookup(ip(10, 0, 0, 1)), 4u);
  EXPECT_EQ(table.route_count(), 2u);
  EXPECT_TRUE(table.remove(ip(10, 0, 0, 1), 32));
  EXPECT_FALSE(table.remove(ip(10, 0, 0, 1), 32));
  EXPECT_EQ(table.group_count(), 0u) << "replacing a route does not count it twice";
}

TEST(Lpm4, ArgumentsOutOfRangeAreRefused) {
  Lpm4 table;
  table.add(0, 0, 7);
  EXPECT_FALSE(table.add(0, -1, 1));
  EXPECT_FALSE(table.add(0, 33, 1));
  EXPECT_FALSE(table.set(0, 8, Lpm4::kMaxNextHop + 1));
  EXPECT_FALSE(table.remove(0, 33));
  EXPECT_FALSE(table.remove(0, -1));
  EXPECT_FALSE(table.find_exact(0, 33));
  EXPECT_FALSE(table.build(std::vector<Route>{{0, 8, 1}, {0, 33, 1}}));
  EXPECT_FALSE(table.build(std::vector<Route>{{0, 8, Lpm4::kMaxNextHop + 1}}));
  EXPECT_FALSE(table.wide());
  EXPECT_EQ(table.routes(), (std::vector<Route>{{0, 0, 7}}));
  EXPECT_EQ(table.lookup(123456789), 7u);
}

TEST(Lpm4, TheEndsOfTheAddressSpace) {
  Lpm4 table;
  table.add(0, 32, 1);
  table.add(0xffffffff, 32, 2);
  table.add(0x80000000, 1, 3);
  EXPECT_EQ(table.lookup(0), 1u);
  EXPECT_EQ(table.lookup(1), kMiss);
  EXPECT_EQ(table.lookup(0x7fffffff), kMiss);
  EXPECT_EQ(table.lookup(0x80000000), 3u);
  EXPECT_EQ(table.lookup(0xfffffffe), 3u);
  EXPECT_EQ(table.lookup(0xffffffff), 2u);
  EXPECT_EQ(count_wrong(table.view(), segments(table.routes())), 0u);
}

TEST(Lpm4, BuildReplacesEverythingAndTheLastDuplicateCounts) {
  Lpm4 table;
  table.add(ip(1, 0, 0, 0), 8, 1);
  table.add(ip(1, 2, 3, 4), 30, 2);
  const std::vector<Route> routes = {{ip(2, 2, 2, 3), 32, 1},
                                     {ip(2, 2, 9, 9), 16, 2},
                                     {ip(2, 2, 2, 3), 32, 3},
                                     {ip(2, 2, 0, 0), 16, 4},
                                     {ip(2, 2, 2, 0), 31, 5}};
  ASSERT_TRUE(table.build(routes));
  EXPECT_EQ(table.routes(),
            (std::vector<Route>{{ip(2, 2, 0, 0), 16, 4}, {ip(2, 2, 2, 0), 31, 5}, {ip(2, 2, 2, 3), 32, 3}}));
  EXPECT_EQ(count_wrong(table.view(), segments(table.routes())), 0u);
  EXPECT_EQ(table.lookup(ip(1, 2, 3, 4)), kMiss);
  EXPECT_TRUE(table.remove(ip(2, 2, 2, 3), 32));
  EXPECT_EQ(table.group_count(), 1u);
  EXPECT_TRUE(table.remove(ip(2, 2, 2, 0), 31));
  EXPECT_EQ(table.group_count(), 0u) << "duplicates in a bulk count once";
  EXPECT_EQ(table.lookup(ip(2, 2, 2, 3)), 4u);
  table.clear();
  EXPECT_EQ(table.route_count(), 0u);
  EXPECT_EQ(count_wrong(table.view(), segments({})), 0u);
}

TEST(Lpm4, ForEachVisitsInOrderAndTheTableMayChangeMeanwhile) {
  Lpm4 table;
  table.build(std::vector<Route>{{ip(10, 1, 0, 0), 16, 1}, {ip(10, 0, 0, 0), 8, 2}, {ip(10, 0, 0, 0), 16, 3}});
  std::vector<Route> seen;
  table.for_each([&](const Route& route) {
    seen.push_back(route);
    table.remove(route.prefix, route.length);
  });
  EXPECT_EQ(seen, (std::vector<Route>{{ip(10, 0, 0, 0), 8, 2}, {ip(10, 0, 0, 0), 16, 3}, {ip(10, 1, 0, 0), 16, 1}}));
  EXPECT_EQ(table.route_count(), 0u);
}

TEST(Lpm4, ABatchGetsTheAnswersOfSingleLookups) {
  Lpm4 table;
  std::mt19937 random(3);
  table.add(ip(10, 0, 0, 0), 9, 7);
  for (int i = 0; i < 300; ++i) {
    table.set(ip(10, 0, 0, 0) | (random() & 0xffff), 24 + static_cast<int>(random() % 9), random() % 14);
  }
  for (const uint32_t next_hop : {3u, 200u, 1000u, 1000000u}) {
    table.add(ip(11, 0, 0, 0), 8, 0);
    table.set(ip(11, 0, 0, 0), 8, next_hop);
    ASSERT_EQ(table.view().generation()->answers != nullptr, next_hop <= 200);
    ASSERT_EQ(table.view().generation()->half != 0, next_hop == 3);
    ASSERT_EQ(table.wide(), next_hop == 1000000);
    for (const size_t count : {0, 1, 63, 64, 65, 127, 256, 1000}) {
      std::vector<uint32_t> addresses(count), answers(count + 1, 12345);
      for (uint32_t& address : addresses) address = ip(10, 0, 0, 0) | (random() & 0x1ffffff);
      table.view().lookup_batch(addresses.data(), answers.data(), count);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(answers[i], table.lookup(addresses[i]));
      EXPECT_EQ(answers[count], 12345u);
    }
  }
}

TEST(Lpm4, ALargeNextHopWidensTheEntries) {
  Lpm4 table;
  table.add(0, 0, 0);
  table.add(ip(10, 0, 0, 0), 8, 32766);
  table.add(ip(10, 0, 0, 5), 32, 32765);
  table.add(ip(20, 0, 0, 0), 30, 1);
  EXPECT_FALSE(table.wide());
  const Lpm4View before = table.view();
  rcu::synchronize();  // what other tests have retired
  ASSERT_EQ(rcu::pending(), 0u);
  rcu::Reader reader;

  table.set(ip(10, 0, 0, 0), 8, 32767);
  EXPECT_TRUE(table.wide());
  const Lpm4Generation* const wide = table.generation();
  EXPECT_NE(wide, before.generation());
  EXPECT_EQ(before.lookup(ip(10, 1, 1, 1)), 32766u) << "a reader keeps the old generation until it is quiescent";
  EXPECT_EQ(before.lookup(ip(10, 0, 0, 5)), 32765u);
  EXPECT_EQ(table.lookup(ip(10, 1, 1, 1)), 32767u);
  EXPECT_EQ(table.lookup(ip(10, 0, 0, 5)), 32765u);
  EXPECT_EQ(table.lookup(ip(10, 0, 0, 6)), 32767u);
  EXPECT_EQ(table.lookup(ip(20, 0, 0, 3)), 1u);
  EXPECT_EQ(table.lookup(ip(20, 0, 0, 4)), 0u);
  EXPECT_EQ(count_wrong(table.view(), segments(table.routes())), 0u);
  EXPECT_EQ(rcu::pending(), 1u);
  reader.quiescent();
  EXPECT_EQ(rcu::reclaim(), 1u);

  table.set(ip(20, 0, 0, 0), 30, Lpm4::kMaxNextHop);
  EXPECT_EQ(table.lookup(ip(20, 0, 0, 0)), Lpm4::kMaxNextHop);
  EXPECT_TRUE(table.remove(ip(20, 0, 0, 0), 30));
  EXPECT_EQ(table.lookup(ip(20, 0, 0, 0)), 0u);
  EXPECT_EQ(table.generation(), wide) << "changes of single routes are made in place";

  table.build(std::vector<Route>{{0, 0, 5}});
  EXPECT_FALSE(table.wide()) << "a new build starts from the narrow form";
  rcu::synchronize();
}

TEST(Lpm4, BuildTakesTheNarrowestForm) {
  Lpm4 table;
  ASSERT_TRUE(table.build(std::vector<Route>{{0, 0, 32766}}));
  EXPECT_FALSE(table.wide());
  ASSERT_TRUE(table.build(std::vector<Route>{{0, 0, 32767}, {ip(1, 1, 1, 1), 32, 9}}));
  EXPECT_TRUE(table.wide());
  EXPECT_EQ(table.lookup(0), 32767u);
  EXPECT_EQ(table.lookup(ip(1, 1, 1, 1)), 9u);
}

TEST(Lpm4, ManyGroupsWidenTheEntriesAndThenGrow) {
  const auto host = [](uint32_t i) { return ip(10, 0, 0, 0) + i * 256 + i % 256; };
  const auto check = [&](const Lpm4& table, uint32_t count) {
    size_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i) {
      wrong += table.lookup(host(i)) != i % 1000;
      wrong += table.lookup(host(i) ^ 1) != 5000;
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(table.lookup(host(count)), 5000u);
    EXPECT_EQ(table.group_count(), count);
    EXPECT_EQ(table.route_count(), count + 1);
  };
  Lpm4 table;
  table.add(ip(10, 0, 0, 0), 7, 5000);
  uint32_t made = 0;
  const auto grow_to = [&](uint32_t count) {
    for (; made < count; ++made) ASSERT_TRUE(table.add(host(made), 32, made % 1000));
  };
  grow_to(32767);
  EXPECT_FALSE(table.wide());
  check(table, 32767);
  grow_to(32768);
  EXPECT_TRUE(table.wide());
  check(table, 32768);
  const Lpm4Generation* const first_wide = table.generation();
  grow_to(70000);
  EXPECT_NE(table.generation(), first_wide);
  check(table, 70000);

  std::vector<Route> routes = table.routes();
  for (const Route& route : routes) {
    if (route.length == 32) {
      ASSERT_TRUE(table.remove(route.prefix, 32));
    }
  }
  EXPECT_EQ(table.group_count(), 0u);
  EXPECT_EQ(count_wrong(table.view(), segments({{ip(10, 0, 0, 0), 7, 5000}})), 0u);

  Lpm4 bulk;
  ASSERT_TRUE(bulk.build(routes));
  EXPECT_TRUE(bulk.wide());
  check(bulk, 70000);
  routes.resize(32768);  // the route of 7 bits and 32,767 hosts
  ASSERT_TRUE(bulk.build(routes));
  EXPECT_FALSE(bulk.wide());
  check(bulk, 32767);

  // With few next hops the answers in front go along.
  Lpm4 few;
  few.add(0, 0, 9);
  for (uint32_t i = 0; i <= 32767; ++i) ASSERT_TRUE(few.add(host(i), 32, i % 8));
  EXPECT_TRUE(few.wide());
  ASSERT_NE(few.view().generation()->answers, nullptr);
  const Lpm4Generation& form = *few.view().generation();
  EXPECT_EQ(form.ask, Lpm4Generation::kAskHalf);
  EXPECT_EQ(answer_of(form, form.answers, ip(9, 0, 0, 0)), 9u + 1);
  EXPECT_EQ(answer_of(form, form.answers, host(32767)), form.ask);
  EXPECT_EQ(count_wrong(few.view(), segments(few.routes())), 0u);
}

TEST(Lpm4, AGroupIsNotReusedBeforeReadersHaveLeftIt) {
  Lpm4 table;
  table.add(0, 0, 1);
  table.add(ip(10, 0, 0, 7), 32, 2);
  rcu::Reader reader;
  // What a reader holds between its two loads: the number of the group, and so the place of the answer.
  const uint16_t entry = static_cast<const uint16_t*>(table.view().generation()->first)[ip(10, 0, 0, 7) >> 8];
  ASSERT_TRUE(entry & 0x8000);
  const uint16_t* const group =
      static_cast<const uint16_t*>(table.view().generation()->groups) + (entry & 0x7fff) * 256;
  EXPECT_EQ(group[7], 2 + 1);
  EXPECT_EQ(group[8], 1 + 1);

  table.remove(ip(10, 0, 0, 7), 32);
  EXPECT_EQ(group[7], 1 + 1) << "the new answer";
  table.add(ip(20, 0, 0, 7), 32, 3);
  EXPECT_EQ(group[7], 1 + 1) << "not another block's answer";
  EXPECT_EQ(table.lookup(ip(20, 0, 0, 7)), 3u);

  reader.quiescent();
  table.add(ip(30, 0, 0, 7), 32, 4);
  EXPECT_EQ(group[7], 4 + 1) << "reused after the grace period";
  EXPECT_EQ(table.group_count(), 2u);
}

TEST(Lpm4, MemoryIsCounted) {
  Lpm4 table;
  const size_t empty = table.memory_bytes();
  EXPECT_GE(empty, size_t{56} << 20);
  EXPECT_LT(empty, size_t{58} << 20);
  table.add(ip(1, 1, 1, 1), 32, 1);
  EXPECT_GT(table.memory_bytes(), empty);
  table.set(ip(1, 1, 1, 1), 32, 100000);
  EXPECT_GE(table.memory_bytes(), size_t{80} << 20);
}

TEST(Lpm4, AnswersOfAByteAreThereWhileNextHopsAreFew) {
  Lpm4 table;
  ASSERT_TRUE(table.build(std::vector<Route>{{0, 0, 0}, {ip(10, 0, 0, 0), 8, 253}, {ip(10, 0, 0, 5), 32, 7}}));
  const uint8_t* const answers = table.view().generation()->answers;
  ASSERT_NE(answers, nullptr);
  EXPECT_EQ(answers[ip(9, 0, 0, 0) >> 8], 0 + 1);
  EXPECT_EQ(answers[ip(10, 1, 0, 0) >> 8], 253 + 1);
  EXPECT_EQ(answers[ip(10, 0, 0, 0) >> 8], Lpm4Generation::kAskByte) << "a route longer than 24 bits";
  EXPECT_EQ(table.lookup(ip(10, 0, 0, 5)), 7u);
  EXPECT_EQ(table.lookup(ip(10, 0, 0, 6)), 253u);

  // Later there are more: readers that are in the array find what is right, and others pass it by.
  const Lpm4Generation* const before = table.generation();
  ASSERT_TRUE(table.set(ip(20, 0, 0, 0), 8, 254));
  EXPECT_EQ(table.generation(), before);
  EXPECT_EQ(table.view().generation()->answers, nullptr);
  EXPECT_EQ(answers[ip(20, 1, 0, 0) >> 8], Lpm4Generation::kAskByte);
  EXPECT_EQ(table.lookup(ip(20, 1, 0, 0)), 254u);
  ASSERT_TRUE(table.set(ip(10, 0, 0, 0), 8, 9));
  EXPECT_EQ(answers[ip(10, 1, 0, 0) >> 8], 9 + 1);
  ASSERT_TRUE(table.remove(ip(10, 0, 0, 5), 32));
  EXPECT_EQ(answers[ip(10, 0, 0, 0) >> 8], 9 + 1);

  ASSERT_TRUE(table.build(table.routes()));
  EXPECT_EQ(table.view().generation()->answers, nullptr) << "a build for a next hop that no byte holds";
  ASSERT_TRUE(table.build(std::vector<Route>{{0, 0, 5}}));
  EXPECT_NE(table.view().generation()->answers, nullptr);
  EXPECT_EQ(table.lookup(0), 5u);
  rcu::synchronize();
}

TEST(Lpm4, AnswersOfHalfAByteBecomeBytesWithTheFifteenthNextHop) {
  Lpm4 table;
  // Blocks with even and odd numbers, one and several, on both sides of a border.
  ASSERT_TRUE(table.build(std::vector<Route>{{0, 0, 0},
                                             {ip(10, 0, 1, 0), 24, 13},
                                             {ip(10, 0, 2, 0), 24, 12},
                                             {ip(10, 0, 5, 0), 32, 7},
                                             {ip(10, 0, 8, 0), 23, 11}}));
  const Lpm4View before = table.view();
  const Lpm4Generation& halves = *before.generation();
  ASSERT_EQ(halves.ask, Lpm4Generation::kAskHalf);
  const auto expect = [&](const Lpm4Generation& form, uint32_t c, uint32_t answer) {
    EXPECT_EQ(answer_of(form, form.answers, ip(10, 0, c, 0)), answer) << "10.0." << c << ".0";
  };
  const uint32_t answers[] = {1, 13 + 1, 12 + 1, 1, 1, halves.ask, 1, 1, 11 + 1, 11 + 1, 1};
  for (uint32_t c = 0; c < std::size(answers); ++c) expect(halves, c, answers[c]);
  // A neighbor in the same byte stays as it is.
  ASSERT_TRUE(table.set(ip(10, 0, 3, 0), 24, 4));
  expect(halves, 2, 12 + 1);
  expect(halves, 3, 4 + 1);
  ASSERT_TRUE(table.remove(ip(10, 0, 3, 0), 24));
  expect(halves, 2, 12 + 1);
  expect(halves, 3, 0 + 1);

  rcu::synchronize();
  rcu::Reader reader;
  ASSERT_TRUE(table.set(ip(10, 0, 4, 0), 24, 14));
  const Lpm4Generation& bytes = *table.view().generation();
  ASSERT_EQ(bytes.ask, Lpm4Generation::kAskByte);
  expect(bytes, 4, 14 + 1);
  expect(halves, 4, 0 + 1);
  EXPECT_EQ(before.lookup(ip(10, 0, 4, 1)), 0u) << "a reader keeps the old generation until it is quiescent";
  EXPECT_EQ(before.lookup(ip(10, 0, 5, 0)), 7u);
  expect(bytes, 5, Lpm4Generation::kAskByte);
  expect(bytes, 1, 13 + 1);
  EXPECT_EQ(count_wrong(table.view(), segments(table.routes())), 0u);
  reader.quiescent();

  // Straight to none.
  Lpm4 other;
  other.add(0, 0, 1);
  const Lpm4Generation* const first = other.generation();
  other.set(ip(10, 0, 0, 0), 8, 254);
  EXPECT_EQ(other.generation(), first);
  EXPECT_EQ(other.view().generation()->answers, nullptr);
  EXPECT_EQ(count_wrong(other.view(), segments(other.routes())), 0u);
  rcu::synchronize();
}

TEST(Lpm4, WhatIsAskedForAheadIsWhatALookupReadsFirst) {
  const auto ahead = [](const Lpm4& table, uint32_t address) -> const void* {
    const Lpm4Generation& g = *table.view().generation();
    return g.ahead + (address >> g.ahead_shift);
  };
  for (const uint32_t next_hop : {3u, 200u, 300u, 40000u}) {
    SCOPED_TRACE(next_hop);
    Lpm4 table;
    ASSERT_TRUE(table.build(std::vector<Route>{{0, 0, next_hop}}));
    const auto expect = [&](uint32_t address) {
      const Lpm4Generation& g = *table.view().generation();
      const size_t block = address >> 8;
      if (g.answers) {
        EXPECT_EQ(ahead(table, address), g.answers + (g.half ? block / 2 : block));
      } else {
        // Anywhere in the entry.
        const size_t size = g.wide ? 4 : 2;
        const auto at = static_cast<const uint8_t*>(ahead(table, address)) - static_cast<const uint8_t*>(g.first);
        EXPECT_EQ(static_cast<size_t>(at) / size, block);
      }
    };
    const std::vector<uint32_t> addresses = {0, ip(0, 0, 1, 255), ip(10, 1, 2, 128), ip(200, 0, 3, 77), 0xffffffff};
    for (const uint32_t address : addresses) expect(address);
    // Too many next hops for the array in front: it is left.
    const bool had_answers = table.view().generation()->answers != nullptr;
    ASSERT_TRUE(table.set(ip(10, 0, 0, 0), 8, 500));
    ASSERT_EQ(table.view().generation()->answers, nullptr);
    for (const uint32_t address : addresses) expect(address);
    EXPECT_EQ(had_answers, next_hop < 254);
  }
  rcu::synchronize();
}

/// Random adds, replacements and removals on a small part of the address space, so that routes overlap a lot.
enum class Lpm4Form { kHalves, kBytes, kNarrow, kWide };
class Lpm4Churn : public ::testing::TestWithParam<Lpm4Form> {};

TEST_P(Lpm4Churn, EachChangeIsRightAtTheAddressesThatItTouches) {
  constexpr int kChanges = 40000;
  const bool is_wide = GetParam() == Lpm4Form::kWide;
  const uint32_t next_hops = GetParam() == Lpm4Form::kHalves ? 14 : GetParam() == Lpm4Form::kBytes ? 254 : 30000;
  std::mt19937 random(is_wide ? 11 : 10);
  Lpm4 table;
  NaiveLpm4 naive;
  const auto set = [&](uint32_t prefix, int length, uint32_t next_hop) {
    const bool known = table.find_exact(prefix, length).has_value();
    EXPECT_EQ(table.add(prefix, length, next_hop), !known);
    if (known) {
      EXPECT_TRUE(table.set(prefix, length, next_hop));
    }
    naive.set(prefix, length, next_hop);
  };
  if (is_wide) set(ip(200, 0, 0, 0), 8, 70000);
  size_t wrong = 0;
  for (int change = 0; change < kChanges; ++change) {
    // Short routes are rare in life and slow in any table of this kind.
    const int length = change % 1000 == 0 ? 5 + static_cast<int>(random() % 7) : 12 + static_cast<int>(random() % 21);
    const uint32_t prefix = (ip(10, 0, 0, 0) + (random() & 0x7fff)) & NaiveLpm4::mask(length);
    if (random() % 2 == 0) {
      set(prefix, length, random() % next_hops);
    } else {
      ASSERT_EQ(table.remove(prefix, length), naive.remove(prefix, length));
    }
    const uint32_t last = prefix | ~NaiveLpm4::mask(length);
    const uint32_t inside = prefix | (static_cast<uint32_t>(random()) & ~NaiveLpm4::mask(length));
    for (const uint32_t address : {prefix, last, prefix - 1, last + 1, inside}) {
      wrong += table.lookup(address) != naive.lookup(address);
    }
    if (change % 20000 == 0) {
      ASSERT_EQ(table.routes(), naive.routes());
      wrong += count_wrong(table.view(), segments(table.routes()));
    }
    ASSERT_EQ(wrong, 0u) << "change " << change;
  }
  EXPECT_EQ(table.wide(), is_wide);
  EXPECT_EQ(table.view().generation()->answers != nullptr, next_hops <= 254);
  if (next_hops <= 254) {
    EXPECT_EQ(table.view().generation()->half != 0, next_hops == 14);
  }
  EXPECT_EQ(table.routes(), naive.routes());
  EXPECT_EQ(count_wrong(table.view(), segments(table.routes())), 0u);

  // A table built in one go from the same routes is the same.
  Lpm4 bulk;
  ASSERT_TRUE(bulk.build(naive.routes()));
  EXPECT_EQ(count_wrong(bulk.view(), segments(naive.routes())), 0u);
  EXPECT_EQ(bulk.group_count(), table.group_count());

  for (const Route& route : naive.routes()) ASSERT_TRUE(table.remove(route.prefix, route.length));
  EXPECT_EQ(table.group_count(), 0u);
  EXPECT_EQ(count_wrong(table.view(), segments({})), 0u);
}

INSTANTIATE_TEST_SUITE_P(Forms, Lpm4Churn,
                         ::testing::Values(Lpm4Form::kHalves, Lpm4Form::kBytes, Lpm4Form::kNarrow, Lpm4Form::kWide),
                         [](const auto& info) {
                           return info.param == Lpm4Form::kWide     ? "Wide"
                                  : info.param == Lpm4Form::kNarrow ? "Narrow"
                                  : info.param == Lpm4Form::kBytes  ? "Bytes"
                                                                    : "Halves";
                         });

TEST(Lpm4, TheSweepAndTheDefinitionAgree) {
  std::mt19937 random(5);
  NaiveLpm4 naive;
  for (int i = 0; i < 3000; ++i) {
    naive.set(static_cast<uint32_t>(random()), static_cast<int>(random() % 33), static_cast<uint32_t>(random() % 100));
  }
  for (const Lpm4Segment& segment : segments(naive.routes())) {
    ASSERT_EQ(naive.lookup(static_cast<uint32_t>(segment.begin)), segment.next_hop);
  }
}

TEST(Lpm4, RandomTablesOfAllLengths) {
  std::mt19937 random(6);
  for (const int count : {1, 10, 1000, 100000}) {
    std::vector<Route> routes;
    NaiveLpm4 naive;
    for (int i = 0; i < count; ++i) {
      const int length = static_cast<int>(random() % 33);
      const Route route{static_cast<uint32_t>(random()), length, static_cast<uint32_t>(random() % 50000)};
      routes.push_back(route);
      naive.set(route.prefix, route.length, route.next_hop);
    }
    Lpm4 table;
    ASSERT_TRUE(table.build(routes));
    EXPECT_EQ(table.routes(), naive.routes());
    EXPECT_EQ(count_wrong(table.view(), segments(naive.routes())), 0u);
    for (int i = 0; i < 1000; ++i) {
      const uint32_t address = static_cast<uint32_t>(random());
      const auto match = table.match(address);
      ASSERT_EQ(match ? match->next_hop : kMiss, naive.lookup(address));
    }
  }
}

}  // namespace
}  // namespace headrace
