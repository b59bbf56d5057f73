#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// An IP packet to 10.0.0.`host`.
std::string packet_to(const std::string& host) { return from_hex("45000014 00000000 40060000 0b000001 0a0000" + host); }

constexpr std::string_view kClassifierGraph =
    "Idle -> m :: MarkIPHeader -> c :: IPClassifier(dst 10.0.0.1, dst 10.0.0.2 or 10.0.0.3)"
    "-> first :: Capture; c[1] -> second :: Capture;";

TEST(IPClassifier, SendsPacketsByTheirFirstMatchingPattern) {
  TestRouter r(kClassifierGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* host : {"01", "02", "03", "04"}) r.push("m", packet_to(host));
  EXPECT_EQ(capture(r, "first").seen().size(), 1u);
  EXPECT_EQ(capture(r, "second").seen().size(), 2u);
  EXPECT_EQ(r.read("c.drop_reasons"), "1\tno pattern matches\n");
}

TEST(IPClassifier, PrintsItsProgram) {
  TestRouter r(kClassifierGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("c.program"),
            " 0 272/0a000001%ffffffff  yes->[0]  no->step 1\n"
            " 1 272/0a000002%fffffffe  yes->[1]  no->[X]\n"
            "safe length 276\nalignment offset 0\n");
}

TEST(IPClassifier, ReplacesPatternsOneByOne) {
  TestRouter r(kClassifierGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("c.pattern1"), "dst 10.0.0.2 or 10.0.0.3");
  ASSERT_TRUE(r.write("c.pattern0", "dst 10.0.0.4")) << r.errors();
  EXPECT_EQ(r.read("c.pattern0"), "dst 10.0.0.4");
  for (const char* host : {"01", "04"}) r.push("m", packet_to(host));
  EXPECT_EQ(capture(r, "first").seen().size(), 1u);
  EXPECT_FALSE(r.write("c.pattern0", "dst"));
  EXPECT_EQ(r.read("c.pattern0"), "dst 10.0.0.4");
  r.push("m", packet_to("04"));
  EXPECT_EQ(capture(r, "first").seen().size(), 2u);
}

TEST(IPClassifier, WantsOnePatternForEachOutput) {
  TestRouter r("Idle -> c :: IPClassifier(tcp, udp) -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("need 1 argument, one per output port"), std::string::npos) << r.errors();
}

TEST(IPClassifier, WarnsOfOutputsThatNothingReaches) {
  TestRouter r("Idle -> c :: IPClassifier(tcp, tcp dst port 80, -) -> Discard; c[1] -> Discard; c[2] -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find("warning: output 1 matches no packets"), std::string::npos) << r.errors();
}

TEST(IPClassifier, ReportsErrorsOfEveryPattern) {
  TestRouter r("Idle -> c :: IPClassifier(host 5, tcp udp) -> Discard; c[1] -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("pattern 0: 'ip host': address missing"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("pattern 1: transport protocol specified twice"), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
