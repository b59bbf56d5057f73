#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// Packets that left by outputs 0 and 1 of `splitter` in ten seconds, of 1000 a second.
std::pair<int, int> split(const std::string& splitter, const std::string& length = "100") {
  TestRouter r("RatedSource(RATE 1000, LENGTH " + length + ") -> s :: " + splitter +
               " -> a :: Discard; s[1] -> b :: Discard; TimedSource(10, LIMIT 0, STOP true) -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  r.run();
  return {std::stoi(r.read("a.count")), std::stoi(r.read("b.count"))};
}

TEST(RatedSplitter, SendsWhatIsAboveTheRateByOutputOne) {
  const auto [passed, rest] = split("RatedSplitter(100)");
  EXPECT_NEAR(passed, 1002, 2);
  EXPECT_NEAR(passed + rest, 10000, 20);
}

TEST(RatedSplitter, BurstsAreSavedUp) {
  EXPECT_NEAR(split("RatedSplitter(RATE 100, BURST_SIZE 500)").first, 1500, 2);
  EXPECT_NEAR(split("RatedSplitter(RATE 100, BURST_DURATION 3s)").first, 1300, 2);
}

TEST(RatedSplitter, RateZeroLetsNothingPass) { EXPECT_EQ(split("RatedSplitter(0)").first, 0); }

TEST(RatedSplitter, DropsAndCountsWithoutOutputOne) {
  TestRouter r(
      "InfiniteSource(LIMIT 50, BURST 50, STOP true) -> s :: RatedSplitter(100, BURST_SIZE 10) -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "10");
  EXPECT_EQ(r.read("s.drop_reasons"), "40\tabove the rate\n");
}

TEST(RatedSplitter, RateIsAHandler) {
  TestRouter r("Idle -> s :: RatedSplitter(100) -> Discard;");
  EXPECT_EQ(r.read("s.rate"), "100");
  EXPECT_TRUE(r.write("s.rate", "7"));
  EXPECT_EQ(r.read("s.rate"), "7");
  EXPECT_EQ(r.read("s.config"), "7");
  EXPECT_FALSE(r.write("s.rate", "-7"));
  EXPECT_EQ(r.read("s.rate"), "7");
}

TEST(RatedSplitter, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> RatedSplitter -> Discard;").errors().find("RATE: required argument missing"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> RatedSplitter(1, BURST_SIZE 1, BURST_DURATION 1) -> Discard;")
                .errors()
                .find("cannot specify both BURST_DURATION and BURST_SIZE"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> RatedSplitter(1, BURST_BYTES 1) -> Discard;").ok());
}

TEST(BandwidthRatedSplitter, SplitsByBytes) {
  // 10000 bytes a second are 100 packets, and the bucket begins with 200 bytes above what must stay in it.
  const auto [passed, rest] = split("BandwidthRatedSplitter(80kbps)");
  EXPECT_NEAR(passed, 1002, 2);
  EXPECT_NEAR(passed + rest, 10000, 20);
  EXPECT_NEAR(split("BandwidthRatedSplitter(80kbps, BURST_BYTES 20000)").first, 1200, 2);
}

TEST(BandwidthRatedSplitter, ShowsItsRateAsABandwidth) {
  TestRouter r("Idle -> s :: BandwidthRatedSplitter(80kbps) -> Discard;");
  EXPECT_EQ(r.read("s.rate"), "80kbps");
  EXPECT_TRUE(r.write("s.rate", "1Mbps"));
  EXPECT_EQ(r.read("s.rate"), "1Mbps");
}

TEST(BandwidthRatedSplitter, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("Idle -> BandwidthRatedSplitter(fast) -> Discard;").ok());
  EXPECT_NE(TestRouter("Idle -> BandwidthRatedSplitter(1, BURST_BYTES 1, BURST_DURATION 1) -> Discard;")
                .errors()
                .find("cannot specify both BURST_DURATION and BURST_BYTES"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
