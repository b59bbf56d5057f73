#include "tables/lpm6/lpm6.hh"

#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <vector>

#include "headrace/rcu.hh"
#include "lpm6_naive.hh"

namespace headrace::lpm6_test {
namespace {

using Route = Lpm6::Route;
constexpr uint32_t kMiss = Lpm6::kMiss;

constexpr Lpm6Key ip6(uint16_t a, uint16_t b = 0, uint16_t c = 0, uint16_t d = 0, uint64_t low = 0) {
  return {uint64_t{a} << 48 | uint64_t{b} << 32 | uint64_t{c} << 16 | d, low};
}

static_assert(std::is_trivially_copyable_v<Lpm6View> && sizeof(Lpm6View) == sizeof(void*));

TEST(Lpm6, AnEmptyTableMisses) {
  Lpm6 table;
  for (const Lpm6Key key : {Lpm6Key{}, ip6(0x2001, 0xdb8), ip6(0xfe80), Lpm6Key{~uint64_t{0}, ~uint64_t{0}}}) {
    EXPECT_EQ(table.lookup(key), kMiss);
    EXPECT_FALSE(table.match(key));
  }
  EXPECT_EQ(table.route_count(), 0u);
  EXPECT_TRUE(table.routes().empty());
  EXPECT_FALSE(table.remove({}, 0));
  EXPECT_EQ(table.node_count(), 0u);
}

TEST(Lpm6, TheLongestPrefixWinsInWhateverOrderRoutesCome) {
  const std::vector<Route> routes = {{{}, 0, 1},
                                     {ip6(0x2000), 3, 2},
                                     {ip6(0x2001, 0x0d00), 24, 3},
                                     {ip6(0x2001, 0x0db8), 32, 4},
                                     {ip6(0x2001, 0x0db8, 1), 48, 5},
                                     {ip6(0x2001, 0x0db8, 1, 2), 64, 6},
                                     {ip6(0x2001, 0x0db8, 1, 2, 0xff00), 120, 7},
                                     {ip6(0x2001, 0x0db8, 1, 2, 0xff01), 128, 8}};
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5, 6, 7};
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    Lpm6 table;
    for (const size_t i : order) ASSERT_TRUE(table.add(routes[i].prefix, routes[i].length, routes[i].next_hop));
    EXPECT_EQ(table.lookup(ip6(0x1fff)), 1u);
    EXPECT_EQ(table.lookup(ip6(0x4000)), 1u);
    EXPECT_EQ(table.lookup(ip6(0x3fff)), 2u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0dff)), 3u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 2)), 4u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 1, 3)), 5u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 1, 2, 1)), 6u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 1, 2, 0xff00)), 7u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 1, 2, 0xff01)), 8u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 1, 2, 0xff02)), 7u);
    EXPECT_EQ(table.match(ip6(0x2001, 0x0db8, 1, 2, 0xff01)), routes[7]);
    EXPECT_EQ(table.match(ip6(0x2001, 0x0dff)), routes[2]);
    EXPECT_EQ(table.match(ip6(0x8000)), routes[0]);
    EXPECT_EQ(table.routes(), routes);
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) ASSERT_TRUE(table.remove(routes[i].prefix, routes[i].length));
    EXPECT_EQ(table.node_count(), 0u);
    EXPECT_EQ(table.lookup(ip6(0x2001, 0x0db8, 1, 2, 0xff01)), kMiss);
    std::shuffle(order.begin(), order.end(), random);
  }
}

TEST(Lpm6, AddRefusesAPrefixThatIsThereAndSetReplacesIt) {
  Lpm6 table;
  for (const int length : {0, 2, 16, 24, 32, 61, 66, 127, 128}) {
    const Lpm6Key prefix = ip6(0x2a00, 0x1234, 0x5678, 0x9abc, 0xdef0);
    EXPECT_TRUE(table.add(prefix, length, 1));
    EXPECT_FALSE(table.add(prefix, length, 2));
    EXPECT_EQ(table.find_exact(prefix, length), 1u);
    EXPECT_TRUE(table.set(prefix, length, 2));
    EXPECT_EQ(table.find_exact(prefix, length), 2u);
    EXPECT_EQ(table.lookup(prefix), 2u);
    EXPECT_EQ(table.route_count(), 1u);
    EXPECT_TRUE(table.remove(prefix, length));
    EXPECT_FALSE(table.remove(prefix, length));
    EXPECT_EQ(table.lookup(prefix), kMiss);
  }
  EXPECT_TRUE(table.add(ip6(0x2001, 0xdb8, 1), 32, 1)) << "bits beyond the length are ignored";
  EXPECT_FALSE(table.add(ip6(0x2001, 0xdb8, 2), 32, 1));
  EXPECT_EQ(table.routes(), (std::vector<Route>{{ip6(0x2001, 0xdb8), 32, 1}}));
}

