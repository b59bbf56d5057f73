#include "offload/placement.hh"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace::offload {
namespace {

int two_sockets(int a, int b) { return a == b ? 10 : 21; }

using Devices = std::vector<int>;

TEST(Placement, WorkersUseTheDeviceOfTheirNode) {
  EXPECT_EQ(place_workers({0, 0, 1, 1}, {0, 1}, two_sockets), (Devices{0, 0, 1, 1}));
  EXPECT_EQ(place_workers({0, 1, 0, 1}, {1, 0}, two_sockets), (Devices{1, 0, 1, 0}));
}

TEST(Placement, WorkersOfOneNodeAreSpreadOverItsDevices) {
  EXPECT_EQ(place_workers({0, 0, 0, 0}, {0, 0}, two_sockets), (Devices{0, 1, 0, 1}));
  // Two devices on node 0, one on node 1, two workers each.
  const Devices placed = place_workers({0, 0, 0, 0, 1, 1}, {0, 1, 0}, two_sockets);
  EXPECT_EQ(std::count(placed.begin(), placed.end(), 1), 2);
  EXPECT_EQ(placed[4], 1);
  EXPECT_EQ(placed[5], 1);
}

TEST(Placement, NoDeviceGetsMoreThanItsShare) {
  // All workers are near device 0, and yet half of them go to the other.
  const Devices placed = place_workers({0, 0, 0, 0, 0}, {0, 1}, two_sockets);
  EXPECT_EQ(std::count(placed.begin(), placed.end(), 0), 3);
  EXPECT_EQ(std::count(placed.begin(), placed.end(), 1), 2);
}

TEST(Placement, WithoutNodesTheyTakeTurns) {
  EXPECT_EQ(place_workers({-1, -1, -1, -1}, {-1, -1}, two_sockets), (Devices{0, 1, 0, 1}));
  EXPECT_EQ(place_workers({-1, -1, -1}, {0, 1, 1, 0}, two_sockets), (Devices{0, 1, 2}));
  EXPECT_EQ(place_workers({3}, {}, two_sockets), (Devices{-1}));
}

TEST(Placement, FurtherIsWorseThanFar) {
  // Four nodes in a ring: 0 and 2 are opposite.
  const auto ring = [](int a, int b) { return 10 + 10 * std::min((a - b + 4) % 4, (b - a + 4) % 4); };
  EXPECT_EQ(place_workers({1, 3}, {0, 2}, ring), (Devices{0, 1}));
  EXPECT_EQ(place_workers({0, 1, 2, 3}, {0, 2}, ring), (Devices{0, 0, 1, 1}));
  EXPECT_EQ(place_workers({0}, {2, 3}, ring), (Devices{1}));
}

TEST(Placement, OfThisMachine) {
  EXPECT_EQ(node_of_cpu(-1), -1);
  const int node = node_of_cpu(0);
  if (node < 0) GTEST_SKIP() << "this kernel names no NUMA nodes";
  EXPECT_EQ(node_distance(node, node), 10);
}

}  // namespace
}  // namespace headrace::offload
