#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string stop_after(const std::string& seconds) {
  return " TimedSource(" + seconds + ", LIMIT 0, STOP true) -> Discard;";
}

/// When packets left, in seconds since the start.
std::vector<double> left(TestRouter& r) {
  std::vector<double> times;
  for (const auto& seen : capture(r, "c").seen()) times.push_back(seen.packet->timestamp().to_double() - 1e9);
  return times;
}

TEST(LinkUnqueue, DelaysByLatencyAndLength) {
  // 1000 bytes take a second.
  TestRouter r("InfiniteSource(LENGTH 1000, LIMIT 3) -> Queue -> LinkUnqueue(0.5s, 8kbps) -> c :: Capture;" +
               stop_after("10"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const auto times = left(r);
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(times[i], 1.5 + static_cast<double>(i), 0.01) << i;
}

TEST(LinkUnqueue, SeparatePacketsDoNotWaitForEachOther) {
  TestRouter fast("TimedSource(2, LIMIT 2) -> Queue -> LinkUnqueue(0.25s, 690Bps) -> c :: Capture;" + stop_after("9"));
  ASSERT_TRUE(fast.ok()) << fast.errors();
  fast.run();
  const auto times = left(fast);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_NEAR(times[0], 2.35, 0.01);
  EXPECT_NEAR(times[1], 4.35, 0.01);
}

TEST(LinkUnqueue, BandwidthZeroDelaysByLatencyOnly) {
  TestRouter q("InfiniteSource(LIMIT 600) -> Queue -> l :: LinkUnqueue(1s, 0) -> c :: Capture;" + stop_after("0.9") +
               stop_after("1.5"));
  ASSERT_TRUE(q.ok()) << q.errors();
  q.run();
  EXPECT_EQ(capture(q, "c").seen().size(), 0u);
  EXPECT_EQ(q.read("l.size"), "600");
  q.run();
  EXPECT_EQ(capture(q, "c").seen().size(), 600u);
  EXPECT_EQ(q.read("l.size"), "0");
}

TEST(LinkUnqueue, HandlersShowAndChangeTheLink) {
  TestRouter r("InfiniteSource(LENGTH 1000, LIMIT 3) -> Queue -> l :: LinkUnqueue(10s, 8kbps) -> c :: Capture;" +
               stop_after("5"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("l.latency"), "10s");
  EXPECT_EQ(r.read("l.bandwidth"), "1000");
  r.run();
  EXPECT_EQ(r.read("l.size"), "3");
  ASSERT_TRUE(r.write("l.bandwidth", "1Mbps"));
  EXPECT_EQ(r.read("l.bandwidth"), "125000");
  EXPECT_EQ(r.read("l.size"), "0");
  ASSERT_TRUE(r.write("l.latency", "20ms"));
  EXPECT_EQ(r.read("l.latency"), "20ms");
  ASSERT_TRUE(r.write("l.reset"));
  EXPECT_FALSE(r.write("l.latency", "-1"));
  EXPECT_FALSE(r.write("l.bandwidth", "99Bps"));
}

TEST(LinkUnqueue, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> LinkUnqueue(1s) -> Discard;").errors().find("BANDWIDTH: required argument missing"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> LinkUnqueue(1s, 99) -> Discard;")
                .errors()
                .find("BANDWIDTH: bandwidth too small, minimum 100Bps, or 0 to disable bandwidth"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> LinkUnqueue(soon, 1Mbps) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