TEST(Lpm6, ArgumentsOutOfRangeAreRefused) {
  Lpm6 table;
  table.add({}, 0, 7);
  EXPECT_FALSE(table.add({}, -1, 1));
  EXPECT_FALSE(table.add({}, 129, 1));
  EXPECT_FALSE(table.set({}, 8, Lpm6::kMaxNextHop + 1));
  EXPECT_FALSE(table.remove({}, 129));
  EXPECT_FALSE(table.find_exact({}, -1));
  EXPECT_FALSE(table.build(std::vector<Route>{{{}, 8, 1}, {{}, 129, 1}}));
  EXPECT_EQ(table.routes(), (std::vector<Route>{{{}, 0, 7}}));
  EXPECT_TRUE(table.set({}, 0, Lpm6::kMaxNextHop));
  EXPECT_TRUE(table.set(ip6(0x2001), 100, Lpm6::kMaxNextHop));
  EXPECT_EQ(table.lookup({}), Lpm6::kMaxNextHop);
  EXPECT_EQ(table.lookup(ip6(0x2001)), Lpm6::kMaxNextHop);
}

TEST(Lpm6, TheEndsOfTheAddressSpaceAndOfTheGlobalPart) {
  const Lpm6Key end = {~uint64_t{0}, ~uint64_t{0}};
  Lpm6 table;
  NaiveLpm6 naive;
  uint32_t next_hop = 0;
  const auto set = [&](Lpm6Key prefix, int length) {
    table.set(prefix, length, ++next_hop);
    naive.set(prefix, length, next_hop);
    EXPECT_EQ(count_wrong(table.view(), naive, naive.routes()), 0u) << length;
  };
  for (const int length : {128, 127, 66, 64, 60, 24, 18, 3, 2, 1, 0}) {
    set({}, length);
    set(end, length);
    set(ip6(0x2000), length);
    set({0x3fffffffffffffff, ~uint64_t{0}}, length);
    set({0x1fffffffffffffff, ~uint64_t{0}}, length);
    set(ip6(0x4000), length);
  }
  for (const Route& route : naive.routes()) {
    EXPECT_TRUE(table.remove(route.prefix, route.length));
    naive.remove(route.prefix, route.length);
    EXPECT_EQ(count_wrong(table.view(), naive, naive.routes()), 0u);
  }
  EXPECT_EQ(table.node_count(), 0u);
}

TEST(Lpm6, BuildReplacesEverythingAndTheLastDuplicateCounts) {
  Lpm6 table;
  table.add(ip6(0x2001), 16, 1);
  table.add(ip6(0x2001, 1, 2, 3), 70, 2);
  const std::vector<Route> routes = {{ip6(0x2222, 2), 100, 1},
                                     {ip6(0x2222, 9), 20, 2},
                                     {ip6(0x2222, 2), 100, 3},
                                     {ip6(0x2222), 20, 4},
                                     {ip6(0x2222, 2), 31, 5},
                                     {{}, 0, 6},
                                     {ip6(5), 0, 7}};
  ASSERT_TRUE(table.build(routes));
  EXPECT_EQ(table.routes(),
            (std::vector<Route>{{{}, 0, 7}, {ip6(0x2222), 20, 4}, {ip6(0x2222, 2), 31, 5}, {ip6(0x2222, 2), 100, 3}}));
  EXPECT_EQ(table.lookup(ip6(0x2001)), 7u);
  EXPECT_TRUE(table.remove(ip6(0x2222, 2), 100));
  EXPECT_EQ(table.lookup(ip6(0x2222, 2)), 5u);
  table.clear();
  EXPECT_EQ(table.route_count(), 0u);
  EXPECT_EQ(table.lookup(ip6(0x2222)), kMiss);
}

