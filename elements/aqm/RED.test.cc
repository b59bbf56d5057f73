#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// Pushes `n` packets into `element`.
void push_many(TestRouter& r, const std::string& element, int n) {
  for (int i = 0; i < n; ++i) r.push(element, "x");
}

TEST(RED, LooksAtTheNearestQueuesDownstream) {
  TestRouter r(
      "Idle -> red :: RED(5, 50, 0.02) -> s :: Switch -> Null -> q1 :: Queue -> Queue2 :: Unqueue -> q3 :: Queue -> "
      "Idle; s[1] -> q2 :: Queue -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("red.queues"), "q1\nq2\n");
  EXPECT_EQ(r.read("red.config"), "5, 50, 0.02, QUEUES q1 q2, STABILITY 4");
}

TEST(RED, PulledItLooksUpstream) {
  TestRouter r("Idle -> q :: Queue -> Shaper(1) -> red :: RED(5, 50, 0.02, GENTLE false) -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("red.queues"), "q\n");
}

TEST(RED, QueuesCanBeNamed) {
  TestRouter r(
      "Idle -> red :: RED(5, 50, 0.02, QUEUES far near) -> near :: Queue -> Idle; Idle -> far :: Queue -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("red.queues"), "far\nnear\n");
  push_many(r, "near", 3);
  push_many(r, "far", 4);
  EXPECT_EQ(r.read("red.stats"), "7 current queue\n0.000 avg queue\n0 drops\n");
}

TEST(RED, MarksNothingUpToMinThreshAndAllAboveTheEnd) {
  // The queue's own length counts, so the packet behind the twelfth is the first to find more than 2 * 6.
  TestRouter r("Idle -> red :: RED(6, 6, 0, STABILITY 0) -> q :: Queue(100) -> Idle; red[1] -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "red", 6);
  EXPECT_EQ(r.read("red.drops"), "0");
  push_many(r, "q", 10);
  push_many(r, "red", 20);
  EXPECT_EQ(r.read("red.drops"), "20");
  EXPECT_EQ(r.read("d.count"), "20");
  EXPECT_EQ(r.read("red.avg_queue_size"), "16.000");
}

TEST(RED, MarksAShareInBetween) {
  // 30 packets stay in the queue: half of the way from 20 to 40, so 0.2 / 2 of the packets.
  TestRouter r("Idle -> red :: RED(20, 40, 0.2, STABILITY 0, QUEUES q) -> d :: Discard; Idle -> q :: Queue -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "q", 30);
  push_many(r, "red", 5000);
  // Intervals are uniform from 1 to 10: on average, a mark in 6 packets (more often than independent marks).
  EXPECT_NEAR(std::stoi(r.read("red.drops")), 5000 / 6, 150);
  EXPECT_EQ(r.read("red.drop_reasons"), r.read("red.drops") + "\tmarked by RED\n");
}

TEST(RED, WithoutGentlenessAllAboveMaxThreshIsMarked) {
  for (const char* gentle : {"false", "true"}) {
    TestRouter r(std::string("Idle -> red :: RED(5, 10, 0.01, STABILITY 0, QUEUES q, GENTLE ") + gentle +
                 ") -> d :: Discard; Idle -> q :: Queue -> Idle;");
    ASSERT_TRUE(r.ok()) << r.errors();
    push_many(r, "q", 11);
    push_many(r, "red", 100);
    if (std::string_view(gentle) == "false")
      EXPECT_EQ(r.read("red.drops"), "100");
    else
      EXPECT_LT(std::stoi(r.read("red.drops")), 60);
  }
}

TEST(RED, AveragesByStability) {
  TestRouter r("Idle -> red :: RED(5, 10, 0, STABILITY 1, QUEUES q) -> d :: Discard; Idle -> q :: Queue -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "q", 8);
  push_many(r, "red", 2);
  EXPECT_EQ(r.read("red.avg_queue_size"), "6.000");
}

TEST(RED, HandlersChangeItsParameters) {
  TestRouter r("Idle -> red :: RED(5, 50, 0.02) -> q :: Queue -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("red.max_p", "0.5"));
  ASSERT_TRUE(r.write("red.min_thresh", "7"));
  ASSERT_TRUE(r.write("red.max_thresh", "70"));
  EXPECT_EQ(r.read("red.max_p"), "0.5");
  EXPECT_EQ(r.read("red.min_thresh"), "7");
  EXPECT_EQ(r.read("red.config"), "7, 70, 0.5, QUEUES q, STABILITY 4");
  EXPECT_FALSE(r.write("red.min_thresh", "71"));
  EXPECT_FALSE(r.write("red.max_p", "2"));
  EXPECT_EQ(r.read("red.config"), "7, 70, 0.5, QUEUES q, STABILITY 4");
}

TEST(RED, ArgumentsAreChecked) {
  const auto errors = [](const std::string& arguments, const char* sink = "Queue -> Idle") {
    return TestRouter("Idle -> RED(" + arguments + ") -> " + sink + "; d :: Idle;").errors();
  };
  EXPECT_EQ(errors("1, 2, 1"), "");
  EXPECT_NE(errors("1, 2").find("MAX_P: required argument missing"), std::string::npos);
  EXPECT_NE(errors("3, 2, 0").find("MIN_THRESH must be <= MAX_THRESH"), std::string::npos);
  EXPECT_NE(errors("3, 65536, 0").find("MAX_THRESH must be <= 65535"), std::string::npos);
  EXPECT_NE(errors("1, 2, 1.1").find("MAX_P: out of range, bound 1"), std::string::npos);
  EXPECT_NE(errors("1, 2, 1, STABILITY 17").find("STABILITY: out of range, bound 16"), std::string::npos);
  EXPECT_NE(errors("1, 2, 1", "Discard").find("no nearby Queues"), std::string::npos);
  EXPECT_NE(errors("1, 2, 1, QUEUES x").find("QUEUES: no element named 'x'"), std::string::npos);
  EXPECT_NE(errors("1, 2, 1, QUEUES d").find("QUEUES: 'd' is not a Storage element"), std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
