#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decision_packet.hh"
#include "tables/decision/ip_filter.hh"

namespace headrace {
namespace {

using decision_test::Bytes;
using decision_test::CheckedWords;
using Rules = std::vector<std::string>;

/// Knows a host, a network, an interface that is both, an Ethernet address and a port.
class TestNames : public NameScope {
 public:
  std::optional<IpAddress> find_ip(std::string_view name) const override {
    if (name == "gateway" || name == "eth0") return IpAddress::from_octets(192, 168, 7, 1);
    if (name == "www") return IpAddress::from_octets(192, 168, 7, 80);
    return std::nullopt;
  }
  std::optional<IpPrefix> find_prefix(std::string_view name) const override {
    if (name == "lan" || name == "eth0") return IpPrefix::of(IpAddress::from_octets(192, 168, 7, 1), 24);
    return std::nullopt;
  }
  std::optional<EtherAddress> find_ether(std::string_view name) const override {
    if (name == "nic") return EtherAddress({2, 0, 0, 0, 0, 9});
    return std::nullopt;
  }
  std::optional<uint16_t> find_port(std::string_view name, int protocol) const override {
    if (name == "game") return protocol == 6 ? 4000 : 4001;
    return std::nullopt;
  }
};

DecisionProgram compile_rules(const Rules& rules, const NameScope* names = nullptr, int outputs = 8) {
  Errors errors;
  DecisionProgram program;
  EXPECT_TRUE(compile_ip_filter(rules, outputs, names, errors, program).ok()) << errors.str();
  return program;
}
std::string text(const Rules& rules, const NameScope* names = nullptr) { return compile_rules(rules, names).text(); }
/// The text for one pattern that is allowed.
std::string allow(const std::string& pattern, const NameScope* names = nullptr) {
  return text({"allow " + pattern}, names);
}
/// What is reported about rules that do compile.
std::string warnings(const Rules& rules) {
  Errors errors;
  DecisionProgram program;
  EXPECT_TRUE(compile_ip_filter(rules, 8, nullptr, errors, program).ok());
  return errors.str();
}
std::string errors_of(const Rules& rules, int outputs = 8) {
  Errors errors;
  DecisionProgram program;
  EXPECT_FALSE(compile_ip_filter(rules, outputs, nullptr, errors, program).ok());
  EXPECT_EQ(program.text(), DecisionProgram().text()) << "changed by a failed compilation";
  return errors.str();
}
std::string error(const std::string& pattern) { return errors_of({"allow " + pattern}); }

std::string classifier_text(const Rules& patterns) {
  Errors errors;
  DecisionProgram program;
  EXPECT_TRUE(compile_ip_classifier(patterns, nullptr, errors, program).ok()) << errors.str();
  EXPECT_EQ(errors.str(), "");
  return program.text();
}

constexpr const char* kNothing = "all->[2147483647]\nsafe length 0\nalignment offset 0\n";
constexpr const char* kAll = "all->[0]\nsafe length 0\nalignment offset 0\n";

TEST(IpFilterProgram, SharesTheTestsOfPorts) {
  EXPECT_EQ(classifier_text({"src port 9000", "src port 9001", "src port 9200", "icmp type redirect", "icmp", "any"}),
            " 0 264/00060000%00ff0000  yes->step 2  no->step 1\n"
            " 1 264/00110000%00ff0000  yes->step 2  no->step 6\n"
            " 2 260/00000000%00001fff  yes->step 3  no->[5]\n"
            " 3 512/23280000%ffff0000  yes->[0]  no->step 4\n"
            " 4 512/23290000%ffff0000  yes->[1]  no->step 5\n"
            " 5 512/23f00000%ffff0000  yes->[2]  no->[5]\n"
            " 6 264/00010000%00ff0000  yes->step 7  no->[5]\n"
            " 7 260/00000000%00001fff  yes->step 8  no->[4]\n"
            " 8 512/05000000%ff000000  yes->[3]  no->[4]\n"
            "safe length 514\n"
            "alignment offset 0\n");
}

TEST(IpFilterProgram, PutsTheProtocolFirst) {
  EXPECT_EQ(text({"2 dst 10.9.0.0/16 and udp dst port domain", "1 udp src port bootps", "0 host 10.9.1.1", "drop all"}),
            " 0 272/0a090000%ffff0000  yes->step 1  no->step 4\n"
            " 1 264/00110000%00ff0000  yes->step 2  no->step 7\n"
            " 2 260/00000000%00001fff  yes->step 3  no->step 7\n"
            " 3 512/00000035%0000ffff  yes->[2]  no->step 6\n"
            " 4 264/00110000%00ff0000  yes->step 5  no->step 7\n"
            " 5 260/00000000%00001fff  yes->step 6  no->step 7\n"
            " 6 512/00430000%ffff0000  yes->[1]  no->step 7\n"
            " 7 268/0a090101%ffffffff  yes->[0]  no->step 8\n"
            " 8 272/0a090101%ffffffff  yes->[0]  no->[X]\n"
            "safe length 516\n"
            "alignment offset 0\n");
}

TEST(IpFilterProgram, TestsTransportHeadersOfFirstFragmentsOnly) {
  EXPECT_EQ(allow("tcp and not (rst or (fin and !ack))"),
            " 0 264/00060000%00ff0000  yes->step 1  no->[X]\n"
            " 1 260/00000000%00001fff  yes->step 2  no->[0]\n"
            " 2 524/00000000%00040000  yes->step 3  no->[X]  short->yes\n"
            " 3 524/00010000%00110000  yes->[X]  no->[0]\n"
            "safe length 526\n"
            "alignment offset 0\n");
}

TEST(IpFilterProgram, LeavesOutWhatOtherRulesDecide) {
  EXPECT_EQ(text({"deny udp && src 10.0.0.9", "deny udp && src 10.0.0.9 && dst port 99", "deny any"}), kNothing);
  EXPECT_EQ(text({"allow false", "allow none", "1 true", "2 any"}), "all->[1]\nsafe length 0\nalignment offset 0\n");
  EXPECT_EQ(text({"allow false"}), kNothing);
  EXPECT_EQ(text({}), kNothing);
  EXPECT_EQ(text({"allow"}), kAll);
  EXPECT_EQ(text({"allow -"}), kAll);
  EXPECT_EQ(text({"allow all"}), kAll);
  EXPECT_EQ(text({"allow transp"}), kAll);
  EXPECT_EQ(text({"allow false", "allow false", "deny false", "allow dst 10.1.2.3", "deny -"}),
            " 0 272/0a010203%ffffffff  yes->[0]  no->[X]\nsafe length 276\nalignment offset 0\n");
}

TEST(IpFilterProgram, ComparesEthernetAddresses) {
  EXPECT_EQ(text({"1 dst 02:00:00:00:00:07", "2 ether src 2-0-0-0-1-8", "drop all"}),
            " 0   0/00000200%0000ffff  yes->step 1  no->step 2\n"
            " 1   4/00000007%ffffffff  yes->[1]  no->step 2\n"
            " 2   8/02000000%ffffffff  yes->step 3  no->[X]\n"
            " 3  12/01080000%ffff0000  yes->[2]  no->[X]\n"
            "safe length 14\n"
            "alignment offset 0\n");
  EXPECT_EQ(allow("src ether host & ff:ff:ff:0:0:0 00:1b:21:0:0:0"),
            " 0   8/001b2100%ffffff00  yes->[0]  no->[X]\nsafe length 11\nalignment offset 0\n");
}

TEST(IpFilterProgram, ComparesNumbers) {
  EXPECT_EQ(allow("ip ttl 7"), " 0 264/07000000%ff000000  yes->[0]  no->[X]\nsafe length 265\nalignment offset 0\n");
  EXPECT_EQ(allow("ip vers == 6"),
            " 0 256/60000000%f0000000  yes->[0]  no->[X]\nsafe length 257\nalignment offset 0\n");
  EXPECT_EQ(allow("ip hl > 5"),
            " 0 256/00000000%08000000  yes->step 1  no->[0]  short->yes\n"
            " 1 256/06000000%06000000  yes->[0]  no->[X]\n"
            "safe length 257\nalignment offset 0\n");
  EXPECT_EQ(allow("ip dscp 0x2e"),
            " 0 256/00b80000%00fc0000  yes->[0]  no->[X]\nsafe length 258\nalignment offset 0\n");
  EXPECT_EQ(allow("ip len >= 1024"),
            " 0 256/00000000%0000fc00  yes->[X]  no->[0]  short->yes\nsafe length 259\nalignment offset 0\n");
  EXPECT_EQ(allow("ip id 0xabcd"),
            " 0 260/abcd0000%ffff0000  yes->[0]  no->[X]\nsafe length 262\nalignment offset 0\n");
  EXPECT_EQ(allow("ip[12:4] 0xc0a80001"),
            " 0 268/c0a80001%ffffffff  yes->[0]  no->[X]\nsafe length 272\nalignment offset 0\n");
  EXPECT_EQ(allow("ip[8,9] = 0x4006"),
            " 0 264/40060000%ffff0000  yes->[0]  no->[X]\nsafe length 266\nalignment offset 0\n");
  EXPECT_EQ(allow("ip ce"), " 0 256/00030000%00030000  yes->[0]  no->[X]\nsafe length 258\nalignment offset 0\n");
  EXPECT_EQ(allow("ip ect"),
            " 0 256/00000000%00030000  yes->[X]  no->[0]  short->yes\nsafe length 258\nalignment offset 0\n");
  EXPECT_EQ(allow("ip ect 1"), " 0 256/00010000%00030000  yes->[0]  no->[X]\nsafe length 258\nalignment offset 0\n");
  EXPECT_EQ(allow("ip unfrag"), " 0 260/00000000%00003fff  yes->[0]  no->[X]\nsafe length 264\nalignment offset 0\n");
}

TEST(IpFilterProgram, ComparesUnderMasks) {
  EXPECT_EQ(allow("proto & 0xf0 = 0x10"),
            " 0 264/00100000%00f00000  yes->[0]  no->[X]\nsafe length 266\nalignment offset 0\n");
  EXPECT_EQ(allow("src 10.0.0.0 mask 255.0.0.255"),
            " 0 268/0a000000%ff0000ff  yes->[0]  no->[X]\nsafe length 272\nalignment offset 0\n");
  EXPECT_EQ(allow("dst host & 0.0.0.255 = 0.0.0.7"),
            " 0 272/00000007%000000ff  yes->[0]  no->[X]\nsafe length 276\nalignment offset 0\n");
  EXPECT_EQ(allow("dst host & 0xff = 0.0.0.7"), allow("dst host & 0.0.0.255 = 0.0.0.7"));
  // Of the values that the mask lets through, those above 2 are those above 1.
  EXPECT_EQ(allow("ip tos & 5 > 2"), allow("ip tos & 5 > 1"));
}

TEST(IpFilterProgram, ComparesRanges) {
  EXPECT_EQ(allow("udp dst port 1024-65535"), allow("udp dst port >= 1024"));
  EXPECT_EQ(allow("ip ttl 0-255"), kAll);
  EXPECT_EQ(allow("ip ttl 9-9"), allow("ip ttl 9"));
  EXPECT_EQ(allow("ip ttl 0-15"), allow("ip ttl <= 15"));
  EXPECT_EQ(allow("ip ttl != 0-15"), allow("ip ttl > 15"));
  EXPECT_EQ(text({"1 ip proto 5-9", "allow"}), text({"1 ip proto >= 5 and ip proto <= 9", "allow"}));
}

TEST(IpFilterProgram, TakesQualifiersFromThePrimitiveBefore) {
  EXPECT_EQ(allow("src tcp port 80 or 443"), allow("src tcp port 80 or src tcp port 443"));
  EXPECT_EQ(allow("dst host 10.0.0.1 or 10.0.0.3"), allow("dst host 10.0.0.1 or dst host 10.0.0.3"));
  EXPECT_EQ(allow("ip ttl 3 or 4"), allow("ip ttl 3 or ip ttl 4"));
  EXPECT_EQ(allow("tcp opt syn ack"), allow("tcp opt syn and tcp opt ack"));
  EXPECT_EQ(allow("icmp type echo or echo-reply"), allow("icmp type 8 or icmp type 0"));
}

TEST(IpFilterProgram, UnderstandsWhatIsLeftOut) {
  EXPECT_EQ(allow("tcp"), allow("ip proto 6"));
  EXPECT_EQ(allow("proto udp"), allow("ip proto udp"));
  EXPECT_EQ(allow("http"), allow("src or dst tcpudp port 80"));
  EXPECT_EQ(allow("syn"), allow("tcp opt syn"));
  EXPECT_EQ(allow("172.16.0.0/12"), allow("src or dst net 172.16.0.0 mask 255.240.0.0"));
  EXPECT_EQ(allow("unfrag"), allow("ip unfrag"));
  EXPECT_EQ(allow("dest 10.0.0.1"), allow("dst host 10.0.0.1"));
  EXPECT_EQ(allow("src and dst port 7"), allow("src port 7 and dst port 7"));
  EXPECT_EQ(allow("tcp win 0"), allow("tcp[14:2] 0"));
  EXPECT_EQ(allow("icmp[1] = 3"), allow("proto icmp && ip[6:2] & 0x1fff == 0 && transp[1:1] 3"));
}

TEST(IpFilterProgram, CombinesByPrecedence) {
  EXPECT_EQ(allow("tcp or udp and ip ttl 9"), allow("tcp or (udp and ip ttl 9)"));
  EXPECT_EQ(allow("tcp && syn || udp"), allow("(tcp && syn) || udp"));
  EXPECT_EQ(allow("not tcp and udp"), allow("(not tcp) and udp"));
  EXPECT_EQ(allow("!tcp and !udp"), allow("not (tcp or udp)"));
  EXPECT_EQ(allow("! ! tcp"), allow("tcp"));
  EXPECT_EQ(allow("tcp ? ip ttl 1 : ip ttl 2"), allow("(tcp and ip ttl 1) or (not tcp and ip ttl 2)"));
  EXPECT_EQ(text({"1 tcp ? false : udp ? true : icmp", "drop"}), text({"1 not tcp and (udp or icmp)", "drop"}));
}

TEST(IpFilterProgram, FindsNames) {
  const TestNames names;
  EXPECT_EQ(allow("src gateway", &names), allow("src 192.168.7.1"));
  EXPECT_EQ(allow("src lan", &names), allow("src net 192.168.7.0/24"));
  EXPECT_EQ(allow("src eth0", &names), allow("src 192.168.7.1"));
  EXPECT_EQ(allow("src net eth0", &names), allow("src 192.168.7.0/24"));
  EXPECT_EQ(allow("dst ether nic", &names), allow("dst ether host 2:0:0:0:0:9"));
  EXPECT_EQ(allow("tcp port game", &names), allow("tcp port 4000"));
  EXPECT_EQ(allow("udp port game", &names), allow("udp port 4001"));
  // `www` is a service first; where an address is wanted, it is the host.
  EXPECT_EQ(allow("www", &names), allow("port 80"));
  EXPECT_EQ(allow("host www", &names), allow("host 192.168.7.80"));
}

TEST(IpFilterProgram, KnowsServicesAndTypes) {
  for (const auto& [name, port] : std::vector<std::pair<const char*, int>>{
           {"ssh", 22}, {"domain", 53}, {"bootpc", 68}, {"http", 80}, {"netbios-ns", 137}, {"imaps", 993}}) {
    EXPECT_EQ(allow(fmt::format("port {}", name)), allow(fmt::format("port {}", port)));
  }
  for (const auto& [name, type] : std::vector<std::pair<const char*, int>>{
           {"echo", 8}, {"echo-reply", 0}, {"unreachable", 3}, {"timeexceeded", 11}, {"parameterproblem", 12}}) {
    EXPECT_EQ(allow(fmt::format("icmp type {}", name)), allow(fmt::format("icmp type {}", type)));
  }
}

TEST(IpFilterProgram, OrdersLargeGroupsByValue) {
  // Powers of two times nine: no two differ in one bit, which would make them one test. Ordered as words loaded by a
  // little-endian host.
  EXPECT_EQ(allow("ip id 0x900 or 0x3 or 0x12 or 0x24 or 0x48 or 0x90 or 0x120"),
            " 0 260/09000000%ffff0000  yes->[0]  no->step 1\n"
            " 1 260/00030000%ffff0000  yes->[0]  no->step 2\n"
            " 2 260/00120000%ffff0000  yes->[0]  no->step 3\n"
            " 3 260/01200000%ffff0000  yes->[0]  no->step 4\n"
            " 4 260/00240000%ffff0000  yes->[0]  no->step 5\n"
            " 5 260/00480000%ffff0000  yes->[0]  no->step 6\n"
            " 6 260/00900000%ffff0000  yes->[0]  no->[X]\n"
            "safe length 262\n"
            "alignment offset 0\n");
}

/// An IP packet of `protocol` with a transport header of `transport`, cut to `length` bytes behind the MAC header.
struct TestPacket {
  Bytes bytes;
  size_t transport;

