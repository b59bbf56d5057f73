#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// Two queues with three packets each, `a` and `b`, then `element`.
std::string two_inputs(const std::string& element) {
  return "InfiniteSource(DATA a, LIMIT 3) -> Queue -> s :: " + element +
         " -> u :: Unqueue -> c :: Capture; InfiniteSource(DATA b, LIMIT 3) -> Queue -> [1]s;"
         "TimedSource(1, LIMIT 0, STOP true) -> Discard; TimedSource(2, LIMIT 0, STOP true) -> Discard;";
}

std::string seen_bytes(TestRouter& r) {
  std::string s;
  for (size_t i = 0; i < capture(r, "c").seen().size(); ++i) s += capture(r, "c").bytes(i);
  return s;
}

TEST(PullSwitch, PullsFromTheChosenInput) {
  for (const char* element : {"PullSwitch", "SimplePullSwitch"}) {
    TestRouter r(two_inputs(element));
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(seen_bytes(r), "aaa") << element;
    EXPECT_EQ(r.read("s.switch"), "0");
    ASSERT_TRUE(r.write("s.switch", "1"));
    r.run();
    EXPECT_EQ(seen_bytes(r), "aaabbb") << element;
    EXPECT_EQ(r.read("s.config"), "1");
  }
}

TEST(PullSwitch, SleepsWhileItsInputIsEmptyThoughOthersAreNot) {
  TestRouter r(two_inputs("PullSwitch(-1)"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(seen_bytes(r), "");
  EXPECT_EQ(r.read("u.scheduled"), "false");
  ASSERT_TRUE(r.write("s.switch", "0"));
  r.run();
  EXPECT_EQ(seen_bytes(r), "aaa");
  EXPECT_EQ(r.read("u.scheduled"), "false");
}

TEST(PullSwitch, WakesWhenItsInputHasPacketsAgain) {
  TestRouter r(
      "TimedSource(0.5, DATA a, LIMIT 3) -> Queue -> s :: PullSwitch -> Unqueue -> c :: Capture; Idle -> [1]s;"
      "TimedSource(4, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(seen_bytes(r), "aaa");
}

TEST(PullSwitch, AnInputThatIsNotThereGivesNothing) {
  TestRouter r("Idle -> s :: PullSwitch(7) -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.switch"), "-1");
  EXPECT_FALSE(r.write("s.switch", "x"));
  EXPECT_EQ(r.errors(), "expected an integer\n");
  EXPECT_FALSE(TestRouter("Idle -> PullSwitch(x) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> SimplePullSwitch(0, 1) -> Idle;").ok());
}

TEST(StaticPullSwitch, PullsFromItsInput) {
  TestRouter r(two_inputs("StaticPullSwitch(1)"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(seen_bytes(r), "bbb");
  TestRouter none(two_inputs("StaticPullSwitch(2)"));
  none.run();
  EXPECT_EQ(seen_bytes(none), "");
  EXPECT_EQ(none.read("u.scheduled"), "false");
}

TEST(StaticPullSwitch, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> StaticPullSwitch -> Idle;").errors().find("INPUT: required argument missing"),
            std::string::npos);
}

TEST(StaticSwitch, SendsToItsOutput) {
  TestRouter r("Idle -> s :: StaticSwitch(1) -> a :: Capture; s[1] -> b :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "x");
  EXPECT_EQ(capture(r, "b").seen().size(), 1u);
  TestRouter none("Idle -> s :: StaticSwitch(2) -> Discard; s[1] -> Discard;");
  none.push("s", "x");
  EXPECT_EQ(none.read("s.drop_reasons"), "1\tdropped\n");
  EXPECT_FALSE(TestRouter("Idle -> StaticSwitch -> Discard;").ok());
}

TEST(RandomSwitch, UsesAllOutputsAlike) {
  TestRouter r(
      "InfiniteSource(LIMIT 9000, BURST 100, STOP true) -> s :: RandomSwitch -> a :: Discard; s[1] -> b :: Discard; "
      "s[2] -> c :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  // The standard deviation is 45 packets.
  for (const char* d : {"a", "b", "c"}) EXPECT_NEAR(std::stoi(r.read(std::string(d) + ".count")), 3000, 400);
  EXPECT_FALSE(TestRouter("Idle -> RandomSwitch(1) -> Discard;").ok());
}

// --- Bypass

TEST(Bypass, PushedPacketsTakeTheDetourWhileItIsActive) {
  TestRouter r("Idle -> b :: Bypass -> c :: Capture; b[1] -> d :: Counter -> [1]b;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("b", "x");
  EXPECT_EQ(r.read("d.count"), "0");
  ASSERT_TRUE(r.write("b.active", "true"));
  r.push("b", "x");
  EXPECT_EQ(r.read("d.count"), "1");
  EXPECT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(r.read("b.active"), "true");
  EXPECT_FALSE(r.write("b.active", "x"));
}

TEST(Bypass, PulledPacketsTakeTheDetourWhileItIsActive) {
  for (const char* active : {"true", "false"}) {
    TestRouter r(std::string("InfiniteSource(LIMIT 5, DATA a) -> Queue -> b :: Bypass(") + active +
                 ", INLINE true) -> Unqueue -> c :: Capture; b[1] -> d :: Counter -> [1]b;"
                 "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(seen_bytes(r), "aaaaa");
    EXPECT_EQ(r.read("d.count"), std::string_view(active) == "true" ? "5" : "0");
  }
}

TEST(Bypass, WithOneOutputPassesPackets) {
  TestRouter r("Idle -> b :: Bypass(true) -> c :: Capture;");
  r.push("b", "x");
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_FALSE(TestRouter("Idle -> Bypass(x) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> b :: Bypass -> Discard; b[1] -> Discard; b[2] -> Discard;").ok());
}

// --- Hub

TEST(Hub, SendsPacketsToTheOtherPorts) {
  TestRouter r("Idle -> h :: Hub -> c :: Capture; Idle -> [1]h; Idle -> [2]h; h[1] -> [1]c; h[2] -> [2]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int from = 0; from < 3; ++from) r.push("h", std::string(1, static_cast<char>('0' + from)), from);
  std::string to[3];
  for (size_t i = 0; i < capture(r, "c").seen().size(); ++i)
    to[capture(r, "c").seen()[i].port] += capture(r, "c").bytes(i);
  EXPECT_EQ(to[0], "12");
  EXPECT_EQ(to[1], "02");
  EXPECT_EQ(to[2], "01");
}

TEST(Hub, APacketWithNowhereToGoIsDropped) {
  TestRouter r("Idle -> h :: Hub -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("h", "x");
  EXPECT_EQ(capture(r, "c").seen().size(), 0u);
  EXPECT_EQ(r.read("h.drop_reasons"), "1\tno other port\n");
  EXPECT_FALSE(TestRouter("Idle -> Hub(1) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
