#include "tables/rules/port_groups.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "support/ip_packets.hh"
#include "support/test_router.hh"
#include "tables/rules/rule_reader.hh"

namespace headrace::rules {
namespace {

using testing::from_hex;
using testing::ip_packet;

PacketBytes packet_of(const std::string& bytes, int32_t network = 0) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<uint32_t>(bytes.size()), network};
}
std::string tcp(uint16_t sport, uint16_t dport) {
  return testing::tcp_packet({"10.0.0.1", sport, "10.0.0.2", dport}, "data");
}
std::string udp(uint16_t sport, uint16_t dport) {
  return testing::udp_packet({"10.0.0.1", sport, "10.0.0.2", dport}, "data");
}
/// An IPv6 packet with a header of options in front of what it carries.
std::string with_options(uint8_t protocol, const std::string& carried) {
  std::string bytes = from_hex("60000000 0000 00 40") + std::string(32, '\1');
  bytes[5] = static_cast<char>(carried.size() + 8);
  return bytes + static_cast<char>(protocol) + from_hex("00 0104 00000000") + carried;
}
const std::string kPorts = from_hex("03e8 0050 00000000 00000000 50000000 00000000");  // 1000 to 80

/// A program of rules with headers like `tcp any any -> any 80`, each with a literal of its own; sids count from 1.
class Groups {
 public:
  explicit Groups(const std::vector<std::string>& headers, size_t most_bytes = PortGroups::kMostBytes)
      : program_(read(headers)), groups_(program_, most_bytes) {}

  const PortGroups& groups() const { return groups_; }
  const RuleProgram& program() const { return program_; }
  /// The sids of rules whose literal counts in the packet.
  std::set<uint32_t> sids(const PacketBytes& packet) const {
    std::set<uint32_t> found;
    const PortGroupsView view = groups_.view();
    const PortPair ports = view.of(packet);
    if (!view.any(ports)) return found;
    for (uint32_t pattern = 0; pattern < program_.patterns().size(); ++pattern)
      if (view.admits(ports, pattern))
        program_.each_of_pattern(pattern, [&](uint32_t rule) { found.insert(program_.rules()[rule].sid); });
    return found;
  }
  std::set<uint32_t> sids(const std::string& bytes) const { return sids(packet_of(bytes)); }

 private:
  static RuleProgram read(const std::vector<std::string>& headers) {
    RuleReader reader({});
    std::string text;
    for (size_t i = 0; i < headers.size(); ++i) {
      const size_t options = headers[i].find(';');
      text += fmt::format("alert {} (content:\"literal {}\"; {} sid:{};)\n", headers[i].substr(0, options), i,
                          options == std::string::npos ? "" : headers[i].substr(options + 1), i + 1);
    }
    reader.read_text(text, "t");
    RuleSet set = reader.finish();
    for (const RefusedRule& refused : set.refused) ADD_FAILURE() << refused.text();
    return RuleProgram(std::move(set.rules));
  }

  RuleProgram program_;
  PortGroups groups_;
};

using Sids = std::set<uint32_t>;

TEST(PortGroups, PortsOfRules) {
  const Groups g({"tcp any any -> any 80", "tcp any !80 -> any any", "tcp any [20:30,!25] -> any [80,443]",
                  "udp any any -> any 80", "ip any any -> any any", "tcp any 80 <> any 443"});
  EXPECT_EQ(g.sids(tcp(1000, 80)), (Sids{1, 2, 5}));
  EXPECT_EQ(g.sids(tcp(80, 80)), (Sids{1, 5, 6}));  // each port alone could be one of 6
  EXPECT_EQ(g.sids(tcp(80, 443)), (Sids{5, 6}));
  EXPECT_EQ(g.sids(tcp(443, 80)), (Sids{1, 2, 5, 6}));
  EXPECT_EQ(g.sids(tcp(24, 443)), (Sids{2, 3, 5}));
  EXPECT_EQ(g.sids(tcp(25, 443)), (Sids{2, 5}));
  EXPECT_EQ(g.sids(tcp(0, 65535)), (Sids{2, 5}));
  EXPECT_EQ(g.sids(udp(1000, 80)), (Sids{4, 5}));
  EXPECT_EQ(g.sids(udp(80, 1000)), (Sids{5}));
}

TEST(PortGroups, PacketsWithoutPorts) {
  const Groups g({"tcp any any -> any 80", "tcp any any -> any any", "udp any any -> any any",
                  "icmp any any -> any any", "ip any any -> any any", "ip any any -> any any;ip_proto:47;",
                  "sctp any any -> any 80", "icmp any 80 -> any any"});
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 6, kPorts, 0x2003)), (Sids{2, 5}));  // a later fragment
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 6, kPorts, 0x2000)), (Sids{1, 2, 5}));
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 6, "abc")), (Sids{2, 5}));  // too short for ports
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 17, kPorts, 0x0001)), (Sids{3, 5}));
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 1, "12345678")), (Sids{4, 5}));
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 47, "gre")), (Sids{5, 6, 7}));
  EXPECT_EQ(g.sids(ip_packet("10.0.0.1", "10.0.0.2", 132, kPorts)), (Sids{5, 6, 7}));
  EXPECT_EQ(g.sids(with_options(6, kPorts)), (Sids{1, 2, 5}));
  EXPECT_EQ(g.sids(with_options(58, kPorts)), (Sids{4, 5}));
  // A fragment that is not the first one.
  EXPECT_EQ(g.sids(with_options(44, from_hex("0600 0008 00000001") + kPorts)), (Sids{2, 5}));
  const std::string arp = from_hex("ffffffffffff 020000000001 0806") + kPorts;
  EXPECT_EQ(g.sids(packet_of(arp, PacketBytes::kNone)), Sids());
  const std::string tagged = from_hex("ffffffffffff 020000000001 8100 0001 0800") + tcp(1, 80);
  EXPECT_EQ(g.sids(packet_of(tagged, PacketBytes::kNone)), (Sids{1, 2, 5}));
  EXPECT_EQ(g.sids(packet_of(tagged, 18)), (Sids{1, 2, 5}));
}