  TestPacket(uint8_t protocol, const Bytes& transport_bytes, size_t length = SIZE_MAX, size_t options = 0)
      : bytes(14 + 20 + options), transport(bytes.size()) {
    bytes[14] = static_cast<uint8_t>(0x45 + options / 4);
    bytes[14 + 9] = protocol;
    bytes.insert(bytes.end(), transport_bytes.begin(), transport_bytes.end());
    if (length < bytes.size() - 14) bytes.resize(14 + length);
  }
  int match(const DecisionProgram& program) const {
    const CheckedWords words(bytes, 0, 14, transport);
    const int output = program.view().match(words);
    EXPECT_FALSE(words.outside());
    return output;
  }
};

TEST(IpFilterMatch, FailsTestsBeyondThePacket) {
  const Bytes ports{0x1f, 0x40, 0x00, 0x50};
  const DecisionProgram equal = compile_rules({"0 transp[1] & 0x80 == 0", "1 all"});
  const DecisionProgram unequal = compile_rules({"0 transp[1] & 0x80 != 0", "1 all"});
  const DecisionProgram inverse = compile_rules({"0 not (transp[1] & 0x80 == 0)", "1 all"});
  const DecisionProgram either = compile_rules({"0 transp[1] & 0x80 == 0 || transp[1] & 0x80 == 0x80", "1 all"});
  for (const bool bit : {false, true}) {
    const Bytes transport{0, static_cast<uint8_t>(bit ? 0x80 : 0)};
    EXPECT_EQ(TestPacket(6, transport).match(equal), bit ? 1 : 0);
    EXPECT_EQ(TestPacket(6, transport).match(unequal), bit ? 0 : 1);
    EXPECT_EQ(TestPacket(6, transport).match(inverse), bit ? 0 : 1);
    EXPECT_EQ(TestPacket(6, transport).match(either), 0);
    const TestPacket cut(6, transport, 21);
    EXPECT_EQ(cut.match(equal), 1);
    EXPECT_EQ(cut.match(unequal), 1);
    EXPECT_EQ(cut.match(inverse), 0);
    EXPECT_EQ(cut.match(either), 1);
  }
}

TEST(IpFilterMatch, ReadsBehindOptions) {
  const DecisionProgram program = compile_rules({"0 tcp dst port 80", "1 all"});
  const Bytes ports{0x1f, 0x40, 0x00, 0x50};
  EXPECT_EQ(TestPacket(6, ports).match(program), 0);
  EXPECT_EQ(TestPacket(6, ports, SIZE_MAX, 40).match(program), 0);
  EXPECT_EQ(TestPacket(17, ports, SIZE_MAX, 40).match(program), 1);
  EXPECT_EQ(TestPacket(6, ports, 23).match(program), 1);
  EXPECT_EQ(TestPacket(6, ports, 0).match(program), 1);
}

TEST(IpFilterMatch, EthernetTestsFailWithoutMacHeader) {
  const DecisionProgram program = compile_rules({"0 ether host 0:0:0:0:0:0", "1 ip ttl 0", "drop all"});
  const TestPacket packet(6, {});
  EXPECT_EQ(packet.match(program), 0);
  const CheckedWords words(packet.bytes, CheckedWords::absent(), 14, 34);
  EXPECT_EQ(program.view().match(words), 1);
  EXPECT_FALSE(words.outside());
}

TEST(IpFilterMatch, SearchesManyPorts) {
  Rules rules;
  for (int i = 0; i < 500; ++i) rules.push_back(fmt::format("{} udp dst port {}", i % 7, 131 * i % 65536));
  rules.push_back("7 -");
  const DecisionProgram program = compile_rules(rules);
  std::vector<int> expected(65536, 7);
  for (int i = 499; i >= 0; --i) expected[131 * i % 65536] = i % 7;
  for (int port = 0; port < 65536; port += 1) {
    const TestPacket packet(17, {0, 0, static_cast<uint8_t>(port >> 8), static_cast<uint8_t>(port)});
    ASSERT_EQ(packet.match(program), expected[port]) << port;
  }
}

TEST(IpFilterWarnings, TellOfRelationsThatSayNothing) {
  EXPECT_EQ(warnings({"allow ip ttl > 255"}), "warning: pattern 0: relation '> 255' is always false (range 0-255)\n");
  EXPECT_EQ(warnings({"allow -", "allow ip hl <= 15"}),
            "warning: pattern 1: relation '<= 15' is always true (range 0-15)\n");
  EXPECT_EQ(warnings({"allow src port >= 0"}), "warning: pattern 0: relation '>= 0' is always true (range 0-65535)\n");
  EXPECT_EQ(warnings({"allow ip tos & 3 < 4"}), "warning: pattern 0: relation '< 4' is always true (range 0-3)\n");
  EXPECT_EQ(allow("ip ttl > 255"), kNothing);
  EXPECT_EQ(allow("ip ttl <= 255"), kAll);
  EXPECT_EQ(allow("ip ttl < 0"), kNothing);
  EXPECT_EQ(warnings({"allow src tcp"}), "warning: pattern 0: 'src proto': 'src' or 'dst' ignored\n");
  EXPECT_EQ(warnings({"allow dst tcp opt syn"}), "warning: pattern 0: 'dst tcp opt': 'src' or 'dst' ignored\n");
}

TEST(IpFilterErrors, OfActions) {
  EXPECT_EQ(errors_of({""}), "empty pattern 0\n");
  EXPECT_EQ(errors_of({"permit tcp"}), "pattern 0: unknown slot ID 'permit'\n");
  EXPECT_EQ(errors_of({"allow", "8 tcp"}), "pattern 1: slot '8' out of range\n");
  EXPECT_EQ(errors_of({"-1 tcp"}), "pattern 0: slot '-1' out of range\n");
  EXPECT_EQ(errors_of({"allow tcp"}, 0), "pattern 0: 'allow' is meaningless, element has zero outputs\n");
}

TEST(IpFilterErrors, OfSyntax) {
  EXPECT_EQ(error("and tcp"),
            "pattern 0: empty term near 'and'\npattern 0: missing expression\n"
            "pattern 0: garbage after expression at 'and'\n");
  EXPECT_EQ(error("tcp and"), "pattern 0: missing expression\n");
  EXPECT_EQ(error("tcp or"), "pattern 0: missing expression\n");
  EXPECT_EQ(error("(tcp"), "pattern 0: missing ')'\n");
  EXPECT_EQ(error("tcp)"), "pattern 0: garbage after expression at ')'\n");
  EXPECT_EQ(error("()"), "pattern 0: missing expression\npattern 0: missing expression after '('\n");
  EXPECT_EQ(error("not"), "pattern 0: missing expression after 'not'\n");
  EXPECT_EQ(error("tcp and ! or udp"), "pattern 0: missing expression after '!'\n");
  EXPECT_EQ(error("tcp ? udp"), "pattern 0: missing ':' in ternary expression\n");
  EXPECT_EQ(error("port foo"),
            "pattern 0: 'port': value missing\npattern 0: empty term near 'foo'\n"
            "pattern 0: garbage after expression at 'foo'\n");
  EXPECT_EQ(error("src port > foo"),
            "pattern 0: dangling operator near 'foo'\npattern 0: 'src port': value missing\n"
            "pattern 0: empty term near 'foo'\npattern 0: garbage after expression at 'foo'\n");
  EXPECT_EQ(error(std::string(5000, '(') + "tcp" + std::string(5000, ')')),
            "pattern 0: expression nested too deeply\n");
}

TEST(IpFilterErrors, OfBrackets) {
  EXPECT_EQ(error("tcp[1:5] 3"),
            "pattern 0: LEN in '[POS:LEN]' out of range, should be between 1 and 4\n"
            "pattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("tcp[3:2] 3"),
            "pattern 0: field [3:2] does not fit in a single word\npattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("tcp[x] 3"),
            "pattern 0: syntax error after '[', expected '[POS]' or '[POS:LEN]'\n"
            "pattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("tcp[1 = 3"),
            "pattern 0: missing ']'\npattern 0: specify header field or 'port'\n"
            "pattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("ip[256] 3"),
            "pattern 0: field [256:1] out of range, bound 256\npattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("tcp[-1] 3"),
            "pattern 0: field [-1:1] out of range, bound 8192\npattern 0: specify header field or 'port'\n");
}

TEST(IpFilterErrors, OfPrimitives) {
  EXPECT_EQ(error("src"), "pattern 0: partial directive\n");
  EXPECT_EQ(error("80"), "pattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("10.0.0.1 or 80"), "pattern 0: specify header field or 'port'\n");
  EXPECT_EQ(error("tcp udp"), "pattern 0: transport protocol specified twice\n");
  EXPECT_EQ(error("tcp proto 17"), "pattern 0: 'proto': specified twice\n");
  EXPECT_EQ(error("host net 10.0.0.0/8"), "pattern 0: type specified twice\n");
  EXPECT_EQ(error("src dst port 4"), "pattern 0: 'src' or 'dst' specified twice\n");
  EXPECT_EQ(error("host 5"), "pattern 0: 'ip host': address missing\n");
  EXPECT_EQ(error("net 10.0.0.1"), "pattern 0: 'ip net': address missing\n");
  EXPECT_EQ(error("host > 10.0.0.1"), "pattern 0: 'ip host': operator not supported\n");
  EXPECT_EQ(error("src host & 1:2:3:4:5:6 10.0.0.1"), "pattern 0: 'src ip host': bad mask\n");
  EXPECT_EQ(error("tcp port & 1.2.3.4 = 5"), "pattern 0: 'port': bad mask\n");
  EXPECT_EQ(error("src port & 0 = 5"), "pattern 0: zero mask ignored\n");
  EXPECT_EQ(error("src port & 0x10000 = 5"), "pattern 0: 'src port': mask out of range, bound 0xFFFF\n");
  EXPECT_EQ(error("src port 99999"), "pattern 0: 'src port': out of range, bound 65535\n");
  EXPECT_EQ(error("ip ttl 300"), "pattern 0: 'ip ttl': out of range, bound 255\n");
  EXPECT_EQ(error("proto 300"), "pattern 0: 'proto': out of range, bound 255\n");
  EXPECT_EQ(error("ip ttl 9-300"), "pattern 0: 'ip ttl': out of range, bound 255\n");
  EXPECT_EQ(error("ip ttl 9-3"), "pattern 0: range '9-3' is empty\n");
  EXPECT_EQ(error("ip ttl > 3-9"), "pattern 0: 'ip ttl': operator not supported\n");
  EXPECT_EQ(error("icmp port 4"), "pattern 0: 'port': bad protocol 1\n");
  EXPECT_EQ(error("port icmp"), "pattern 0: 'port': value missing\n");
  EXPECT_EQ(error("udp opt syn"), "pattern 0: 'udp opt syn' is meaningless; try 'tcp opt syn'\n");
  EXPECT_EQ(error("udp opt 3"), "pattern 0: 'tcp opt': bad protocol 17\n");
  EXPECT_EQ(error("tcp opt 256"), "pattern 0: 'tcp opt': value 256 out of range\n");
  EXPECT_EQ(error("tcp opt != syn"), "pattern 0: 'tcp opt': operator or mask not supported\n");
  EXPECT_EQ(error("proto != tcpudp"), "pattern 0: 'tcpudp': operator or mask not supported\n");
  EXPECT_EQ(error("ip frag 3"), "pattern 0: 'ip frag': value not supported\n");
  EXPECT_EQ(error("ip ce 3"), "pattern 0: 'ip ce': value not supported\n");
  EXPECT_EQ(error("ip ttl 1.2.3.4"), "pattern 0: 'ip ttl': value missing\n");
  EXPECT_EQ(error("ether proto 5"), "pattern 0: 'proto': ip only\n");
  EXPECT_EQ(error("ether host 10.0.0.1"), "pattern 0: 'ether host': address missing\n");
  EXPECT_EQ(error("echo"), "pattern 0: 'echo' is ambiguous; try 'port echo', 'icmp type echo'\n");
  EXPECT_EQ(error("ip proto http"), "pattern 0: 'proto http' is meaningless; try 'port http'\n");
  EXPECT_EQ(errors_of({"allow src", "deny 80"}),
            "pattern 0: partial directive\npattern 1: specify header field or 'port'\n");
}

}  // namespace
}  // namespace headrace
