#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// An IP packet 10.0.0.1 -> 10.0.0.2 with a transport header in hexadecimal.
std::string ip_packet(const std::string& protocol, const std::string& transport, const std::string& fragment = "0000") {
  return from_hex("45000028 0000" + fragment + "40" + protocol + "0000 0a000001 0a000002" + transport);
}
const std::string kToWeb = "1f400050 00000000 00000000 50020000 00000000";

std::string graph(const std::string& rules) {
  return "Idle -> m :: MarkIPHeader -> f :: IPFilter(" + rules + ") -> allowed :: Capture; f[1] -> other :: Capture;";
}

TEST(IPFilter, FirstMatchingRuleDecides) {
  TestRouter r(graph("deny icmp, 1 udp, allow tcp dst port 80 and syn, drop all"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", ip_packet("01", "0800000000000000"));
  r.push("m", ip_packet("11", kToWeb));
  r.push("m", ip_packet("06", kToWeb));
  r.push("m", ip_packet("06", "00501f40" + kToWeb.substr(9)));
  r.push("m", ip_packet("06", kToWeb, "2001"));  // a later fragment has no ports
  EXPECT_EQ(capture(r, "allowed").seen().size(), 1u);
  EXPECT_EQ(capture(r, "other").seen().size(), 1u);
  EXPECT_EQ(r.read("f.drop_reasons"), "3\tno pattern matches\n");
}

// The line that the page of CheckIPHeader recommends against martian sources (RFC 1812, 5.3.7).
TEST(IPFilter, DropsMartianSources) {
  TestRouter r(graph("drop src net 0/8 or src net 127/8 or src net 224/3, allow all"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto from = [](const std::string& source) {
    return from_hex("45000028 00000000 40060000" + source + "0a000002" + kToWeb);
  };
  for (const char* martian :
       {"00000000", "00ffffff", "7f000000", "7f000001", "7fffffff", "e0000000", "efffffff", "f0000001", "ffffffff"})
    r.push("m", from(martian));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 0u);
  EXPECT_EQ(r.read("f.drop_reasons"), "9\tno pattern matches\n");
  for (const char* good : {"01000000", "0a000001", "7effffff", "80000000", "dfffffff"}) r.push("m", from(good));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 5u);
}

TEST(IPFilter, PrintsItsProgram) {
  TestRouter r(graph("allow src 10.0.0.1, 1 all"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("f.program"), " 0 268/0a000001%ffffffff  yes->[0]  no->[1]\nsafe length 272\nalignment offset 0\n");
}

TEST(IPFilter, ReadsEthernetHeadersThatWereStripped) {
  TestRouter r("Idle -> s :: MarkMACHeader -> Strip(14) -> " + graph("allow src 2:0:0:0:0:2, 1 all").substr(8));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", from_hex("020000000001 020000000002 0800") + ip_packet("06", kToWeb));
  r.push("s", from_hex("020000000001 020000000003 0800") + ip_packet("06", kToWeb));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 1u);
  EXPECT_EQ(capture(r, "other").seen().size(), 1u);
}

TEST(IPFilter, EthernetTestsFailWithoutMacHeader) {
  TestRouter r(graph("allow ether host 0:0:0:0:0:0, 1 not ether host 0:0:0:0:0:0"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", ip_packet("06", kToWeb));
  EXPECT_EQ(capture(r, "other").seen().size(), 1u);
}

TEST(IPFilter, ReadsFarIntoThePayload) {
  TestRouter r(graph("allow transp[100] 0xab, 1 all"));
  ASSERT_TRUE(r.ok()) << r.errors();
  std::string data = ip_packet("11", kToWeb) + std::string(200, '\0');
  data[20 + 100] = '\xab';
  r.push("m", data);
  r.push("m", data.substr(0, 20 + 100));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 1u);
  EXPECT_EQ(capture(r, "other").seen().size(), 1u);
}

TEST(IPFilter, DropsPacketsWithoutNetworkHeader) {
  TestRouter r("Idle -> f :: IPFilter(allow all) -> allowed :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("f", ip_packet("06", kToWeb));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 0u);
  EXPECT_EQ(r.read("f.drop_reasons"), "1\tno network header\n");
}

TEST(IPFilter, UnderstandsNamesAndQuotedRules) {
  TestRouter r("AddressInfo(web 10.0.0.2);" + graph("\"allow dst web\", 1 all"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", ip_packet("06", kToWeb));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 1u);
}

TEST(IPFilter, ReportsErrorsOfEveryRule) {
  TestRouter r(graph("permit tcp, 2 udp, allow src"));
  EXPECT_FALSE(r.ok());
  for (const char* line :
       {"pattern 0: unknown slot ID 'permit'", "pattern 1: slot '2' out of range", "pattern 2: partial directive"}) {
    EXPECT_NE(r.errors().find(line), std::string::npos) << r.errors();
  }
}

TEST(IPFilter, TakesAnotherConfigurationWhileItRuns) {
  TestRouter r(graph("allow udp, 1 all"));
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("f.config", "allow tcp, 1 all")) << r.errors();
  r.push("m", ip_packet("06", kToWeb));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 1u);
  EXPECT_FALSE(r.write("f.config", "allow src"));
  r.push("m", ip_packet("06", kToWeb));
  EXPECT_EQ(capture(r, "allowed").seen().size(), 2u);
}

}  // namespace
}  // namespace headrace::testing
