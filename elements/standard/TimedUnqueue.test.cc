#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string moved_on_time(const std::string& arguments, const std::string& seconds) {
  TestRouter r("InfiniteSource(LIMIT 100, BURST 100) -> Queue -> TimedUnqueue(" + arguments +
               ") -> d :: Discard; TimedSource(" + seconds + ", LIMIT 0, STOP true) -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  r.run();
  return r.read("d.count");
}

TEST(TimedUnqueue, MovesABurstInEachInterval) {
  EXPECT_EQ(moved_on_time("1", "5.5"), "6");
  EXPECT_EQ(moved_on_time("0.5, 4", "2.2"), "20");
  EXPECT_EQ(moved_on_time("1ms, BURST 7", "10"), "100");
}

TEST(TimedUnqueue, MovesTheNextPacketAtOnceAfterItSlept) {
  TestRouter r(
      "s :: TimedSource(10, LIMIT 2) -> Queue -> u :: TimedUnqueue(1) -> SetTimestamp -> c :: Capture;"
      "TimedSource(25, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_NEAR(capture(r, "c").seen()[1].packet->timestamp().to_double(), 1000000020, 0.01);
  EXPECT_EQ(r.read("u.scheduled"), "false");
}

TEST(TimedUnqueue, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> TimedUnqueue -> Discard;").errors().find("INTERVAL: required argument missing"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> TimedUnqueue(1, 0) -> Discard;").errors().find("BURST: out of range, bound 1"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
