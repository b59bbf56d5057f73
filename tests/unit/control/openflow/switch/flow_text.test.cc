#include "control/openflow/switch/flow_text.hh"

#include <gtest/gtest.h>

#include "control/openflow/codec.hh"

namespace headrace::openflow {
namespace {

FlowStats stats_of(const FlowMod& mod) {
  FlowStats stats;
  stats.table = mod.table;
  stats.priority = mod.priority;
  stats.idle_timeout = mod.idle_timeout;
  stats.hard_timeout = mod.hard_timeout;
  stats.flags = mod.flags;
  stats.cookie = mod.cookie;
  stats.match = mod.match;
  stats.instructions = mod.instructions;
  return stats;
}

/// Everything but statistics, as read and printed.
std::string printed(std::string_view text) {
  FlowMod mod;
  if (const std::string bad = parse_flow(text, mod); !bad.empty()) return "bad: " + bad;
  std::string line = unparse_flow(stats_of(mod));
  FlowMod again;
  EXPECT_EQ(parse_flow(line, again), "") << line;
  EXPECT_EQ(again, mod) << line;
  // It has a form on the wire.
  Message message;
  message.body = mod;
  std::vector<uint8_t> bytes;
  (void)encode(message, bytes);
  EXPECT_FALSE(bytes.empty()) << line;
  return line.substr(line.find("n_bytes=0, ") + 11);
}

TEST(OpenFlowText, ReadsWhatItPrints) {
  EXPECT_EQ(printed("actions=drop"), "priority=32768 actions=drop");
  EXPECT_EQ(printed("actions="), "priority=32768 actions=drop");
  EXPECT_EQ(printed("in_port=local,table=3 priority=0 actions=normal"), "priority=0,in_port=LOCAL actions=NORMAL");
  EXPECT_EQ(printed("tcp, tp_dst=80, idle_timeout=5,hard_timeout=9,send_flow_rem actions=1,output:2,CONTROLLER"),
            "idle_timeout=5, hard_timeout=9, send_flow_rem priority=32768,tcp,tp_dst=80 "
            "actions=output:1,output:2,CONTROLLER:65535");
  EXPECT_EQ(
      printed("dl_vlan=5,actions=pop_vlan,push_mpls:0x8847,set_mpls_ttl:9,set_field:7->mpls_label,controller:128"),
      "priority=32768,vlan_vid=0x1005 "
      "actions=pop_vlan,push_mpls:0x8847,set_mpls_ttl:9,set_field:7->mpls_label,CONTROLLER:128");
  EXPECT_EQ(printed("udp actions=mod_vlan_vid:7,mod_vlan_pcp:3,mod_nw_tos:8,mod_tp_src:5,mod_nw_ttl:6,dec_ttl,all"),
            "priority=32768,udp actions=mod_vlan_vid:7,mod_vlan_pcp:3,set_field:2->ip_dscp,mod_tp_src:5,mod_nw_ttl:6,"
            "dec_ttl,ALL");
  // Instructions have an order of their own.
  EXPECT_EQ(
      printed("ip actions=goto_table:7,write_metadata:0x5/0xff,output:4,write_actions(dec_ttl,group:9),clear_actions,"
              "meter:3"),
      "priority=32768,ip actions=meter:3,output:4,clear_actions,write_actions(dec_ttl,group:9),"
      "write_metadata:0x5/0xff,goto_table:7");
  EXPECT_EQ(
      printed(" cookie=0x7, duration=1.5s, table=0, n_packets=9, n_bytes=8, idle_age=3, priority=9,arp actions=FLOOD"),
      "priority=9,arp actions=FLOOD");
}

TEST(OpenFlowText, SaysWhatIsWrong) {
  EXPECT_EQ(printed("in_port=1"), "bad: expected MATCH actions=ACTIONS");
  EXPECT_EQ(printed("in_port=x actions=drop"), "bad: bad port 'x'");
  EXPECT_EQ(printed("priority=65536 actions=drop"), "bad: bad priority '65536'");
  EXPECT_EQ(printed("table=255 actions=drop"), "bad: bad table '255'");
  EXPECT_EQ(printed("nonsense=1 actions=drop"), "bad: unknown field 'nonsense'");
  EXPECT_EQ(printed("actions=fly"), "bad: unknown action 'fly'");
  EXPECT_EQ(printed("actions=output:"), "bad: bad port ''");
  EXPECT_EQ(printed("actions=0"), "bad: unknown action '0'");
  EXPECT_EQ(printed("actions=dec_ttl:3"), "bad: dec_ttl: '3' is too much");
  EXPECT_EQ(printed("actions=mod_vlan_vid:4096"), "bad: bad value '4096' for mod_vlan_vid");
  EXPECT_EQ(printed("actions=set_field:1"), "bad: 'set_field:1': expected set_field:VALUE->FIELD");
  EXPECT_EQ(printed("actions=set_field:1->no"), "bad: unknown field 'no'");
  EXPECT_EQ(printed("actions=write_actions(output:1"), "bad: 'write_actions(output:1': expected a closing parenthesis");
  EXPECT_EQ(printed("actions=goto_table:255"), "bad: 'goto_table:255': expected goto_table and a table from 0 to 254");
  EXPECT_EQ(printed("actions=write_actions(goto_table:3)"), "bad: unknown action 'goto_table:3'");
}

}  // namespace
}  // namespace headrace::openflow
