/// What a channel decides without sockets: times, versions, roles, filters.

#include <gtest/gtest.h>

#include "control/openflow/channel/backoff.hh"
#include "control/openflow/channel/negotiation.hh"
#include "control/openflow/channel/roles.hh"

namespace headrace::openflow {
namespace {

TEST(OpenFlowBackoff, DoublesToItsBound) {
  Backoff backoff(8 * kSecond);
  EXPECT_EQ(backoff.patience(), kSecond);
  for (const int64_t seconds : {1, 2, 4, 8, 8}) {
    EXPECT_EQ(backoff.next(), seconds * kSecond);
    EXPECT_EQ(backoff.patience(), seconds * kSecond);
  }
  // Up for less than the last wait: no better than an attempt that failed.
  EXPECT_EQ(backoff.next(7 * kSecond), 8 * kSecond);
  EXPECT_EQ(backoff.next(8 * kSecond), kSecond);
  EXPECT_EQ(backoff.next(kSecond / 2), 2 * kSecond);

  Backoff odd(5 * kSecond);
  for (const int64_t seconds : {1, 2, 4, 5, 5}) EXPECT_EQ(odd.next(), seconds * kSecond);
  Backoff least(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(least.next(), kSecond);
}

/// ONF TS-023, section 6.3.1, by hand: the result by our versions (1.0; 1.3; both) and what the peer says. 0: none.
TEST(OpenFlowNegotiation, AllCombinations) {
  constexpr Versions k10{true, false}, k13{false, true}, kBoth{true, true};
  const struct {
    uint8_t header;
    std::optional<uint32_t> bitmap;
    int with_10, with_13, with_both;
  } cases[] = {
      {1, {}, 1, 0, 1},   {2, {}, 1, 0, 0},   {3, {}, 1, 0, 0},   {4, {}, 1, 4, 4},         {5, {}, 1, 4, 4},
      {6, {}, 1, 4, 4},   {255, {}, 1, 4, 4}, {1, 0x02, 1, 0, 1}, {4, 0x10, 0, 4, 4},       {4, 0x12, 1, 4, 4},
      {4, 0x02, 1, 0, 1}, {6, 0x52, 1, 4, 4}, {6, 0x60, 0, 0, 0}, {5, 0x22, 1, 0, 1},       {3, 0x0c, 0, 0, 0},
      {3, 0x0e, 1, 0, 1}, {4, 0, 0, 0, 0},    {1, 0x10, 0, 4, 4}, {4, 0xfffffffe, 1, 4, 4},
  };
  for (const auto& c : cases) {
    Message hello;
    hello.version = c.header < 4 ? Version::k1_0 : Version::k1_3;
    if (c.header != 1 && c.header != 4) hello.hello_version = c.header;
    Hello body;
    if (c.bitmap) body.versions = {*c.bitmap};
    hello.body = body;
    const auto number = [&](Versions ours) {
      const auto version = negotiate(ours, hello);
      EXPECT_TRUE(version || incompatible(ours, hello).starts_with("no common version: the switch speaks 0x0"));
      return version ? static_cast<int>(*version) : 0;
    };
    const std::string what = testing::PrintToString(c.header) + " " + testing::PrintToString(c.bitmap.value_or(0));
    EXPECT_EQ(number(k10), c.with_10) << what;
    EXPECT_EQ(number(k13), c.with_13) << what;
    EXPECT_EQ(number(kBoth), c.with_both) << what;
  }
  EXPECT_EQ(std::get<Hello>(hello_of(kBoth, 1).body).versions, std::vector<uint32_t>{0x12});
  EXPECT_EQ(hello_of(k10, 1).version, Version::k1_0);
}

TEST(OpenFlowMasterElection, GenerationsAreOnACircle) {
  MasterElection election;
  EXPECT_EQ(election.generation(), UINT64_MAX);
  EXPECT_TRUE(election.accept(UINT64_MAX - 1));
  EXPECT_TRUE(election.accept(UINT64_MAX - 1));
  EXPECT_FALSE(election.accept(UINT64_MAX - 2));
  EXPECT_TRUE(election.accept(3));
  EXPECT_FALSE(election.accept(UINT64_MAX));
  EXPECT_FALSE(election.accept(2));
  EXPECT_EQ(election.generation(), 3u);
}

TEST(OpenFlowAsync, Filters) {
  const AsyncConfig config = default_async();
  const auto packet_in = [](PacketInReason reason) {
    PacketIn in;
    in.reason = reason;
    return Body(in);
  };
  FlowRemoved removed;
  removed.reason = FlowRemovedReason::kGroupDelete;
  PortStatus port;
  port.reason = PortReason::kModify;
  for (const Role role : {Role::kEqual, Role::kMaster}) {
    EXPECT_TRUE(passes(config, role, packet_in(PacketInReason::kNoMatch)));
    EXPECT_TRUE(passes(config, role, packet_in(PacketInReason::kAction)));
    EXPECT_FALSE(passes(config, role, packet_in(PacketInReason::kInvalidTtl)));
    EXPECT_TRUE(passes(config, role, removed));
    EXPECT_TRUE(passes(config, role, port));
  }
  EXPECT_FALSE(passes(config, Role::kSlave, packet_in(PacketInReason::kNoMatch)));
  EXPECT_FALSE(passes(config, Role::kSlave, removed));
  EXPECT_TRUE(passes(config, Role::kSlave, port));
  AsyncConfig other;
  other.packet_in = {0, 1u << 2};
  EXPECT_FALSE(passes(other, Role::kEqual, packet_in(PacketInReason::kInvalidTtl)));
  EXPECT_TRUE(passes(other, Role::kSlave, packet_in(PacketInReason::kInvalidTtl)));
  EXPECT_FALSE(passes(other, Role::kSlave, port));
}

TEST(OpenFlowRoles, WhatSlavesMayNotSend) {
  for (const Body& body : std::vector<Body>{PacketOut{}, FlowMod{}, GroupMod{}, PortMod{}, TableMod{}, MeterMod{},
                                            MultipartRequest{0, std::vector<TableFeatures>(1)}})
    EXPECT_TRUE(modifies(body)) << body.index();
  for (const Body& body : std::vector<Body>{FeaturesRequest{}, BarrierRequest{}, SetConfig{}, SetAsync{}, RoleRequest{},
                                            MultipartRequest{0, std::vector<TableFeatures>()}, MultipartRequest{}})
    EXPECT_FALSE(modifies(body)) << body.index();
}

}  // namespace
}  // namespace headrace::openflow
