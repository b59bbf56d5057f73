#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Pipeliner, PassesPacketsToItsHomeThread) {
  TestRouter r(
      "s :: InfiniteSource(LIMIT 5000, BURST 10, STOP true) -> p :: Pipeliner(100000) -> c :: Counter -> Discard;"
      "StaticThreadSched(s 0, p 1); DriverManager(wait_stop, wait 10ms);",
      2);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("p.count"), "5000");
  EXPECT_EQ(r.read("c.count"), "5000");
  EXPECT_EQ(r.read("p.dropped"), "0");
}

TEST(Pipeliner, WhatItsOwnThreadPushesGoesOnAtOnce) {
  TestRouter r(
      "Idle -> p :: Pipeliner -> c :: Capture; Idle -> q :: Pipeliner(DIRECT_TRAVERSAL false) -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", "x");
  r.push("q", "x");
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(r.read("p.count"), "0");
  EXPECT_EQ(capture(r, "d").seen().size(), 0u);
  EXPECT_EQ(r.read("q.count"), "1");
}

TEST(Pipeliner, DropsWhatHasNoRoomAndHoldsPacketsWhileInactive) {
  TestRouter r(
      "Idle -> p :: Pipeliner(4, 0, false, ACTIVE false) -> c :: Capture; TimedSource(1, LIMIT 0, STOP true) -> "
      "Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 6; ++i) r.push("p", "x");
  EXPECT_EQ(r.read("p.dropped"), "2");
  EXPECT_EQ(r.read("p.drop_reasons"), "2\tno room in the ring\n");
  EXPECT_EQ(capture(r, "c").seen().size(), 0u);
  ASSERT_TRUE(r.write("p.active", "true"));
  r.run();
  EXPECT_EQ(capture(r, "c").seen().size(), 4u);
  EXPECT_EQ(r.read("p.highwater"), "4");
}

TEST(Pipeliner, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> Pipeliner(BLOCKING true) -> Discard;").errors().find("BLOCKING true is not supported"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> Pipeliner(3) -> Discard;").errors().find("CAPACITY must be at least 4"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> Pipeliner(5000000) -> Discard;").errors().find("CAPACITY too large"),
            std::string::npos);
  EXPECT_TRUE(
      TestRouter("Idle -> Pipeliner(0, ALWAYS_UP true, NOUSELESS true, VERBOSE 0, PREFETCH 1) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
