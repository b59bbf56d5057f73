#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// The bytes of all packets that reached `c`, joined.
std::string seen(TestRouter& r) {
  std::string s;
  const Capture& c = *dynamic_cast<Capture*>(r.router().find("c"));
  for (size_t i = 0; i < c.seen().size(); ++i) s += c.bytes(i);
  return s;
}

std::string scheduled(const std::string& sched, const std::string& unqueue = "Unqueue") {
  TestRouter r(
      "a :: InfiniteSource(DATA a, LIMIT 3) -> s :: " + sched + " -> " + unqueue +
      " -> c :: Capture; b :: InfiniteSource(DATA b, LIMIT 2) -> [1]s; InfiniteSource(DATA c, LIMIT 4) -> [2]s;"
      "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  r.run();
  return seen(r);
}

TEST(RoundRobinSched, TakesTurns) {
  EXPECT_EQ(scheduled("RoundRobinSched"), "abcabcacc");
  EXPECT_EQ(scheduled("RoundRobinSched", "Unqueue(4)"), "abcabcacc");
}

TEST(PrioSched, LowestInputFirst) {
  EXPECT_EQ(scheduled("PrioSched"), "aaabbcccc");
  EXPECT_EQ(scheduled("PrioSched", "Unqueue(4)"), "aaabbcccc");
}

TEST(StrideSched, SharesByTickets) {
  // Strides 16384, 32768 and 65536: by hand, with ties going to the input that was served last.
  TestRouter r(
      "InfiniteSource(DATA a) -> s :: StrideSched(4, 2, 1) -> u :: Unqueue(LIMIT 14) -> c :: Capture;"
      "InfiniteSource(DATA b) -> [1]s; InfiniteSource(DATA c) -> [2]s; TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(seen(r), "aabaabcaabaabc");
}

TEST(StrideSched, TicketsAreHandlers) {
  TestRouter r("Idle -> s :: StrideSched(4, 0) -> Idle; Idle -> [1]s;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.tickets1"), "0");
  EXPECT_TRUE(r.write("s.tickets1", "7"));
  EXPECT_EQ(r.read("s.config"), "4, 7");
  EXPECT_FALSE(r.write("s.tickets0", "-1"));
}

TEST(StrideSched, NeedsATicketCountForEachInput) {
  EXPECT_NE(TestRouter("Idle -> s :: StrideSched(4) -> Idle; Idle -> [1]s;").errors().find("need 2 arguments"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> s :: StrideSched(-4) -> Idle;").errors().find("must be >= 0"), std::string::npos);
}

TEST(RoundRobinSwitch, TakesTurns) {
  TestRouter r(
      "InfiniteSource(LIMIT 7, BURST 5, STOP true) -> s :: RoundRobinSwitch -> a :: Discard; s[1] -> b :: Discard; "
      "s[2] -> c :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("a.count"), "3");
  EXPECT_EQ(r.read("b.count"), "2");
  EXPECT_EQ(r.read("c.count"), "2");
}

TEST(HashSwitch, SumOfTheBytesChooses) {
  TestRouter r("Idle -> s :: HashSwitch(1, 2) -> c :: Capture; s[1] -> [1]c; s[2] -> [2]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", from_hex("ff0102ff"));  // 3 % 3
  r.push("s", from_hex("000202"));    // 4 % 3
  r.push("s", from_hex("00ff04"));    // 259 % 3
  r.push("s", from_hex("0000"));      // too short
  const auto& seen = dynamic_cast<Capture*>(r.router().find("c"))->seen();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].port, 0);
  EXPECT_EQ(seen[1].port, 1);
  EXPECT_EQ(seen[2].port, 1);
  EXPECT_EQ(seen[3].port, 0);
}

TEST(HashSwitch, FewOutputsSeeAllBits) {
  TestRouter r("Idle -> s :: HashSwitch(0, 1) -> c :: Capture; s[1] -> [1]c;");
  r.push("s", from_hex("10"));  // (0x10 ^ 0x01) & 1
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->seen()[0].port, 1);
}

TEST(HashSwitch, LengthZeroIsAnError) {
  EXPECT_NE(TestRouter("Idle -> HashSwitch(0, 0) -> Discard;").errors().find("length must be > 0"), std::string::npos);
}

TEST(Suppressor, ClosesAndOpensWays) {
  TestRouter r("Idle -> s :: Suppressor -> c :: Capture; Idle -> [1]s[1] -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.active1"), "true");
  EXPECT_TRUE(r.write("s.active1", "false"));
  r.push("s", std::string_view("x"), 0);
  r.push("s", std::string_view("y"), 1);
  const auto& seen = dynamic_cast<Capture*>(r.router().find("c"))->seen();
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tsuppressed\n");
  EXPECT_TRUE(r.write("s.reset"));
  r.push("s", std::string_view("y"), 1);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Message, PrintsAndFails) {
  TestRouter quiet("Message(\"hello there\");");
  EXPECT_TRUE(quiet.ok());
  EXPECT_NE(quiet.errors().find("hello there"), std::string::npos);
  EXPECT_NE(TestRouter("Message(careful, WARNING);").errors().find("warning: careful"), std::string::npos);
  EXPECT_FALSE(TestRouter("Message(no, ERROR);").ok());
}

TEST(Error, KeepsTheRouterFromRunning) {
  TestRouter r("Idle -> Error(a, b c) -> Idle;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("not meant to run"), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
