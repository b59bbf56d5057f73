#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(TSCClock, AcceptsFastClicksKeywordsAndPassesPackets) {
  TestRouter r(
      "t :: TSCClock(VERBOSE 1, INSTALL true, NOWAIT true, CONVERT_STEADY false); Idle -> u :: TSCClock -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("u", "x");
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  // A test begins at 1000000000 s, and at 1000 s of the steady clock.
  EXPECT_EQ(r.read("t.now").substr(0, 11), "1000000000.");
  EXPECT_EQ(r.read("t.now_steady").substr(0, 5), "1000.");
}

TEST(TSCClock, CallsWhenItIsReady) {
  TestRouter r(
      "TSCClock(READY_CALL s.active true); s :: InfiniteSource(LIMIT 3, ACTIVE false, STOP true) -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
}

TEST(TSCClock, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("TSCClock(BASE nothing);").ok());
  EXPECT_FALSE(TestRouter("TSCClock(READY_CALL nothing.active true);").ok());
  EXPECT_FALSE(TestRouter("TSCClock(INSTALL 7);").ok());
  EXPECT_FALSE(TestRouter("TSCClock(true);").ok());
}

TEST(JiffieClock, ShowsMilliseconds) {
  TestRouter r("j :: JiffieClock(true, MINPRECISION 1000);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("j.jiffies"), "1000000");
  EXPECT_EQ(r.read("j.status"), "false");
  EXPECT_FALSE(TestRouter("JiffieClock(7);").ok());
  EXPECT_FALSE(TestRouter("JiffieClock(true, x);").ok());
}

}  // namespace
}  // namespace headrace::testing