TEST(Lpm6, OnlyANewTableMakesAGeneration) {
  Lpm6 table;
  const Lpm6Generation* const first = table.generation();
  table.add(ip6(0x2001), 32, 1);
  EXPECT_EQ(table.generation(), first);
  table.clear();
  EXPECT_NE(table.generation(), first);
}

TEST(Lpm6, ANextHopThatDoesNotFitIntoAByteMakesAGeneration) {
  Lpm6 table;
  NaiveLpm6 naive;
  const auto set = [&](Lpm6Key prefix, int length, uint32_t next_hop) {
    ASSERT_TRUE(table.set(prefix, length, next_hop));
    naive.set(prefix, length, next_hop);
  };
  const Lpm6Generation* const narrow = table.generation();
  for (uint32_t i = 0; i <= 254; ++i) set(ip6(0x2001, i), 48, i);
  EXPECT_EQ(table.generation(), narrow);
  EXPECT_EQ(count_wrong(table.view(), naive, naive.routes()), 0u);
  set(ip6(0x2001, 7), 48, 255);
  const Lpm6Generation* const wide = table.generation();
  EXPECT_NE(wide, narrow);
  EXPECT_EQ(count_wrong(table.view(), naive, naive.routes()), 0u);
  // Neither small next hops nor others make another one; that of a default route may be pushed down to nodes, too.
  set(ip6(0x2001, 7), 48, 1);
  set(ip6(0x2001, 8), 64, Lpm6::kMaxNextHop);
  set({}, 0, 256);
  EXPECT_EQ(table.generation(), wide);
  EXPECT_EQ(count_wrong(table.view(), naive, naive.routes()), 0u);

  // A default route of a table whose nodes have no other large answer.
  Lpm6 covered;
  NaiveLpm6 small;
  ASSERT_TRUE(covered.add(ip6(0x2001, 1), 48, 1));
  ASSERT_TRUE(covered.add({}, 0, 1000));
  small.set(ip6(0x2001, 1), 48, 1);
  small.set({}, 0, 1000);
  EXPECT_EQ(count_wrong(covered.view(), small, small.routes()), 0u);
  // Built anew, a table is as wide as its next hops.
  const size_t bytes = table.table_bytes();
  std::vector<Route> routes = table.routes();
  ASSERT_TRUE(table.build(routes));
  EXPECT_EQ(table.view().generation()->wide, 1u);
  for (Route& route : routes) route.next_hop %= 255;
  ASSERT_TRUE(table.build(routes));
  EXPECT_EQ(table.view().generation()->wide, 0u);
  EXPECT_LT(table.table_bytes(), bytes);
}

TEST(Lpm6, ATableThatRunsOutOfRoomIsMadeAnew) {
  Lpm6 table;
  int swaps = 0;
  const Lpm6Generation* last = table.generation();
  const auto look = [&] {
    swaps += table.generation() != last;
    last = table.generation();
  };
  NaiveLpm6 naive;
  std::mt19937_64 random(3);
  for (uint32_t i = 0; i < 8000; ++i) {
    const Lpm6Key key = {random(), random()};
    ASSERT_TRUE(table.add(key, 128, i));
    naive.set(key, 128, i);
    look();
  }
  EXPECT_GE(swaps, 1);
  EXPECT_LE(swaps, 4);
  EXPECT_EQ(count_wrong(table.view(), naive, naive.routes()), 0u);
  // Whoever comes and goes leaves nothing behind.
  const size_t nodes = table.node_count();
  const int before = swaps;
  for (uint32_t i = 0; i < 20000; ++i) {
    const Lpm6Key key = {random(), random()};
    ASSERT_TRUE(table.add(key, 128, i));
    look();
    ASSERT_TRUE(table.remove(key, 128));
    look();
  }
  EXPECT_EQ(table.node_count(), nodes);
  EXPECT_EQ(swaps, before);
}

/// Where routes of a churn lie.
enum class Space { kDense, kDeep, kEverywhere };

class Lpm6Churn : public ::testing::TestWithParam<Space> {};

