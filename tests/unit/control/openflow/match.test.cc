/// Matches in both versions, and what one version shows of entries that the other made.

#include "control/openflow/match.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "control/openflow/actions.hh"
#include "support/openflow_messages.hh"

namespace headrace::openflow {
namespace {

KeyMatch key_of(std::string_view text) {
  KeyMatch key;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    EXPECT_EQ(add_to_match(key, text.substr(0, comma)), "") << text;
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return key;
}

/// What is read back from what is written; `exact` tells whether the version could say it.
KeyMatch through(Version version, const KeyMatch& key, bool& exact) {
  Bytes bytes;
  Writer writer(bytes, version);
  Match written;
  written.key = key;
  match(writer, written);
  exact = writer.exact();
  Reader reader(bytes, version, Reading::kStrict);
  Match read;
  match(reader, read);
  EXPECT_EQ(reader.error(), ErrorCode::kNone);
  EXPECT_EQ(reader.left(), 0u);
  return read.key;
}

void expect_both(std::string_view text, bool in_1_0) {
  SCOPED_TRACE(text);
  bool exact = false;
  const KeyMatch key = key_of(text);
  EXPECT_EQ(through(Version::k1_3, key, exact), key);
  EXPECT_TRUE(exact);
  const KeyMatch as_10 = through(Version::k1_0, key, exact);
  EXPECT_EQ(exact, in_1_0);
  EXPECT_EQ(as_10 == key, in_1_0);
}

TEST(OpenFlowMatch, BothVersionsSayThese) {
  for (const char* const text :
       {"",
        "in_port=1",
        "in_port=4294967294",
        "dl_src=00:01:02:03:04:05",
        "dl_dst=ff:ff:ff:ff:ff:ff",
        "dl_type=0x88cc",
        "dl_vlan=10",
        "vlan_vid=0",
        "dl_vlan=10,dl_vlan_pcp=3",
        "vlan_vid=0x1000/0x1000,dl_vlan_pcp=0",
        "ip",
        "ip,nw_src=10.0.0.0/8",
        "ip,nw_src=1.2.3.4,nw_dst=128.0.0.0/1",
        "ip,nw_tos=252",
        "ip,nw_proto=47",
        "tcp,tp_src=1,tp_dst=65535",
        "udp,tp_dst=53",
        "icmp,icmp_type=8,icmp_code=0",
        "arp",
        "arp,arp_op=2",
        "arp,arp_spa=10.0.0.1,arp_tpa=10.1.0.0/16",
        "rarp,arp_op=3",
        "ipv6",
        "ipv6,nw_tos=32",
        "ipv6,nw_proto=47",
        "tcp6,tp_src=1,tp_dst=65535",
        "udp6,tp_dst=53",
        "icmp6,icmpv6_type=135,icmpv6_code=0",
        "in_port=3,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,dl_vlan=5,dl_vlan_pcp=1,tcp,nw_src=1.1.1.1,"
        "nw_dst=2.2.2.2,nw_tos=4,tp_src=5,tp_dst=6"})
    expect_both(text, true);
}

TEST(OpenFlowMatch, Only13SaysThese) {
  for (const char* const text : {"in_port=65536",
                                 "in_port=1,in_phy_port=1",
                                 "metadata=5",
                                 "metadata=0x10/0xf0",
                                 "tun_id=7",
                                 "dl_src=00:01:02:00:00:00/ff:ff:ff:00:00:00",
                                 "vlan_vid=0x1000/0x1000",
                                 "vlan_vid=0x1001/0x1001",
                                 "vlan_vid=10",
                                 "ip,nw_src=10.0.0.1/255.0.0.255",
                                 "ip,nw_ecn=1",
                                 "sctp,sctp_src=1",
                                 "ipv6,ipv6_src=2001:db8::/32",
                                 "ipv6,ipv6_label=0xfffff",
                                 "ipv6,ipv6_exthdr=0x10/0x10",
                                 "icmp6,icmpv6_type=135,nd_target=fe80::1,nd_sll=00:01:02:03:04:05",
                                 "icmp6,icmpv6_type=136,nd_tll=00:01:02:03:04:05",
                                 "arp,arp_op=300",
                                 "arp,arp_sha=00:00:00:00:00:01",
                                 "mpls,mpls_label=16,mpls_tc=7,mpls_bos=1",
                                 "dl_type=0x88e7,pbb_isid=0x123456"})
    expect_both(text, false);
}

TEST(OpenFlowMatch, WithoutATagThereIsNoPriority) {
  for (const Version version : {Version::k1_0, Version::k1_3}) {
    bool exact = false;
    EXPECT_EQ(through(version, key_of("dl_vlan=0xffff"), exact), key_of("vlan_vid=0"));
    EXPECT_TRUE(exact);
  }
}

TEST(OpenFlowMatch, PortsWithoutAProtocolAndRangesAreLeftOut) {
  bool exact = true;
  EXPECT_EQ(through(Version::k1_3, key_of("ip,tp_dst=80"), exact), key_of("ip"));
  EXPECT_FALSE(exact);
  EXPECT_EQ(through(Version::k1_0, key_of("tcp,tp_dst=80-90"), exact), key_of("tcp"));
  EXPECT_FALSE(exact);
}

/// Random values of random fields whose requirements hold.
TEST(OpenFlowMatch, EveryMatchOf13ReadsBack) {
  std::mt19937_64 random(3);
  size_t exact_in_10 = 0;
  for (int round = 0; round < 3000; ++round) {
    KeyMatch key;
    for (const KeyField& field : key_fields()) {
      if (random() % 3 == 0) continue;
      KeyValue value{random(), random()};
      KeyValue mask = key_field_ones(field);
      if (field.maskable && random() % 2 == 0) mask = {mask.high & random(), mask.low & random()};
      // Values that other fields require.
      if (field.oxm == 5) value.low = std::array{0x0800, 0x0806, 0x86dd, 0x8847, 0x88e7}[random() % 5];
      if (field.oxm == 10) value.low = std::array{1, 6, 17, 58, 132}[random() % 5];
      if (field.oxm == 29) value.low = 135 + random() % 2;
      if (!requirements_met(key, field)) continue;
      set_key_field(key.value, field, {value.high & mask.high, value.low & mask.low});
      set_key_field(key.mask, field, mask);
    }
    bool exact = false;
    ASSERT_EQ(through(Version::k1_3, key, exact), key) << unparse_match(key);
    ASSERT_TRUE(exact) << unparse_match(key);
    // 1.0 shows the same or something wider.
    const KeyMatch wider = through(Version::k1_0, key, exact);
    ASSERT_EQ(exact, wider == key) << unparse_match(key);
    exact_in_10 += exact;
    for (size_t i = 0; i < key.mask.size(); ++i) ASSERT_EQ(wider.mask[i] & ~key.mask[i], 0u) << unparse_match(key);
  }
  EXPECT_GT(exact_in_10, 0u);
}

Match read_10(std::string_view hex) {
  const Bytes bytes = from_hex(hex);
  Reader reader(bytes, Version::k1_0, Reading::kStrict);
  Match read;
  match(reader, read);
  EXPECT_EQ(reader.error(), ErrorCode::kNone);
  return read;
}

TEST(OpenFlowMatch, FieldsThatTheTypeDoesNotHaveAreIgnoredIn10) {
  // dl_type 0x88cc with addresses, protocol and ports; a priority without a tag.
  EXPECT_EQ(
      read_10("00000000 0001 000000000001 000000000002 ffff 05 00 88cc 04 06 0000 0a000001 0a000002 0001 0002").key,
      key_of("in_port=1,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,vlan_vid=0,dl_type=0x88cc"));
  // IPv6: no addresses.
  EXPECT_EQ(
      read_10("0010000f 0000 000000000000 000000000000 0000 00 00 86dd 20 06 0000 0a000001 0a000002 0001 0002").key,
      key_of("tcp6,nw_tos=32,tp_src=1,tp_dst=2"));
  // ICMP's type and code are one byte each.
  EXPECT_EQ(
      read_10("0038200f 0000 000000000000 000000000000 0000 00 00 0800 00 01 0000 00000000 00000000 0008 0001").key,
      key_of("icmp,icmp_type=8,icmp_code=1"));
  // 33 ignored bits of an address are as good as 32.
  EXPECT_EQ(
      read_10("003861ef 0000 000000000000 000000000000 0000 00 00 0800 00 00 0000 0a000001 00000000 0000 0000").key,
      key_of("ip"));
}

TEST(OpenFlowMatch, EntriesWithoutWildcardsComeFirstIn10) {
  const std::string_view fields =
      "0001 000000000001 000000000002 ffff 00 00 0806 00 01 0000 0a000001 0a000002 0000 0000";
  EXPECT_TRUE(read_10("00000000" + std::string(fields)).exact_1_0);
  EXPECT_TRUE(read_10("ffc00000" + std::string(fields)).exact_1_0);  // bits that are none
  EXPECT_FALSE(read_10("00200000" + std::string(fields)).exact_1_0);
  Bytes bytes;
  Writer writer(bytes, Version::k1_0);
  match(writer, read_10("00000000" + std::string(fields)));
  EXPECT_EQ(bytes, from_hex("00000000" + std::string(fields)));
}

std::string written(Version version, const std::vector<Instruction>& list, std::string_view match, bool& exact) {
  Bytes bytes;
  Writer writer(bytes, version);
  instructions(writer, list, key_of(match));
  exact = writer.exact();
  std::string hex;
  for (const uint8_t byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::vector<Instruction> read_instructions(Version version, std::string_view hex) {
  const Bytes bytes = from_hex(hex);
  Reader reader(bytes, version, Reading::kStrict);
  std::vector<Instruction> list;
  instructions(reader, list);
  EXPECT_EQ(reader.error(), ErrorCode::kNone);
  return list;
}

struct View {
  const char* match;
  const char* actions_1_0;
  const char* actions_1_3;
};

/// The same in both, in either direction.
TEST(OpenFlowViews, ActionsThatMeanTheSame) {
  const View views[] = {
      {"", "0000000800010000", "0000001000000001 0000000000000000"},
      {"", "00000008fffd0080", "00000010fffffffd 0080000000000000"},
      {"dl_vlan=5", "0003000800000000", "0012000800000000"},                   // strip, pop
      {"dl_vlan=5", "0001000800070000", "0019001080000c02 1007000000000000"},  // VLAN 7
      {"dl_vlan=5", "0002000803000000", "0019001080000e01 0300000000000000"},  // priority 3
      {"dl_vlan=0xffff", "0001000800070000", "0011000881000000 0019001080000c02 1007000000000000"},
      {"", "0004001000010203 0405000000000000", "0019001080000806 0001020304050000"},  // dl_src
      {"", "0005001000010203 0405000000000000", "0019001080000606 0001020304050000"},  // dl_dst
      {"ip", "000600080a000001", "0019001080001604 0a00000100000000"},                 // nw_src
      {"ip", "000700080a000001", "0019001080001804 0a00000100000000"},                 // nw_dst
      {"ip", "00080008b8000000", "0019001080001001 2e00000000000000"},                 // DSCP 46
      {"tcp", "0009000800500000", "0019001080001a02 0050000000000000"},
      {"tcp", "000a000800500000", "0019001080001c02 0050000000000000"},
      {"udp", "0009000800500000", "0019001080001e02 0050000000000000"},
      {"udp", "000a000800500000", "0019001080002002 0050000000000000"},
      {"", "000b001000020000 0000000000000004", "0015000800000004 0000001000000002 0000000000000000"},  // queue 4
  };
  for (const View& view : views) {
    SCOPED_TRACE(view.actions_1_0);
    const Bytes body = from_hex(view.actions_1_3);
    const std::string as_13 = fmt::format("0004{:04x}00000000", body.size() + 8) + view.actions_1_3;
    const auto hex = [](std::string text) {
      std::erase(text, ' ');
      return text;
    };
    bool exact = false;
    EXPECT_EQ(written(Version::k1_3, read_instructions(Version::k1_0, view.actions_1_0), view.match, exact),
              hex(as_13));
    EXPECT_TRUE(exact);
    EXPECT_EQ(written(Version::k1_0, read_instructions(Version::k1_3, as_13), view.match, exact),
              hex(view.actions_1_0));
    EXPECT_TRUE(exact);
  }
}

TEST(OpenFlowViews, ReasonsOf13BecomeTheNearestOf10) {
  Message message;
  message.version = Version::k1_0;
  PacketIn packet;
  packet.reason = PacketInReason::kInvalidTtl;
  FlowRemoved removed;
  removed.reason = FlowRemovedReason::kGroupDelete;
  Bytes bytes;
  message.body = packet;
  EXPECT_FALSE(encode(message, bytes));
  ASSERT_EQ(decode(bytes, message), ErrorCode::kNone);
  EXPECT_EQ(std::get<PacketIn>(message.body).reason, PacketInReason::kAction);
  bytes.clear();
  message.body = removed;
  EXPECT_FALSE(encode(message, bytes));
  ASSERT_EQ(decode(bytes, message), ErrorCode::kNone);
  EXPECT_EQ(std::get<FlowRemoved>(message.body).reason, FlowRemovedReason::kDelete);
}

TEST(OpenFlowViews, WhatAVersionCannotSayIsLeftOut) {
  bool exact = true;
  // A meter, a group, goto: 1.0 shows the output that is there.
  const auto list = read_instructions(
      Version::k1_3,
      "0006000800000001 0004002800000000 0016000800000005 0000001000000001 0000000000000000 0010000800000000"
      "0001000803000000");
  EXPECT_EQ(written(Version::k1_0, list, "", exact), "0000000800010000");
  EXPECT_FALSE(exact);
  // Setting a port of neither TCP nor UDP, and a VLAN of packets that may have a tag or not.
  EXPECT_EQ(written(Version::k1_3, read_instructions(Version::k1_0, "0009000800500000"), "ip", exact),
            "0004000800000000");
  EXPECT_FALSE(exact);
  written(Version::k1_3, read_instructions(Version::k1_0, "0001000800070000"), "", exact);
  EXPECT_FALSE(exact);
  // Set-field of a VLAN needs a tag in 1.3; 1.0 would add one.
  EXPECT_EQ(written(Version::k1_0,
                    read_instructions(Version::k1_3, "0004001800000000 0019001080000c02 1007000000000000"), "", exact),
            "");
  EXPECT_FALSE(exact);
  // An action set of one action is that action; several have an order of their own.
  EXPECT_EQ(written(Version::k1_0,
                    read_instructions(Version::k1_3, "0003001800000000 0000001000000001 0000000000000000"), "", exact),
            "0000000800010000");
  EXPECT_TRUE(exact);
}

}  // namespace
}  // namespace headrace::openflow
