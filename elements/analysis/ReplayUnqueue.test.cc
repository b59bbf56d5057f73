#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string letters(TestRouter& r, std::string_view name) {
  std::string s;
  for (size_t i = 0; i < capture(r, name).seen().size(); ++i) s += capture(r, name).bytes(i);
  return s;
}

/// A queue with a packet a second from second `first` on, whose bytes are `letter`.
std::string source(const std::string& letter, const std::string& interval = "1") {
  return "TimedSource(" + interval + ", DATA " + letter + ", LIMIT 3) -> Queue";
}

/// Stops the router once in `seconds`.
std::string pause(const std::string& seconds) {
  return " TimedSource(" + seconds + ", LIMIT 0, STOP true) -> Discard;";
}

TEST(ReplayUnqueue, SendsWhatItLoadedInLoops) {
  TestRouter r("InfiniteSource(DATA a, LIMIT 5) -> Queue -> p :: ReplayUnqueue(STOP 3) -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(letters(r, "d"), "aaaaaaaaaaaaaaa");
  EXPECT_EQ(r.read("p.stop"), "0");
  EXPECT_EQ(r.read("p.active"), "false");
}

TEST(ReplayUnqueue, MergesInputsByTime) {
  TestRouter r(source("a", "2") +
               " -> p :: ReplayUnqueue(ACTIVE false, STOP 2, FREEONTERMINATE false, BURST 2) -> c :: "
               "Capture;" +
               source("b", "3") + " -> [1]p; p[1] -> Discard;" + pause("20"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_TRUE(r.write("p.active", "true"));
  r.run();
  // a at 2, 4 and 6, b at 3, 6 and 9 seconds. Loading ends with the last a, which is earlier than the second b.
  const std::string once = letters(r, "c").substr(0, letters(r, "c").size() / 2);
  EXPECT_EQ(letters(r, "c"), once + once);
  EXPECT_EQ(once.substr(0, 3), "aba");
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u8(anno_offset::kPaint), 1);
}

TEST(ReplayUnqueue, KeepsThePaceOfTheTimestamps) {
  for (const auto& [timing, seconds] : {std::pair{"100", 2.}, {"200", 1.}}) {
    TestRouter r(source("a") + " -> p :: ReplayUnqueue(STOP 1, ACTIVE false, TIMING " + timing +
                 ") -> SetTimestamp -> c :: Capture;" + pause("10"));
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    ASSERT_TRUE(r.write("p.active", "true"));
    r.run();
    ASSERT_EQ(capture(r, "c").seen().size(), 3u);
    const double first = capture(r, "c").seen()[0].packet->timestamp().to_double();
    EXPECT_NEAR(capture(r, "c").seen()[2].packet->timestamp().to_double() - first, seconds, 0.01);
    EXPECT_EQ(r.read("p.timing"), timing);
  }
}

TEST(ReplayUnqueue, StopTimeEndsIt) {
  TestRouter r(source("a") + " -> p :: ReplayUnqueue(STOP_TIME 5, TIMING 100, ACTIVE false) -> d :: Discard;" +
               pause("10"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_TRUE(r.write("p.active", "true"));
  r.run();
  // Loops of two seconds, of which two packets come together.
  EXPECT_NEAR(std::stoi(r.read("d.count")), 8, 1);
}

TEST(ReplayUnqueue, LoadsAtMostItsLimitAndAgainAfterReset) {
  TestRouter r(
      "InfiniteSource(DATA a, LIMIT 9) -> Queue -> p :: ReplayUnqueue(STOP 1, LIMIT 4, FREEONTERMINATE false, "
      "USE_SIGNAL false, ACTIVE false) -> d :: Discard;" +
      pause("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("p.loaded"), "false");
  ASSERT_TRUE(r.write("p.active", "true"));
  r.run();
  EXPECT_EQ(r.read("d.count"), "4");
  EXPECT_EQ(r.read("p.loaded"), "true");
  ASSERT_TRUE(r.write("p.reset"));
  EXPECT_EQ(r.read("p.loaded"), "false");
  ASSERT_TRUE(r.write("p.stop", "2"));
  ASSERT_TRUE(r.write("p.active", "true"));
  r.run();
  EXPECT_EQ(r.read("d.count"), "12");
}

TEST(ReplayUnqueue, NothingToSendStopsIt) {
  TestRouter r("Idle -> ReplayUnqueue -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
}

TEST(ReplayUnqueue, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> ReplayUnqueue(TIMING 1, TIMING_FNT @1) -> Discard;").errors().find("only '@0'"),
            std::string::npos);
  EXPECT_TRUE(TestRouter("Idle -> ReplayUnqueue(TIMING 1, TIMING_FNT @0, QUICK_CLONE 1) -> Discard;").ok());
  EXPECT_NE(TestRouter("Idle -> ReplayUnqueue(BURST 0) -> Discard;").errors().find("BURST: out of range, bound 1"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> ReplayUnqueue(STOP x) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> MultiReplayUnqueue(TIMING 1) -> Discard;").ok());
}

TEST(MultiReplayUnqueue, SendsByTheOutputOfTheInput) {
  TestRouter r(source("a", "2") + " -> p :: MultiReplayUnqueue(ACTIVE false, STOP 2) -> a :: Capture;" +
               source("b", "1") + " -> [1]p; p[1] -> b :: Capture;" + pause("20"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_TRUE(r.write("p.active", "true"));
  r.run();
  // b at 1, 2 and 3 seconds, a at 2, 4 and 6: when b dries up, the second a waits.
  EXPECT_EQ(letters(r, "b"), "bbbbbb");
  EXPECT_EQ(letters(r, "a"), "aa");
}

}  // namespace
}  // namespace headrace::testing
