/// \file
/// A copy of the IPv6 table that follows by changed pages.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "headrace/mirror.hh"
#include "host_mirror.hh"
#include "lpm6_naive.hh"
#include "tables/lpm6/lpm6.hh"

namespace headrace::lpm6_test {
namespace {

TEST(Lpm6Mirror, ACopyFollowsByChangedPages) {
  std::mt19937_64 random(11);
  Lpm6 table;
  NaiveLpm6 naive;
  HostMirror mirror;
  const auto change = [&](int changes) {
    for (int i = 0; i < changes; ++i) {
      const int length = 20 + static_cast<int>(random() % 60);
      const Lpm6Key prefix = lpm6_clean({uint64_t{0x2001} << 48 | (random() & 0x0fff'00ff'00ff), random()}, length);
      const auto next_hop = static_cast<uint32_t>(random() % 100);
      if (random() % 3 == 0) {
        naive.remove(prefix, length);
        table.remove(prefix, length);
      } else {
        naive.set(prefix, length, next_hop);
        table.set(prefix, length, next_hop);
      }
    }
  };
  change(5000);
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
  for (int round = 0; round < 20; ++round) {
    const size_t before = mirror.copied;
    change(20);
    EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
    EXPECT_LT(mirror.copied - before, size_t{1} << 20) << "only what has changed";
  }
  const size_t before = mirror.copied;
  table.mirror(mirror);
  EXPECT_EQ(mirror.copied, before);
  // A generation that is swapped in.
  ASSERT_TRUE(table.build(naive.routes()));
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
  naive.set({}, 0, 7);
  table.set({}, 0, 7);
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
  // One with answers of four bytes.
  naive.set({}, 0, 70000);
  table.set({}, 0, 70000);
  change(20);
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
}

}  // namespace
}  // namespace headrace::lpm6_test
