/// \file
/// The table of fields, the parser of packet keys, and matches as text.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/text.hh"
#include "support/source_dir.hh"
#include "tables/acl/rule_file.hh"
#include "tables/key/key_fields.hh"
#include "tables/key/key_match.hh"
#include "tables/key/packet_key_view.hh"

namespace headrace {
namespace {

TEST(KeyFields, AreThoseOfOpenFlow) {
  const auto fields = key_fields();
  ASSERT_EQ(fields.size(), 40u);
  int in_1_0 = 0;
  std::vector<int> wildcards;
  for (size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i].oxm, i);
    EXPECT_LE(fields[i].place + fields[i].bits, 32 * static_cast<int>(key_word::kCount));
    EXPECT_EQ(find_key_field(fields[i].name), &fields[i]);
    for (const KeyPrerequisite& p : fields[i].prerequisites) {
      if (p.field != nullptr) {
        EXPECT_NE(find_key_field(p.field), nullptr) << p.field;
      }
    }
    if (fields[i].wildcard_1_0 >= 0) wildcards.push_back(fields[i].wildcard_1_0);
  }
  std::sort(wildcards.begin(), wildcards.end());
  wildcards.erase(std::unique(wildcards.begin(), wildcards.end()), wildcards.end());
  in_1_0 = static_cast<int>(wildcards.size());
  EXPECT_EQ(in_1_0, 12);
  for (const KeyField& field : fields) {
    if (field.wildcard_1_0 < 0) continue;
    EXPECT_LT(field.place + field.bits, 12 * 32) << field.name;
  }
}

/// Fields that have bits in common require different values of something.
TEST(KeyFields, ShareBitsOnlyIfNoPacketHasBoth) {
  const auto excludes = [](const KeyField& a, const KeyField& b) {
    for (const KeyPrerequisite& x : a.prerequisites) {
      for (const KeyPrerequisite& y : b.prerequisites) {
        if (x.field == nullptr || y.field == nullptr || std::string(x.field) != y.field) continue;
        if (x.value != y.value && x.value != y.other && x.other != y.value && (x.other == 0 || x.other != y.other))
          return true;
      }
    }
    return false;
  };
  for (const KeyField& a : key_fields()) {
    for (const KeyField& b : key_fields()) {
      if (&a == &b || a.place + a.bits <= b.place || b.place + b.bits <= a.place) continue;
      EXPECT_TRUE(excludes(a, b)) << a.name << " and " << b.name;
    }
  }
}

TEST(KeyFields, AreDocumentedAsTheyAre) {
  std::ifstream file(kSourceDir + "/docs/fields.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(key_fields_page()), std::string::npos) << "the table must be\n" << key_fields_page();
}

TEST(KeyFields, GetWhatWasSet) {
  std::mt19937_64 random(2);
  for (const KeyField& field : key_fields()) {
    std::array<uint32_t, key_word::kCount> words{}, before;
    for (uint32_t& word : words) word = static_cast<uint32_t>(random());
    before = words;
    const KeyValue ones = key_field_ones(field);
    const KeyValue value{random() & ones.high, random() & ones.low};
    set_key_field(words, field, value);
    EXPECT_EQ(get_key_field(words, field), value) << field.name;
    const auto text = unparse_key_value(field, value);
    EXPECT_EQ(parse_key_value(field, text), value) << field.name << ' ' << text;
    set_key_field(words, field, get_key_field(before, field));
    EXPECT_EQ(words, before) << field.name;
  }
}

/// Blanks between digits mean nothing.
std::string frame_of_hex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) continue;
    if (high >= 0) bytes += static_cast<char>(high << 4 | digit);
    high = high >= 0 ? -1 : digit;
  }
  return bytes;
}

PacketKey key_of(const std::string& frame, const PacketKeyContext& context = {}) {
  PacketBytes bytes;
  bytes.data = reinterpret_cast<const uint8_t*>(frame.data());
  bytes.length = static_cast<uint32_t>(frame.size());
  return parse_frame(bytes, static_cast<int32_t>(frame.size()), context);
}