TEST(PortGroups, EqualSetsAreOneGroup) {
  const Groups none({});
  EXPECT_EQ(none.sids(tcp(1, 2)), Sids());
  const Groups g({"tcp any any -> any any", "tcp any any -> any any"});
  EXPECT_EQ(g.groups().groups(), 2u);  // all and nothing
  EXPECT_EQ(g.sids(tcp(1, 2)), (Sids{1, 2}));
  EXPECT_EQ(g.sids(udp(1, 2)), Sids());
  // Every second port is one group, however many there are.
  std::string ports = "[0";
  for (int port = 2; port < 2000; port += 2) ports += fmt::format(",{}", port);
  EXPECT_EQ(Groups({"udp any any -> any " + ports + "]", "tcp any any -> any any"}).groups().groups(), 3u);
}

TEST(PortGroups, WithoutRoomPortsShareAGroup) {
  std::vector<std::string> headers;
  for (int i = 0; i < 100; ++i) headers.push_back(fmt::format("tcp any any -> any {}", 10 * i + 5));
  const Groups roomy(headers), narrow(headers, 20 * 16);
  EXPECT_GT(roomy.groups().groups(), 100u);
  EXPECT_LE(narrow.groups().groups(), 20u);
  EXPECT_EQ(narrow.sids(tcp(1, 5)), (Sids{1}));
  EXPECT_EQ(roomy.sids(tcp(1, 995)), (Sids{100}));
  EXPECT_EQ(narrow.sids(tcp(1, 995)).size(), 100u);
}

/// Any packet: what a rule's header matches is never left out, and what it cannot match by protocol and ports is.
TEST(PortGroups, RandomRulesOnRandomPackets) {
  std::mt19937 random(11);
  const std::array<std::string, 9> protocols{"tcp", "udp", "ip", "icmp", "sctp", "ipv6", "icmpv6", "ipv4", "icmpv4"};
  const std::array<uint16_t, 6> known{0, 21, 80, 443, 1024, 65535};
  const auto port = [&] { return known[random() % known.size()]; };
  const auto ports = [&]() -> std::string {
    switch (random() % 6) {
      case 0:
        return fmt::format("{}", port());
      case 1:
        return fmt::format("!{}", port());
      case 2:
        return fmt::format("[{},{}]", port(), port());
      case 3:
        return "22:1000";
      case 4:
        return "![80,1000:]";
      default:
        return "any";
    }
  };
  std::vector<std::string> headers;
  for (int i = 0; i < 400; ++i)
    headers.push_back(fmt::format("{} any {} {} any {}{}", protocols[random() % protocols.size()], ports(),
                                  random() % 8 == 0 ? "<>" : "->", ports(),
                                  random() % 8 == 0 ? fmt::format(";ip_proto:{};", random() % 2 ? 17 : 132) : ""));
  const Groups g(headers);
  size_t matched = 0, exact = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::array<uint8_t, 7> carried{6, 6, 17, 1, 58, 132, 47};
    const uint8_t protocol = carried[random() % carried.size()];
    const uint16_t sport = port(), dport = port();
    std::string data = kPorts;
    for (const auto& [at, value] : {std::pair(0, sport), std::pair(2, dport)}) {
      data[static_cast<size_t>(at)] = static_cast<char>(value >> 8);
      data[static_cast<size_t>(at) + 1] = static_cast<char>(value);
    }
    std::string bytes = random() % 2
                            ? with_options(protocol, data)
                            : ip_packet("10.0.0.1", "10.0.0.2", protocol, data, random() % 4 == 0 ? 0x2005 : 0);
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    if (random() % 4 == 0 && !bytes.empty()) bytes[random() % std::min<size_t>(bytes.size(), 60)] ^= 1u << random() % 8;
    const std::vector<uint8_t> whole(bytes.begin(), bytes.end());  // a sanitizer sees its end
    const PacketBytes packet{whole.data(), static_cast<uint32_t>(whole.size()), 0};
    const PacketFacts facts(packet);
    const Sids sids = g.sids(packet);
    for (const Rule& rule : g.program().rules()) {
      const bool admits = sids.count(rule.sid) != 0;
      if (facts.is_ip() && facts.header_matches(rule) && rule.is_about(facts.protocol())) {
        ++matched;
        ASSERT_TRUE(admits) << headers[rule.sid - 1] << " " << testing::to_hex(bytes);
      }
      if (!facts.is_ip() || !facts.has_ports() || facts.protocol() == 132 || rule.both_ways) continue;
      ++exact;
      ASSERT_EQ(admits, rule.is_about(facts.protocol()) && rule.sports->contains(facts.src_port()) &&
                            rule.dports->contains(facts.dst_port()))
          << headers[rule.sid - 1] << " " << testing::to_hex(bytes);
    }
  }
  EXPECT_GT(matched, 40000u);
  EXPECT_GT(exact, 200000u);
}

}  // namespace
}  // namespace headrace::rules
