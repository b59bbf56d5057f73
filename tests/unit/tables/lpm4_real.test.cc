/// \file
/// The IPv4 table on real routing tables, over the whole address space.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "headrace/error.hh"
#include "lpm4_naive.hh"
#include "support/source_dir.hh"
#include "tables/lpm4/lpm4.hh"
#include "tables/lpm4/route_file.hh"

namespace headrace {
namespace {

using Route = Lpm4::Route;

std::string bgp_file(const std::string& name) { return kSourceDir + "/../shared/data/bgp/" + name; }

uint32_t hash(uint32_t x) { return x * 2654435761u >> 8; }

/// The routes of a file; next hops are a hash of the prefix, or the file's second column if `use_column`.
std::vector<Route> read(const std::string& path, bool use_column) {
  std::vector<TextRoute> lines;
  Errors errors;
  EXPECT_TRUE(read_routes(path, lines, errors)) << errors.str();
  std::vector<Route> routes;
  for (const TextRoute& line : lines) {
    routes.push_back({line.prefix, line.length, use_column ? line.port.value() : hash(line.prefix) % 300});
  }
  return routes;
}

NaiveLpm4 naive_of(const std::vector<Route>& routes) {
  NaiveLpm4 naive;
  for (const Route& route : routes) naive.set(route.prefix, route.length, route.next_hop);
  return naive;
}

/// Withdraws and announces routes of the table and checks the addresses near each change.
void churn(Lpm4& table, NaiveLpm4& naive, const std::vector<Route>& routes, int changes) {
  std::mt19937 random(4);
  size_t wrong = 0;
  for (int change = 0; change < changes; ++change) {
    Route route = routes[random() % routes.size()];
    // One in four is a new and longer route within an old one.
    if (random() % 4 == 0 && route.length < 32) {
      route.length += 1 + static_cast<int>(random() % (32 - route.length));
      route.prefix |= static_cast<uint32_t>(random()) & ~NaiveLpm4::mask(route.length - 1);
      route.prefix &= NaiveLpm4::mask(route.length);
    }
    route.next_hop = random() % 30000;
    if (naive.remove(route.prefix, route.length)) {
      ASSERT_TRUE(table.remove(route.prefix, route.length));
    } else {
      naive.set(route.prefix, route.length, route.next_hop);
      ASSERT_TRUE(table.add(route.prefix, route.length, route.next_hop));
    }
    const uint32_t last = route.prefix | ~NaiveLpm4::mask(route.length);
    for (const uint32_t address : {route.prefix, last, route.prefix - 1, last + 1}) {
      wrong += table.lookup(address) != naive.lookup(address);
    }
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(Lpm4RealTables, TheInternetOf2022) {
  const std::string path = bgp_file("full-table-v4_bart-v0.30.0.txt.xz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const std::vector<Route> routes = read(path, false);
  ASSERT_EQ(routes.size(), 901899u);
  Lpm4 table;
  ASSERT_TRUE(table.build(routes));
  EXPECT_FALSE(table.wide());
  EXPECT_EQ(table.route_count(), 901899u);
  EXPECT_EQ(table.group_count(), 451u);
  NaiveLpm4 naive = naive_of(routes);
  EXPECT_EQ(count_wrong(table.view(), segments(naive.routes())), 0u);

  churn(table, naive, routes, 100000);
  const std::vector<Route> changed = naive.routes();
  EXPECT_TRUE(table.routes() == changed);
  EXPECT_EQ(count_wrong(table.view(), segments(changed)), 0u);

  // A default route, and next hops beyond the narrow form.
  naive.set(0, 0, 123456);
  ASSERT_TRUE(table.add(0, 0, 123456));
  EXPECT_TRUE(table.wide());
  EXPECT_EQ(count_wrong(table.view(), segments(naive.routes())), 0u);
}

TEST(Lpm4RealTables, RouteviewsOf2008ByOriginAs) {
  const std::string path = bgp_file("routeviews-v4-origin-asn_20080501.dat.xz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const std::vector<Route> routes = read(path, true);
  ASSERT_EQ(routes.size(), 270849u);
  NaiveLpm4 naive = naive_of(routes);
  const std::vector<Lpm4Segment> truth = segments(naive.routes());

  Lpm4 bulk;
  ASSERT_TRUE(bulk.build(routes));
  EXPECT_TRUE(bulk.wide()) << "AS numbers reach 65,535";
  EXPECT_EQ(count_wrong(bulk.view(), truth), 0u);
  churn(bulk, naive, routes, 20000);
  EXPECT_EQ(count_wrong(bulk.view(), segments(naive.routes())), 0u);

  Lpm4 single;
  for (const Route& route : routes) ASSERT_TRUE(single.add(route.prefix, route.length, route.next_hop));
  EXPECT_EQ(count_wrong(single.view(), truth), 0u);
  EXPECT_EQ(single.route_count(), routes.size());
}

}  // namespace
}  // namespace headrace
