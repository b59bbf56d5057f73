/// \file
/// The IPv6 table on a real routing table, and at the size of one to come.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "headrace/error.hh"
#include "lpm6_naive.hh"
#include "support/source_dir.hh"
#include "tables/lpm6/lpm6.hh"
#include "tables/lpm6/route_file6.hh"

namespace headrace::lpm6_test {
namespace {

using Route = Lpm6::Route;

Lpm6Key key_of(const Ip6Address& address) {
  Lpm6Key key;
  for (int i = 0; i < 8; ++i) {
    key.high = key.high << 8 | address.bytes()[i];
    key.low = key.low << 8 | address.bytes()[8 + i];
  }
  return key;
}

std::vector<Route> read(const std::string& path) {
  std::vector<TextRoute6> lines;
  Errors errors;
  EXPECT_TRUE(read_routes6(path, lines, errors)) << errors.str();
  std::vector<Route> routes;
  for (const TextRoute6& line : lines) {
    const Lpm6Key key = key_of(line.prefix.address);
    routes.push_back({key, line.prefix.length, static_cast<uint32_t>(key.high * 0x9e3779b97f4a7c15u >> 40) % 300});
  }
  return routes;
}

NaiveLpm6 naive_of(const std::vector<Route>& routes) {
  NaiveLpm6 naive;
  for (const Route& route : routes) naive.set(route.prefix, route.length, route.next_hop);
  return naive;
}

TEST(Lpm6RealTable, TheInternet) {
  const std::string path = kSourceDir + "/../shared/data/bgp/full-table-v6_bart-v0.30.0.txt.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const std::vector<Route> routes = read(path);
  ASSERT_EQ(routes.size(), 160147u);
  Lpm6 table;
  ASSERT_TRUE(table.build(routes));
  EXPECT_EQ(table.route_count(), 160147u);
  EXPECT_LT(table.table_bytes(), size_t{14} << 20);
  NaiveLpm6 naive = naive_of(routes);
  EXPECT_EQ(count_wrong(table.view(), naive, routes), 0u);

  // Withdraw and announce; the addresses near each change are checked.
  std::mt19937_64 random(4);
  size_t wrong = 0;
  for (int change = 0; change < 30000; ++change) {
    Route route = routes[random() % routes.size()];
    // One in four is a new and longer route within an old one.
    if (random() % 4 == 0 && route.length < 128) {
      route.prefix = inside(route.prefix, route.length, random);
      route.length += 1 + static_cast<int>(random() % static_cast<uint64_t>(std::min(128 - route.length, 20)));
      route.prefix = lpm6_clean(route.prefix, route.length);
    }
    route.next_hop = static_cast<uint32_t>(random() % 30000);
    if (naive.remove(route.prefix, route.length)) {
      ASSERT_TRUE(table.remove(route.prefix, route.length));
    } else {
      naive.set(route.prefix, route.length, route.next_hop);
      ASSERT_TRUE(table.add(route.prefix, route.length, route.next_hop));
    }
    const Lpm6Key last = last_of(route.prefix, route.length);
    for (const Lpm6Key key :
         {route.prefix, last, minus_one(route.prefix), plus_one(last), inside(route.prefix, route.length, random)}) {
      wrong += table.lookup(key) != naive.lookup(key);
    }
  }
  EXPECT_EQ(wrong, 0u);
  std::vector<Route> changed = naive.routes();
  EXPECT_TRUE(table.routes() == changed);
  std::shuffle(changed.begin(), changed.end(), random);
  changed.resize(30000);
  EXPECT_EQ(count_wrong(table.view(), naive, changed), 0u);

  // A default route comes and goes.
  naive.set({}, 0, 123456);
  ASSERT_TRUE(table.add({}, 0, 123456));
  EXPECT_EQ(count_wrong(table.view(), naive, changed), 0u);
  naive.remove({}, 0);
  ASSERT_TRUE(table.remove({}, 0));
  EXPECT_EQ(count_wrong(table.view(), naive, changed), 0u);
}

TEST(Lpm6RealTable, AMillionPrefixes) {
  // Allocations of /32 of which most are cut into /40, /44 and /48, as those of today are.
  std::mt19937_64 random(6);
  std::vector<Route> routes;
  // Some come twice.
  while (routes.size() < 1500000) {
    const uint64_t block = uint64_t{0x2400 + (random() % 0xa00)} << 48 | (random() & 0x0ff8'0000'0000);
    const auto next_hop = static_cast<uint32_t>(random() % 300);
    routes.push_back({{block, 0}, 32, next_hop});
    // Cuts lie side by side.
    uint64_t cut = block | (random() & 0xffff'0000);
    for (uint64_t n = random() % 40; n > 0; --n) {
      constexpr int kLengths[] = {36, 40, 44, 48, 48, 48};
      const int length = kLengths[random() % 6];
      routes.push_back({lpm6_clean({cut, 0}, length), length, next_hop + 1});
      cut = block | ((cut + 0x1'0000) & 0xffff'0000);
    }
  }
  Lpm6 table;
  ASSERT_TRUE(table.build(routes));
  const NaiveLpm6 naive = naive_of(routes);
  EXPECT_EQ(table.route_count(), naive.routes().size());
  EXPECT_GT(table.route_count(), 950000u);
  EXPECT_LT(table.table_bytes(), size_t{50} << 20);
  std::shuffle(routes.begin(), routes.end(), random);
  routes.resize(20000);
  EXPECT_EQ(count_wrong(table.view(), naive, routes), 0u);
}

}  // namespace
}  // namespace headrace::lpm6_test
