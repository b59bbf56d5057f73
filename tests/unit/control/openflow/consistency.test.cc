/// Actions that fit the match of their entry, and those that do not.

#include "control/openflow/consistency.hh"

#include <gtest/gtest.h>

#include <string>

#include "sample_messages.hh"

namespace headrace::openflow {
namespace {

using samples::action;
using samples::set_field;

ErrorCode check(const char* match, std::vector<Action> actions, InstructionType type = InstructionType::kApplyActions) {
  Instruction instruction;
  instruction.type = type;
  instruction.actions = std::move(actions);
  return check_consistency(samples::match_of(match).key, {instruction});
}

void expect_fit(const char* match, const std::vector<Action>& actions) {
  EXPECT_EQ(check(match, actions), ErrorCode::kNone) << match;
}
void expect_misfit(const char* match, const std::vector<Action>& actions) {
  EXPECT_EQ(check(match, actions), ErrorCode::kActionMatchInconsistent) << match;
}

TEST(OpenFlowConsistency, SetFieldNeedsWhatAMatchOfTheFieldNeeds) {
  expect_fit("", {set_field("dl_dst", "02:00:00:00:00:01")});
  expect_fit("ip", {set_field("nw_dst", "10.0.0.1"), set_field("ip_dscp", "1")});
  expect_fit("ipv6", {set_field("ip_dscp", "1"), set_field("ipv6_dst", "::1")});
  expect_fit("tcp", {set_field("tcp_dst", "80")});
  expect_fit("arp", {set_field("arp_op", "2"), set_field("arp_sha", "02:00:00:00:00:01")});
  expect_misfit("", {set_field("nw_dst", "10.0.0.1")});
  expect_misfit("ipv6", {set_field("nw_dst", "10.0.0.1")});
  expect_misfit("ip", {set_field("tcp_dst", "80")});
  expect_misfit("udp", {set_field("tcp_dst", "80")});
  expect_fit("udp", {set_field("nw_proto", "6"), set_field("tcp_dst", "80")});
}

TEST(OpenFlowConsistency, Tags) {
  expect_fit("dl_vlan=10", {action(ActionType::kPopVlan)});
  expect_fit("dl_vlan=10", {action(ActionType::kPopVlan), action(ActionType::kPopVlan)});
  expect_fit("", {action(ActionType::kPushVlan, 0, 0x8100), set_field("vlan_vid", "5"), set_field("vlan_pcp", "3"),
                  action(ActionType::kPopVlan)});
  expect_misfit("", {action(ActionType::kPopVlan)});
  expect_misfit("vlan_vid=0", {set_field("vlan_vid", "5")});
  expect_misfit("vlan_vid=0", {set_field("vlan_pcp", "5")});
}

TEST(OpenFlowConsistency, Labels) {
  expect_fit("mpls", {action(ActionType::kDecMplsTtl), action(ActionType::kPopMpls, 0, 0x0800),
                      action(ActionType::kDecNwTtl), set_field("nw_src", "1.2.3.4")});
  expect_fit("tcp", {action(ActionType::kPushMpls, 0, 0x8847), set_field("mpls_label", "5")});
  expect_misfit("tcp", {action(ActionType::kPushMpls, 0, 0x8847), set_field("tcp_dst", "80")});
  expect_misfit("tcp", {action(ActionType::kPushMpls, 0, 0x8847), action(ActionType::kDecNwTtl)});
  expect_misfit("mpls", {action(ActionType::kPopMpls, 0, 0x0800), set_field("tcp_dst", "80")});
  expect_misfit("ip", {action(ActionType::kPopMpls, 0, 0x0800)});
  expect_misfit("ip", {action(ActionType::kSetMplsTtl, 5)});
  expect_misfit("arp", {action(ActionType::kSetNwTtl, 5)});
}

TEST(OpenFlowConsistency, BackboneBridges) {
  expect_fit("", {action(ActionType::kPushPbb, 0, 0x88e7), set_field("pbb_isid", "5"), action(ActionType::kPopPbb)});
  expect_fit("dl_type=0x88e7", {action(ActionType::kPopPbb), action(ActionType::kPopVlan)});
  expect_misfit("", {action(ActionType::kPopPbb)});
  expect_misfit("dl_type=0x88e7", {action(ActionType::kPopPbb), action(ActionType::kDecNwTtl)});
}

TEST(OpenFlowConsistency, SetsRunInTheirOwnOrder) {
  const std::vector<Action> actions{set_field("vlan_vid", "5"), action(ActionType::kPushVlan, 0, 0x8100)};
  EXPECT_EQ(check("", actions), ErrorCode::kActionMatchInconsistent);
  EXPECT_EQ(check("", actions, InstructionType::kWriteActions), ErrorCode::kNone);
  EXPECT_EQ(check("", {set_field("tcp_dst", "80")}, InstructionType::kWriteActions),
            ErrorCode::kActionMatchInconsistent);
}

}  // namespace
}  // namespace headrace::openflow