TEST_P(Lpm6Churn, AgreesWithTheDefinitionAfterEachChange) {
  constexpr int kChanges = 10000;
  std::mt19937_64 random(2);
  const auto draw = [&](int& length) -> Lpm6Key {
    switch (GetParam()) {
      case Space::kDense:
        // Few addresses, so that routes lie over each other.
        length = 15 + static_cast<int>(random() % 35);
        return {uint64_t{0x2001} << 48 | (random() & 0x0007'0003'0000'0000) | (random() & 0x00ff'0000), 0};
      case Space::kDeep:
        length = 50 + static_cast<int>(random() % 79);
        return {0xfd00'0000'0000'0000 | (random() & 0x7ff), (random() & 0xf0f0) << 48 | (random() & 0x7f)};
      default:
        length = static_cast<int>(random() % 129);
        return {random() & random() & random(), random() & random() & random()};
    }
  };
  Lpm6 table;
  NaiveLpm6 naive;
  size_t wrong = 0;
  for (int change = 0; change < kChanges; ++change) {
    int length;
    const Lpm6Key drawn = draw(length);
    // The shortest cost a pass over the first level each.
    if (length < 12 && random() % 64 != 0) length += 12;
    const Lpm6Key prefix = lpm6_clean(drawn, length);
    const uint32_t next_hop = static_cast<uint32_t>(random() % 5);
    if (random() % 2 == 0) {
      ASSERT_TRUE(table.set(prefix, length, next_hop));
      naive.set(prefix, length, next_hop);
    } else {
      ASSERT_EQ(table.remove(prefix, length), naive.remove(prefix, length));
    }
    const Lpm6Key last = last_of(prefix, length);
    for (const Lpm6Key key :
         {prefix, last, minus_one(prefix), plus_one(last), inside(prefix, length, random), draw(length)}) {
      wrong += table.lookup(key) != naive.lookup(key);
    }
    if (change % 4000 == 0) {
      ASSERT_EQ(table.routes(), naive.routes());
      wrong += count_wrong(table.view(), naive, naive.routes(), static_cast<uint64_t>(change));
    }
    ASSERT_EQ(wrong, 0u) << "change " << change;
  }
  const std::vector<Route> routes = naive.routes();
  EXPECT_EQ(table.routes(), routes);
  EXPECT_EQ(count_wrong(table.view(), naive, routes), 0u);

  // A table built in one go from the same routes is the same.
  Lpm6 bulk;
  ASSERT_TRUE(bulk.build(routes));
  EXPECT_EQ(count_wrong(bulk.view(), naive, routes), 0u);
  EXPECT_EQ(bulk.node_count(), table.node_count());

  for (const Route& route : routes) {
    ASSERT_TRUE(table.remove(route.prefix, route.length));
    naive.remove(route.prefix, route.length);
  }
  EXPECT_EQ(table.node_count(), 0u);
  EXPECT_EQ(count_wrong(table.view(), naive, routes), 0u);
}

INSTANTIATE_TEST_SUITE_P(Spaces, Lpm6Churn, ::testing::Values(Space::kDense, Space::kDeep, Space::kEverywhere),
                         [](const auto& info) {
                           return info.param == Space::kDense  ? "Dense"
                                  : info.param == Space::kDeep ? "Deep"
                                                               : "Everywhere";
                         });

/// By how many next hops there are: few fit into bytes.
class Lpm6Batches : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Lpm6Batches, OfEverySize) {
  std::mt19937_64 random(4);
  Lpm6 table;
  for (uint32_t i = 0; i < 2000; ++i) {
    table.set({random() & 0x3fff'ffff'ffff'ffff, random()}, static_cast<int>(20 + random() % 100), i % GetParam());
  }
  const std::vector<Route> routes = table.routes();
  std::vector<Lpm6Key> keys;
  for (int i = 0; i < 700; ++i) {
    const Route& route = routes[random() % routes.size()];
    keys.push_back(inside(route.prefix, route.length, random));
  }
  for (const size_t size : {0u, 1u, 2u, 63u, 127u, 128u, 129u, 256u, 300u, 700u}) {
    std::vector<uint32_t> answers(size + 1, 12345);
    table.view().lookup_batch(keys.data(), answers.data(), size);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(answers[i], table.lookup(keys[i])) << size << " " << i;
    EXPECT_EQ(answers[size], 12345u);
  }
}
INSTANTIATE_TEST_SUITE_P(NextHops, Lpm6Batches, ::testing::Values(255u, 2000u));

}  // namespace
}  // namespace headrace::lpm6_test
