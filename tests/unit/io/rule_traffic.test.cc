/// \file
/// Frames drawn inside rules, against what the rules say as text.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "headrace/flow_hash.hh"
#include "src/io/memory/traffic.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"

namespace headrace {
namespace {

uint32_t be(const uint8_t* p, int n) {
  uint32_t value = 0;
  for (int i = 0; i < n; ++i) value = value << 8 | p[i];
  return value;
}

/// A ClassBench rule, read without Headrace's reader.
struct BenchRule {
  uint32_t prefix[2], length[2], low[2], high[2], protocol, protocol_mask;

  explicit BenchRule(const std::string& line) {
    uint32_t b[8];
    const int n = std::sscanf(line.c_str(), "@%u.%u.%u.%u/%u %u.%u.%u.%u/%u %u : %u %u : %u 0x%x/0x%x", &b[0], &b[1],
                              &b[2], &b[3], &length[0], &b[4], &b[5], &b[6], &b[7], &length[1], &low[0], &high[0],
                              &low[1], &high[1], &protocol, &protocol_mask);
    EXPECT_EQ(n, 16) << line;
    for (int i : {0, 1}) prefix[i] = b[4 * i] << 24 | b[4 * i + 1] << 16 | b[4 * i + 2] << 8 | b[4 * i + 3];
  }
  bool contains(const uint8_t* frame) const {
    if (be(frame + 12, 2) != 0x0800 || (frame[23] & protocol_mask) != (protocol & protocol_mask)) return false;
    const bool has_ports = frame[23] == 6 || frame[23] == 17, icmp = frame[23] == 1;
    for (const int i : {0, 1}) {
      const uint32_t address = be(frame + 26 + 4 * i, 4);
      if (length[i] > 0 && (address ^ prefix[i]) >> (32 - length[i]) != 0) return false;
      const uint32_t port = has_ports ? be(frame + 34 + 2 * i, 2) : icmp ? frame[34 + i] : 0;
      if (port < low[i] || port > high[i]) return false;
    }
    return true;
  }
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with('@')) lines.push_back(line);
  return lines;
}

/// Shares of frames inside the rules of a text.
class RuleTraffic : public ::testing::Test {
 protected:
  bool read(const std::string& text) {
    const testing::TemporaryFile file(text);
    spec_.rules.clear();
    path_ = file.path();
    return read_traffic_rules(file.path(), spec_, errors_);
  }
  std::vector<WideHeader> frames(int workers = 1) {
    std::vector<WideHeader> all;
    for (const TrafficShare& share : make_traffic(spec_, workers, errors_)) {
      EXPECT_TRUE(share.records.empty() && share.records6.empty() && share.frames.empty());
      for (const WideHeader& h : share.wide) all.push_back(h);
      for (const NarrowHeader& n : share.narrow) {
        WideHeader h{};
        std::copy(std::begin(n.bytes), std::end(n.bytes), h.bytes);
        h.hash = n.hash;
        h.length = n.length;
        h.size = n.size;
        all.push_back(h);
      }
    }
    return all;
  }

