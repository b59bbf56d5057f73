#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// A frame with an Ethernet type and, at byte 20, an ARP operation.
std::string frame(const std::string& type, const std::string& operation = "0000") {
  return from_hex("020000000001 020000000002" + type + "0001 0800 0604" + operation + std::string(76, '0'));
}

constexpr std::string_view kDemultiplexer =
    "Idle -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);"
    "c[0] -> requests :: Capture; c[1] -> replies :: Capture; c[2] -> ip :: Capture; c[3] -> rest :: Capture;";

TEST(Classifier, SendsFramesByTheirFirstMatchingPattern) {
  TestRouter r(kDemultiplexer);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("c", frame("0806", "0001"));
  r.push("c", frame("0806", "0002"));
  r.push("c", frame("0806", "0003"));
  r.push("c", frame("0800"));
  r.push("c", frame("86dd"));
  r.push("c", frame("0800").substr(0, 14));
  r.push("c", frame("0800").substr(0, 13));
  EXPECT_EQ(capture(r, "requests").seen().size(), 1u);
  EXPECT_EQ(capture(r, "replies").seen().size(), 1u);
  EXPECT_EQ(capture(r, "ip").seen().size(), 2u);
  EXPECT_EQ(capture(r, "rest").seen().size(), 3u);
}

TEST(Classifier, PrintsItsProgram) {
  TestRouter r("Idle -> c :: Classifier(1/01, -) -> Discard; c[1] -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("c.program"), " 0   0/00010000%00ff0000  yes->[0]  no->[1]\nsafe length 2\nalignment offset 0\n");
}

TEST(Classifier, CountsWhatNoPatternMatches) {
  TestRouter r("Idle -> c :: Classifier(12/0800) -> out :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("c", frame("0806"));
  r.push("c", frame("0800"));
  EXPECT_EQ(capture(r, "out").seen().size(), 1u);
  EXPECT_EQ(r.read("c.drop_reasons"), "1\tno pattern matches\n");
}

TEST(Classifier, ReadsFarIntoThePacket) {
  TestRouter r("Idle -> c :: Classifier(200/ab, 12/0800) -> far :: Capture; c[1] -> near :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  std::string data = frame("0800") + std::string(200, '\0');
  r.push("c", data);
  data[200] = '\xab';
  r.push("c", data);
  r.push("c", data.substr(0, 200));
  r.push("c", frame("0806"));
  EXPECT_EQ(capture(r, "far").seen().size(), 1u);
  EXPECT_EQ(capture(r, "near").seen().size(), 2u);
  EXPECT_EQ(r.read("c.drop_reasons"), "1\tno pattern matches\n");
}

TEST(Classifier, WantsOnePatternForEachOutput) {
  TestRouter r("Idle -> c :: Classifier(12/0800) -> Discard; c[1] -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("need 2 arguments, one per output port"), std::string::npos) << r.errors();
}

TEST(Classifier, ReportsPatternsThatItCannotRead) {
  TestRouter r("Idle -> c :: Classifier(12/080, -) -> Discard; c[1] -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("pattern 0: value has odd number of hex digits"), std::string::npos) << r.errors();
}

TEST(Classifier, WarnsOfOutputsThatNothingReaches) {
  TestRouter r("Idle -> c :: Classifier(-, 12/0800) -> Discard; c[1] -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find("warning: output 1 matches no packets"), std::string::npos) << r.errors();
}

TEST(Classifier, TakesAnotherConfigurationWhileItRuns) {
  TestRouter r("Idle -> c :: Classifier(12/0800, -) -> first :: Capture; c[1] -> second :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("c", frame("0806"));
  EXPECT_EQ(capture(r, "first").seen().size(), 0u);
  ASSERT_TRUE(r.write("c.config", "12/0806, -")) << r.errors();
  r.push("c", frame("0806"));
  EXPECT_EQ(capture(r, "first").seen().size(), 1u);
  const std::string program = r.read("c.program");
  EXPECT_FALSE(r.write("c.config", "12/080, -"));
  EXPECT_EQ(r.read("c.program"), program);
  r.push("c", frame("0806"));
  EXPECT_EQ(capture(r, "first").seen().size(), 2u);
}

}  // namespace
}  // namespace headrace::testing
