#include "support/test_router.hh"

namespace headrace::testing {
namespace {

TEST(Unqueue, MovesEverything) {
  TestRouter r("InfiniteSource(LIMIT 500, STOP true) -> Unqueue(BURST -1) -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "500");
}

TEST(Unqueue, StopsAtItsLimitAndResetGoesOn) {
  TestRouter r(
      "InfiniteSource -> q :: Queue(100) -> u :: Unqueue(LIMIT 5, BURST 2) -> d :: Discard;"
      "t :: TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "5");
  EXPECT_EQ(r.read("u.count"), "5");
  EXPECT_TRUE(r.write("u.reset"));
  EXPECT_TRUE(r.write("t.reset"));
  r.run();
  EXPECT_EQ(r.read("d.count"), "10");
}

TEST(Unqueue, InactiveItDoesNothing) {
  TestRouter r(
      "InfiniteSource(LIMIT 1) -> q :: Queue -> u :: Unqueue(ACTIVE false) -> d :: Discard;"
      "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
  EXPECT_EQ(r.read("u.active"), "false");
}

TEST(Unqueue, BurstZeroIsWarnedOf) {
  TestRouter r("Idle -> Unqueue(0) -> Discard;");
  EXPECT_TRUE(r.ok());
  EXPECT_NE(r.errors().find("BURST size 0, no packets will be pulled"), std::string::npos) << r.errors();
}

TEST(Unqueue, SleepsWhileTheQueueIsEmpty) {
  TestRouter r("TimedSource(1, LIMIT 3, STOP true) -> Queue -> u :: Unqueue -> d :: Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
  EXPECT_EQ(r.read("u.scheduled"), "false");
}

}  // namespace
}  // namespace headrace::testing