/// What a key has in a field, as text.
std::string field_of(const PacketKey& key, const char* name) {
  const KeyField& field = *find_key_field(name);
  return unparse_key_value(field, get_key_field(key.w, field));
}

TEST(PacketKey, OfTCPBehindATag) {
  const PacketKey key =
      key_of(frame_of_hex("020304050607 0a0b0c0d0e0f 8100a00a 0800"
                          "45b80028 00000000 40060000 c0000201 c6336401 0050 1f90 000000000000000050000000 00000000"),
             {7, 9, 0x1122334455667788, 0x99aabbccddeeff00});
  const std::pair<const char*, const char*> expected[] = {{"in_port", "7"},
                                                          {"in_phy_port", "9"},
                                                          {"metadata", "0x1122334455667788"},
                                                          {"tun_id", "0x99aabbccddeeff00"},
                                                          {"dl_dst", "02:03:04:05:06:07"},
                                                          {"dl_src", "0a:0b:0c:0d:0e:0f"},
                                                          {"dl_type", "0x800"},
                                                          {"vlan_vid", "0x100a"},
                                                          {"vlan_pcp", "5"},
                                                          {"ip_dscp", "46"},
                                                          {"nw_ecn", "0"},
                                                          {"nw_proto", "6"},
                                                          {"nw_src", "192.0.2.1"},
                                                          {"nw_dst", "198.51.100.1"},
                                                          {"tcp_src", "80"},
                                                          {"tcp_dst", "8080"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(field_of(key, name), value) << name;
}

TEST(PacketKey, OfLaterFragmentsHasNoPorts) {
  const PacketKey key = key_of(
      frame_of_hex("020304050607 0a0b0c0d0e0f 0800 4500001c 00000010 40110000 c0000201 c6336401 0050 1f90 00080000"));
  EXPECT_EQ(field_of(key, "nw_proto"), "17");
  EXPECT_EQ(key.w[key_word::kPorts], 0u);
}

TEST(PacketKey, OfARP) {
  const PacketKey key = key_of(
      frame_of_hex("ffffffffffff 0a0b0c0d0e0f 0806 0001 0800 06 04 0002 0a0b0c0d0e0f c0000201 020304050607 c0000202"));
  const std::pair<const char*, const char*> expected[] = {{"dl_type", "0x806"},
                                                          {"arp_op", "2"},
                                                          {"arp_spa", "192.0.2.1"},
                                                          {"arp_tpa", "192.0.2.2"},
                                                          {"arp_sha", "0a:0b:0c:0d:0e:0f"},
                                                          {"arp_tha", "02:03:04:05:06:07"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(field_of(key, name), value) << name;
}

TEST(PacketKey, OfNeighborSolicitationBehindHopByHop) {
  const PacketKey key =
      key_of(frame_of_hex("3333ff000002 0a0b0c0d0e0f 86dd 6e054321 0028 00 ff 20010db8000000000000000000000001"
                          "ff0200000000000000000001ff000002 3a00000000000000"
                          "8700 0000 00000000 20010db8000000000000000000000002 0101 0a0b0c0d0e0f"));
  const std::pair<const char*, const char*> expected[] = {{"dl_type", "0x86dd"},
                                                          {"ip_dscp", "56"},
                                                          {"nw_ecn", "0"},
                                                          {"ipv6_label", "0x54321"},
                                                          {"nw_proto", "58"},
                                                          {"ipv6_src", "2001:db8::1"},
                                                          {"ipv6_dst", "ff02::1:ff00:2"},
                                                          {"ipv6_exthdr", "0x40"},
                                                          {"icmpv6_type", "135"},
                                                          {"icmpv6_code", "0"},
                                                          {"nd_target", "2001:db8::2"},
                                                          {"nd_sll", "0a:0b:0c:0d:0e:0f"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(field_of(key, name), value) << name;
}

TEST(PacketKey, OfMPLSAndPBB) {
  const PacketKey mpls = key_of(frame_of_hex("020304050607 0a0b0c0d0e0f 8847 12345b40 45000014"));
  EXPECT_EQ(field_of(mpls, "mpls_label"), std::to_string(0x12345));
  EXPECT_EQ(field_of(mpls, "mpls_tc"), "5");
  EXPECT_EQ(field_of(mpls, "mpls_bos"), "1");
  const PacketKey pbb = key_of(frame_of_hex("020304050607 0a0b0c0d0e0f 88e7 00abcdef 020304050607"));
  EXPECT_EQ(field_of(pbb, "pbb_isid"), "0xabcdef");
}

/// Whatever the bytes are, nothing behind the end is read: AddressSanitizer sees to that.
TEST(PacketKey, OfTruncatedFrames) {
  const std::string whole = frame_of_hex(
      "3333ff000002 0a0b0c0d0e0f 81000001 86dd 6e054321 0028 00 ff 20010db8000000000000000000000001"
      "ff0200000000000000000001ff000002 3a00000000000000"
      "8700 0000 00000000 20010db8000000000000000000000002 0101 0a0b0c0d0e0f");
  std::mt19937 random(4);
  for (size_t length = 0; length <= whole.size(); ++length) {
    for (int i = 0; i < 50; ++i) {
      std::vector<uint8_t> frame(whole.begin(), whole.begin() + static_cast<long>(length));
      for (uint8_t& byte : frame)
        if (random() % 20 == 0) byte = static_cast<uint8_t>(random());
      PacketBytes bytes;
      bytes.data = frame.data();
      bytes.length = static_cast<uint32_t>(length);
      (void)parse_frame(bytes, static_cast<int32_t>(length), {});
    }
  }
}

FlowRule flow(const std::string& text) {
  FlowRule rule;
  EXPECT_EQ(parse_flow_rule(text, rule), "") << text;
  return rule;
}

TEST(KeyMatch, ReadsWhatItWrites) {
  for (const char* text :
       {"priority=10,tcp,nw_src=10.0.0.0/8,tp_dst=80 actions=output:2", "priority=0 actions=drop",
        "priority=32768,in_port=3,dl_src=00:00:00:00:00:01,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=output:0",
        "priority=5,udp6,ipv6_src=2001:db8::/32,tp_src=1024-65535 actions=output:1",
        "priority=7,arp,arp_op=1,arp_tpa=192.0.2.1 actions=output:3",
        "priority=7,icmp,icmp_type=8,icmp_code=0 actions=output:3",
        "priority=7,ip,vlan_vid=0x100a,vlan_pcp=3,ip_dscp=46,nw_ecn=1 actions=output:3",
        "priority=7,icmp6,icmpv6_type=135,nd_target=2001:db8::1,nd_sll=02:00:00:00:00:01 actions=output:3",
        "priority=9,mpls,mpls_label=77,mpls_tc=2,mpls_bos=1 actions=output:3",
        "priority=9,metadata=0x10/0xff,dl_type=0x88e7,pbb_isid=0x1234 actions=output:3",
        "priority=9,ip,nw_src=10.0.0.1/255.0.0.255 actions=output:3",
        "priority=9,tcp,tp_src=0x10/0xfff0 actions=drop"}) {
    const FlowRule rule = flow(text);
    const std::string written = unparse_flow_rule(rule);
    FlowRule again;
    ASSERT_EQ(parse_flow_rule(written, again), "") << written;
    EXPECT_EQ(again, rule) << text << " became " << written;
  }
  // A table keeps a full mask of ports as bounds, too: they are not said twice.
  FlowRule arp = flow("arp,arp_op=1,actions=2");
  arp.match.low |= 1 << 16;
  arp.match.high = (arp.match.high & 0xffff) | 1 << 16;
  EXPECT_EQ(unparse_flow_rule(arp), "priority=32768,arp,arp_op=1 actions=output:2");
  EXPECT_EQ(unparse_flow_rule(flow("tcp,nw_src=10.0.0.0/8,tp_dst=80,actions=2")),
            "priority=32768,tcp,nw_src=10.0.0.0/8,tp_dst=80 actions=output:2");
}

TEST(KeyMatch, ReadsOtherNames) {
  EXPECT_EQ(flow("dl_vlan=10 actions=1").match, flow("vlan_vid=0x100a actions=1").match);
  EXPECT_EQ(flow("ip,nw_tos=184 actions=1").match, flow("dl_type=0x800,ip_dscp=46 actions=1").match);
  EXPECT_EQ(flow("tcp,tp_src=5 actions=1").match, flow("eth_type=0x800,ip_proto=6,tcp_src=5 actions=1").match);
}

TEST(KeyMatch, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"tcp,tp_dst=80", "expected a ClassBench rule or MATCH actions=ACTION"},
      {"tp_dst=80 actions=1", "needs dl_type=0x800 or 0x86dd and nw_proto="},
      {"tcp,udp actions=1", "'udp' contradicts what is in front of it"},
      {"ip,nw_src=10.0.0 actions=1", "bad value '10.0.0' for nw_src"},
      {"ip,nw_src=10.0.0.0/33 actions=1", "bad mask '33' for nw_src"},
      {"color=3 actions=1", "unknown field 'color'"},
      {"green actions=1", "'green' is no field=value and no protocol"},
      {"ip actions=resubmit:3", "expected actions=output:PORT or drop, found 'resubmit:3'"},
      {"nw_src=10.0.0.1 actions=1", "nw_src needs dl_type=0x800"},
      {"vlan_pcp=3 actions=1", "vlan_pcp needs vlan_vid=0x1000"},
      {"tcp,tp_dst=90-80 actions=1", "bad range of ports '90-80' for tp_dst"},
      {"@10.0.0.0 10.0.0.0/8 0 : 1 0 : 1 0x06/0xFF", "bad prefix '10.0.0.0'"},
      {"@10.0.0.0/8 10.0.0.0/8 9 : 1 0 : 1 0x06/0xFF", "the range of ports '9:1' is empty"},
      {"@10.0.0.0/8 10.0.0.0/8 0 : 1 0 : 70000 0x06/0xFF", "expected ports as LOW : HIGH, found '0:70000'"},
      {"@10.0.0.0/8 10.0.0.0/8 0 : 1 0 : 1 6", "expected the protocol as 0xNN/0xMM, found '6'"}};
  for (const auto& [text, reason] : cases) {
    FlowRule rule;
    const std::string said = parse_flow_rule(text, rule);
    EXPECT_NE(said.find(reason), std::string::npos) << text << ": " << said;
  }
}

TEST(RuleFile, NamesEachBadLineAndKeepsTheGoodOnes) {
  std::vector<FlowRule> rules;
  std::vector<std::string> problems;
  read_flow_rules_text(
      "# a comment\n@10.0.0.0/8 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF 0x0000/0x0000\t\n\nnonsense\n"
      "priority=3,udp actions=output:1 # more\n@1.2.3.4/40\n@0.0.0.0/0\t11.0.0.0/9\t5:7\t0 : 65535\t0x00/0x00\n",
      "file", rules, problems);
  EXPECT_EQ(problems, (std::vector<std::string>{"file:4: expected a ClassBench rule or MATCH actions=ACTION",
                                                "file:6: bad prefix '1.2.3.4/40'"}));
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].priority, kClassBenchPriority);
  EXPECT_EQ(unparse_flow_rule(rules[0]), "priority=2147483648,tcp,nw_src=10.0.0.0/8,tp_dst=80");
  EXPECT_EQ(rules[1].output, 1);
  EXPECT_EQ(rules[2].priority, kClassBenchPriority - 2);
  EXPECT_EQ(rules[2].match.low, 5u << 16);
  EXPECT_EQ(rules[2].match.high, 7u << 16 | 0xffff);
  EXPECT_EQ(rules[2].line, 7);
}

}  // namespace
}  // namespace headrace
