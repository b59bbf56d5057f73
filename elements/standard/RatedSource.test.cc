#include "elements/standard/token_bucket.hh"
#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// A timer that stops the router after `seconds`.
std::string stopping_after(const std::string& seconds) {
  return "TimedSource(" + seconds + ", LIMIT 0, STOP true) -> Discard;";
}

TEST(TokenBucket, IsFullAtFirst) {
  TokenBucket b;
  b.assign(10, 3);
  b.refill(Timestamp::from_sec(100));
  EXPECT_EQ(b.size(), 3u);
  b.remove(2);
  EXPECT_TRUE(b.contains(1));
  EXPECT_FALSE(b.contains(2));
  EXPECT_FALSE(b.remove_if(2));
}

TEST(TokenBucket, FillsAtItsRateUpToItsCapacity) {
  TokenBucket b;
  b.assign(1000, 50);
  b.refill(Timestamp::from_sec(100));
  b.remove(50);
  EXPECT_EQ(b.size(), 0u);
  b.refill(Timestamp::from_sec(100) + Timestamp::from_ms(21));
  EXPECT_EQ(b.size(), 21u);
  b.refill(Timestamp::from_sec(101));
  EXPECT_EQ(b.size(), 50u);
  b.refill(Timestamp::from_sec(99));  // time does not go back
  EXPECT_EQ(b.size(), 50u);
}

TEST(TokenBucket, SaysHowLongToWait) {
  TokenBucket b;
  b.assign(10, 2);
  b.refill(Timestamp::from_sec(100));
  EXPECT_EQ(b.time_until(2), Timestamp{});
  b.remove(2);
  // 100 ms; a tick more because a tick's share is rounded down.
  EXPECT_EQ(b.time_until(1), Timestamp::from_ms(101));
  EXPECT_EQ(b.time_until(3), Timestamp::from_sec(86400));
}

TEST(TokenBucket, RateZeroNeverFills) {
  TokenBucket b;
  b.assign(0, 5);
  b.refill(Timestamp::from_sec(100));
  EXPECT_EQ(b.size(), 0u);
  EXPECT_EQ(b.time_until(1), Timestamp::from_sec(86400));
}

TEST(TokenBucket, CanCountBandwidthsOfFastLinks) {
  TokenBucket b;
  const uint64_t rate = 50'000'000'000;  // 400 Gbps
  b.assign(rate, rate / 50);
  b.refill(Timestamp::from_sec(100));
  b.remove(rate / 50);
  b.refill(Timestamp::from_sec(100) + Timestamp::from_ms(10));
  EXPECT_NEAR(static_cast<double>(b.size()), 5e8, 1e4);
}

TEST(TokenBucket, AdjustingKeepsTheTokens) {
  TokenBucket b;
  b.assign(100, 10);
  b.refill(Timestamp::from_sec(100));
  b.remove(6);
  b.assign_adjust(200, 20);
  EXPECT_EQ(b.size(), 4u);
  EXPECT_EQ(b.rate(), 200u);
}

TEST(RatedSource, SendsAtItsRate) {
  TestRouter r("s :: RatedSource(RATE 100) -> d :: Discard;" + stopping_after("10"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("d.count")), 1000, 3);
  EXPECT_EQ(r.read("s.rate"), "100");
}

TEST(RatedSource, FastRatesComeInBatches) {
  TestRouter r("s :: RatedSource(RATE 1000000) -> d :: Discard;" + stopping_after("0.1"));
  r.run();
  // The full bucket comes first: 10 ms worth.
  EXPECT_NEAR(std::stoi(r.read("d.count")), 110000, 1500);
}

TEST(RatedSource, StopsAtItsLimit) {
  TestRouter r("s :: RatedSource(abc, 1000, 15, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->seen().size(), 15u);
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->bytes(0), "abc");
}

TEST(RatedSource, BandwidthGivesTheRate) {
  TestRouter r("s :: RatedSource(LENGTH 125, BANDWIDTH 8Mbps) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.rate"), "8000");
}

TEST(RatedSource, PulledItHoldsBack) {
  TestRouter r("s :: RatedSource(RATE 10) -> TimedSink(1ms);" + stopping_after("2"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("s.count")), 21, 1);
}

TEST(RatedSource, HandlersChangeRateAndLimit) {
  TestRouter r(
      "s :: RatedSource(RATE 10, ACTIVE false) -> d :: Discard; t :: TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
  EXPECT_TRUE(r.write("s.rate", "50"));
  EXPECT_TRUE(r.write("s.active", "true"));
  EXPECT_TRUE(r.write("t.reset"));
  r.run();
  EXPECT_GT(std::stoi(r.read("d.count")), 0);
  EXPECT_FALSE(r.write("s.rate", "fast"));
  EXPECT_FALSE(r.write("s.active", "maybe"));
  EXPECT_FALSE(r.write("s.length", "-2"));
  EXPECT_EQ(r.errors(), "expected an integer\nexpected true or false\nout of range, bound -1\n");
}

TEST(TimedSource, SendsEveryInterval) {
  TestRouter r("TimedSource(0.25, DATA ab, LIMIT 4, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const auto& seen = dynamic_cast<Capture*>(r.router().find("c"))->seen();
  ASSERT_EQ(seen.size(), 4u);
  for (size_t i = 1; i < 4; ++i)
    EXPECT_NEAR((seen[i].packet->timestamp() - seen[i - 1].packet->timestamp()).to_double(), 0.25, 1e-4);
}

TEST(TimedSource, HeadroomAndHandlers) {
  TestRouter r("s :: TimedSource(1ms, HEADROOM 200, LIMIT 1, STOP true) -> c :: Capture;");
  r.run();
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->seen()[0].packet->headroom(), 200u);
  EXPECT_EQ(r.read("s.interval"), "1ms");
  EXPECT_TRUE(r.write("s.interval", "2s"));
  EXPECT_EQ(r.read("s.interval"), "2s");
  EXPECT_EQ(r.read("s.count"), "1");
}

TEST(TimedSink, PullsEveryInterval) {
  TestRouter r("s :: InfiniteSource -> TimedSink(10ms);" + stopping_after("0.995"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("s.count"), "99");
}

}  // namespace
}  // namespace headrace::testing