  TrafficSpec spec_;
  Errors errors_;
  std::string path_;
};

TEST_F(RuleTraffic, IsInsideEachRuleOfTheSamples) {
  spec_.flows = 100;
  for (const char* set : {"acl1", "fw1", "ipc1"}) {
    const auto lines = lines_of(kSourceDir + "/tests/data/classbench/" + set + "_sample.rules");
    ASSERT_GT(lines.size(), 100u);
    for (const std::string& line : lines) {
      ASSERT_TRUE(read(line + "\n")) << errors_.str();
      const BenchRule rule(line);
      std::set<std::string> different;
      for (const WideHeader& h : frames()) {
        ASSERT_TRUE(rule.contains(h.bytes)) << line;
        ASSERT_EQ(h.hash, toeplitz_frame(h.bytes, 64));
        different.insert(std::string(reinterpret_cast<const char*>(h.bytes) + 23, 15));
      }
      const bool open = rule.length[0] < 24 || rule.length[1] < 24 || rule.high[0] - rule.low[0] > 1000;
      if (open && rule.protocol != 47) {
        EXPECT_GT(different.size(), 80u) << line;
      }
    }
  }
  EXPECT_EQ(errors_.str(), "");
}

TEST_F(RuleTraffic, WalksAllRules) {
  const std::string path = kSourceDir + "/tests/data/classbench/acl1_sample.rules";
  ASSERT_TRUE(read_traffic_rules(path, spec_, errors_));
  std::vector<BenchRule> rules;
  for (const std::string& line : lines_of(path)) rules.emplace_back(line);
  spec_.flows = 20000;
  std::vector<int> hits(rules.size());
  for (const WideHeader& h : frames(3)) {
    bool inside = false;
    for (size_t i = 0; i < rules.size(); ++i) {
      if (!rules[i].contains(h.bytes)) continue;
      ++hits[i];
      inside = true;
    }
    ASSERT_TRUE(inside);
  }
  const double share = 20000.0 / static_cast<double>(rules.size());
  for (const int n : hits) EXPECT_GT(n, share / 2);
}

TEST_F(RuleTraffic, RulesAreDrawnByZipf) {
  std::string text;
  for (int i = 1; i <= 5; ++i) text += "tcp,nw_src=10.0.0." + std::to_string(i) + " actions=drop\n";
  ASSERT_TRUE(read(text));
  spec_.kind = TrafficSpec::Kind::kZipf;
  spec_.skew = 1.5;
  spec_.flows = 100000;
  std::map<int, int> hits;
  for (const WideHeader& h : frames(3)) ++hits[h.bytes[29]];
  double all = 0;
  for (int i = 1; i <= 5; ++i) all += std::pow(i, -1.5);
  for (int i = 1; i <= 5; ++i) EXPECT_NEAR(hits[i], 100000 * std::pow(i, -1.5) / all, 1000) << i;
}

TEST_F(RuleTraffic, MissesAreOutside) {
  const std::string path = kSourceDir + "/tests/data/classbench/fw1_sample.rules";
  // Without the rules of everything.
  std::string text;
  std::vector<BenchRule> rules;
  for (const std::string& line : lines_of(path)) {
    const BenchRule rule(line);
    if (rule.length[0] + rule.length[1] < 16) continue;
    rules.push_back(rule);
    text += line + "\n";
  }
  ASSERT_TRUE(read(text));
  spec_.flows = 20000;
  spec_.miss = 0.25;
  int outside = 0;
  for (const WideHeader& h : frames()) {
    bool inside = false;
    for (const BenchRule& rule : rules) inside |= rule.contains(h.bytes);
    outside += !inside;
  }
  EXPECT_NEAR(outside, 5000, 250);
  spec_.miss = 0;
  ASSERT_TRUE(read("tcp actions=drop\nudp actions=drop\nip actions=drop\n"));
  spec_.miss = 0.1;
  EXPECT_EQ(errors_.str(), "");
  frames();
  EXPECT_NE(errors_.str().find("MISS: no frame is outside of the rules"), std::string::npos);
}

TEST_F(RuleTraffic, RulesOfEverythingAreNotMissed) {
  ASSERT_TRUE(read("ip actions=drop\ntcp,tp_dst=80 actions=drop\n"));
  spec_.flows = 20000;
  spec_.miss = 0.5;
  int web = 0;
  for (const WideHeader& h : frames()) web += h.bytes[23] == 6 && be(h.bytes + 36, 2) == 80;
  EXPECT_NEAR(web, 5000, 300);
  EXPECT_EQ(errors_.str(), "");
}

TEST_F(RuleTraffic, TheSeedDecides) {
  ASSERT_TRUE(read("ip,nw_src=10.0.0.0/8 actions=drop\ntcp,tp_dst=80 actions=drop\n"));
  spec_.flows = 500;
  const auto bytes = [&] {
    std::string all;
    for (const WideHeader& h : frames()) all.append(reinterpret_cast<const char*>(h.bytes), sizeof h.bytes);
    return all;
  };
  const std::string first = bytes();
  EXPECT_EQ(first, bytes());
  spec_.seed = 2;
  EXPECT_NE(first, bytes());
}

TEST_F(RuleTraffic, EachWorkerGetsItsFlows) {
  ASSERT_TRUE(read("tcp actions=drop\n"));
  spec_.flows = 6000;
  const auto shares = make_traffic(spec_, 3, errors_);
  for (int w = 0; w < 3; ++w) {
    EXPECT_NEAR(static_cast<double>(shares[w].narrow.size()), 2000, 200);
    for (const NarrowHeader& h : shares[w].narrow) {
      ASSERT_EQ(rss_worker(h.hash, 3), w);
      ASSERT_EQ(h.bytes[23], 6);
      ASSERT_EQ(h.hash, toeplitz_frame(h.bytes, 54));
    }
  }
}

TEST_F(RuleTraffic, AddressesAreUnicastWhereTheyCanBe) {
  ASSERT_TRUE(read("ip actions=drop\nudp,nw_dst=224.0.0.0/4 actions=drop\n"));
  spec_.flows = 20000;
  int multicast = 0;
  for (const WideHeader& h : frames()) {
    ASSERT_TRUE(h.bytes[26] >= 1 && h.bytes[26] < 224 && h.bytes[26] != 127) << int{h.bytes[26]};
    multicast += h.bytes[30] >> 4 == 14;
  }
  EXPECT_NEAR(multicast, 10000, 400);
}

/// What a frame has at a place, by rule.
struct FieldCase {
  const char* rule;
  int at;
  int bytes;
  uint32_t mask;
  uint32_t low, high;
};

TEST_F(RuleTraffic, HasTheFieldsOfAnyRule) {
  spec_.flows = 200;
  for (const FieldCase& c : std::initializer_list<FieldCase>{
           {"dl_dst=00:00:00:00:00:07", 0, 4, ~0u, 0, 0},
           {"dl_dst=00:00:00:00:00:07", 4, 2, ~0u, 7, 7},
           {"dl_src=00:01:02:03:04:05", 6, 4, ~0u, 0x00010203, 0x00010203},
           {"dl_src=00:01:02:03:04:05", 10, 2, ~0u, 0x0405, 0x0405},
           {"dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", 0, 1, 1, 1, 1},
           {"in_port=3,tcp,tp_src=22", 34, 2, ~0u, 22, 22},
           {"ip,dl_vlan=10", 12, 4, 0xffff0fff, 0x8100000a, 0x8100000a},
           {"ip,dl_vlan=10,dl_vlan_pcp=5", 12, 4, ~0u, 0x8100a00a, 0x8100a00a},
           {"tcp,dl_vlan=10,tp_dst=443", 40, 2, ~0u, 443, 443},
           {"tcp,tp_dst=1000-2000", 36, 2, ~0u, 1000, 2000},
           {"udp,tp_src=0x10/0xfff0", 34, 2, ~0u, 16, 31},
           {"ip,ip_dscp=46,nw_ecn=2", 15, 1, ~0u, 46 << 2 | 2, 46 << 2 | 2},
           {"ip,nw_src=10.1.2.3/255.0.0.255", 26, 4, 0xff0000ff, 0x0a000003, 0x0a000003},
           {"icmp,icmp_type=8,icmp_code=0", 34, 2, ~0u, 0x0800, 0x0800},
           {"ip,nw_proto=47", 23, 1, ~0u, 47, 47},
           {"sctp,tp_dst=5", 36, 2, ~0u, 5, 5},
           {"arp,arp_op=2,arp_spa=192.0.2.7", 20, 2, ~0u, 2, 2},
           {"arp,arp_op=2,arp_spa=192.0.2.7", 28, 4, ~0u, 0xc0000207, 0xc0000207},
           {"arp,arp_tpa=192.0.2.0/24", 38, 3, ~0u, 0xc00002, 0xc00002},
           {"arp,arp_sha=02:00:00:00:00:09", 24, 4, ~0u, 9, 9},
           {"mpls,mpls_label=77,mpls_bos=1", 14, 4, 0xfffff100, 77 << 12 | 0x100, 77 << 12 | 0x100},
           {"tcp6,ipv6_dst=2001:db8::/32,tp_dst=80", 38, 4, ~0u, 0x20010db8, 0x20010db8},
           {"tcp6,ipv6_dst=2001:db8::/32,tp_dst=80", 56, 2, ~0u, 80, 80},
           {"ipv6,ipv6_label=0x12345", 14, 4, 0x000fffff, 0x12345, 0x12345},
           {"icmp6,icmpv6_type=135,nd_target=fe80::1,nd_sll=02:00:00:00:00:01", 74, 4, ~0u, 1, 1},
           {"icmp6,icmpv6_type=135,nd_target=fe80::1,nd_sll=02:00:00:00:00:01", 78, 4, ~0u, 0x01010200, 0x01010200},
       }) {
    ASSERT_TRUE(read(std::string(c.rule) + " actions=drop\n")) << c.rule << '\n' << errors_.str();
    const auto all = frames();
    ASSERT_EQ(all.size(), 200u);
    for (const WideHeader& h : all) {
      const uint32_t value = be(h.bytes + c.at, c.bytes) & c.mask;
      ASSERT_TRUE(value >= c.low && value <= c.high) << c.rule << ": " << std::hex << value;
      ASSERT_GE(h.length, std::max<int>(h.size, 60));
    }
  }
}

TEST_F(RuleTraffic, BadLinesAreNamed) {
  spec_.flows = 10;
  ASSERT_TRUE(
      read("tcp actions=drop\nnonsense\n# so\nipv6,ipv6_exthdr=0x40 actions=drop\n"
           "@0.0.0.0/0 1.0.0.0/8 5 : 5 0 : 65535 0x2f/0xff\n"));
  EXPECT_EQ(spec_.rules.size(), 1u);
  EXPECT_NE(errors_.str().find("RULES: " + path_ + ":2: expected a ClassBench rule"), std::string::npos)
      << errors_.str();
  EXPECT_NE(errors_.str().find("RULES: " + path_ + ":4: no frame can be drawn inside this rule"), std::string::npos);
  EXPECT_NE(errors_.str().find("RULES: " + path_ + ":5: no frame can be drawn inside this rule"), std::string::npos);
  EXPECT_EQ(errors_.error_count(), 0);
  EXPECT_FALSE(read("nonsense\n"));
  EXPECT_NE(errors_.str().find("RULES: " + path_ + ": no rules"), std::string::npos);
  EXPECT_FALSE(read_traffic_rules("/nonexistent", spec_, errors_));
  EXPECT_NE(errors_.str().find("/nonexistent: No such file"), std::string::npos);
}

TEST_F(RuleTraffic, PrefixesAndUniformTrafficHaveTcp) {
  spec_.protocol = 6;
  spec_.flows = 1000;
  std::set<uint32_t> destinations;
  for (const WideHeader& h : frames()) {
    ASSERT_EQ(be(h.bytes + 26, 4), 0xc6120101u);
    ASSERT_EQ(h.bytes[23], 6);
    ASSERT_EQ(be(h.bytes + 36, 2), 53u);
    destinations.insert(be(h.bytes + 30, 4));
  }
  EXPECT_GT(destinations.size(), 990u);
  ASSERT_TRUE(parse("2001:db8::/32", spec_.prefixes.emplace_back()));
  for (const WideHeader& h : frames()) {
    ASSERT_EQ(be(h.bytes + 38, 4), 0x20010db8u);
    ASSERT_EQ(h.bytes[20], 6);
    ASSERT_EQ(h.length, 74);
  }
}

}  // namespace
}  // namespace headrace
