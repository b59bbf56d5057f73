#include "support/test_router.hh"

namespace headrace::testing {
namespace {

int moved(const std::string& unqueue, const std::string& seconds, const std::string& source = "InfiniteSource") {
  TestRouter r(source + " -> Queue(10) -> u :: " + unqueue + " -> d :: Discard;" + "TimedSource(" + seconds +
               ", LIMIT 0, STOP true) -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return -1;
  r.run();
  return std::stoi(r.read("d.count"));
}

TEST(RatedUnqueue, MovesAtItsRate) {
  EXPECT_EQ(moved("RatedUnqueue(2)", "9.9"), 20);
  EXPECT_NEAR(moved("RatedUnqueue(1000)", "5"), 5020, 10);
}

TEST(RatedUnqueue, BurstIsSavedUp) {
  EXPECT_EQ(moved("RatedUnqueue(RATE 2, BURST_SIZE 50)", "9.9"), 69);
  EXPECT_EQ(moved("RatedUnqueue(RATE 2, BURST_DURATION 25)", "9.9"), 69);
}

TEST(RatedUnqueue, OneBurstKeywordAtMost) {
  TestRouter r("Idle -> RatedUnqueue(RATE 2, BURST_DURATION 1, BURST_SIZE 2) -> Discard;");
  EXPECT_NE(r.errors().find("cannot specify both BURST_DURATION and BURST_SIZE"), std::string::npos) << r.errors();
}

TEST(RatedUnqueue, RateIsAHandler) {
  TestRouter r("Idle -> u :: RatedUnqueue(2) -> Discard;");
  EXPECT_EQ(r.read("u.rate"), "2");
  EXPECT_TRUE(r.write("u.rate", "30"));
  EXPECT_EQ(r.read("u.rate"), "30");
  EXPECT_EQ(r.read("u.config"), "30");
  EXPECT_FALSE(r.write("u.rate", "-1"));
}

TEST(BandwidthRatedUnqueue, MovesBytesAtItsRate) {
  // 100 bytes a packet, 10000 bytes a second: 100 packets a second and 2 more from the bucket.
  EXPECT_NEAR(moved("BandwidthRatedUnqueue(80kbps)", "10", "InfiniteSource(LENGTH 100)"), 1002, 3);
  EXPECT_NEAR(moved("BandwidthRatedUnqueue(80kbps, BURST_BYTES 5000)", "10", "InfiniteSource(LENGTH 100)"), 1050, 3);
}

TEST(BandwidthRatedUnqueue, ShowsItsRateAsABandwidth) {
  TestRouter r("Idle -> u :: BandwidthRatedUnqueue(80kbps) -> Discard;");
  EXPECT_EQ(r.read("u.rate"), "80kbps");
}

// --- Shapers

TEST(Shaper, LetsAsManyPacketsThroughAsItsRate) {
  TestRouter r(
      "s :: InfiniteSource -> sh :: Shaper(100) -> TimedSink(1ms); TimedSource(5, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("s.count")), 500, 3);
}

TEST(Shaper, OutputOneGivesTheRest) {
  TestRouter r(
      "s :: InfiniteSource -> sh :: Shaper(100) -> p :: PrioSched -> TimedSink(1ms);"
      "sh[1] -> c :: PullTee -> [1]p; c[1] -> d :: Discard; TimedSource(5, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("s.count")), 5000, 3);
  EXPECT_NEAR(std::stoi(r.read("d.count")), 4500, 5);
}

TEST(Shaper, RateZeroLetsNothingThrough) {
  TestRouter r(
      "s :: InfiniteSource -> sh :: Shaper(0) -> TimedSink(1ms); TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  r.run();
  EXPECT_EQ(r.read("s.count"), "0");
}

TEST(BandwidthShaper, LetsBytesThroughAtItsRate) {
  TestRouter r(
      "s :: InfiniteSource(LENGTH 1000) -> sh :: BandwidthShaper(8Mbps) -> TimedSink(100us);"
      "TimedSource(2, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("s.count")), 2000, 10);
  EXPECT_EQ(r.read("sh.rate"), "8Mbps");
}

// --- Delays

TEST(DelayUnqueue, DelaysByTheTimestamp) {
  TestRouter r(
      "TimedSource(1, LIMIT 1) -> Queue -> d :: DelayUnqueue(0.5) -> c :: Capture; TimedSource(2, LIMIT 0, STOP true) "
      "-> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const auto& seen = dynamic_cast<Capture*>(r.router().find("c"))->seen();
  ASSERT_EQ(seen.size(), 1u);
  // The wall clock of a test begins at 1000000000 s.
  EXPECT_NEAR(seen[0].packet->timestamp().to_double(), 1000000001.5, 1e-3);
  EXPECT_EQ(r.read("d.delay"), "500ms");
}

TEST(DelayUnqueue, HoldsPacketsUntilTheyAreDue) {
  TestRouter r(
      "TimedSource(1, LIMIT 1) -> Queue -> DelayUnqueue(1) -> d :: Discard; TimedSource(1.9, LIMIT 0, STOP true) -> "
      "Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
}

TEST(DelayShaper, GivesPacketsWhenTheyAreDueAndWakesPullers) {
  TestRouter r(
      "TimedSource(1, LIMIT 3) -> Queue -> DelayShaper(0.5) -> d :: Discard; TimedSource(3.6, LIMIT 0, STOP true) -> "
      "Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
  EXPECT_EQ(r.read("d.scheduled"), "false");
}

}  // namespace
}  // namespace headrace::testing
