#include "support/test_router.hh"

namespace headrace::testing {
namespace {

TEST(Discard, CountsWhatIsPushed) {
  TestRouter r("InfiniteSource(LIMIT 5, BURST 2, STOP true) -> d :: Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "5");
  EXPECT_TRUE(r.write("d.reset_counts"));
  EXPECT_EQ(r.read("d.count"), "0");
}

TEST(Discard, PullsUntilThereIsNothing) {
  TestRouter r("InfiniteSource(LIMIT 7, STOP true) -> d :: Discard(BURST 3); Idle -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "7");
}

TEST(Discard, InactiveItDoesNotPull) {
  TestRouter r(
      "InfiniteSource(LIMIT 3) -> q :: Queue -> d :: Discard(ACTIVE false);"
      "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
  EXPECT_EQ(r.read("q.length"), "3");
  EXPECT_TRUE(r.write("d.active", "true"));
  EXPECT_EQ(r.read("d.scheduled"), "true");
}

TEST(Discard, ActiveNeedsAPullInput) {
  EXPECT_NE(TestRouter("TimedSource -> Discard(ACTIVE false);").errors().find("ACTIVE is meaningless in push context"),
            std::string::npos);
}

TEST(Discard, SleepsWhileTheQueueIsEmpty) {
  TestRouter r("TimedSource(1, LIMIT 2, STOP true) -> Queue -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "2");
  EXPECT_EQ(r.read("d.scheduled"), "false");
}

}  // namespace
}  // namespace headrace::testing
