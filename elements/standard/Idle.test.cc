#include "support/test_router.hh"

namespace headrace::testing {
namespace {

TEST(Idle, TakesPacketsAndSendsNone) {
  TestRouter r("i :: Idle; InfiniteSource(LIMIT 3, STOP true) -> i -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_TRUE(dynamic_cast<Capture*>(r.router().find("c"))->seen().empty());
}

TEST(Idle, PullersSleep) {
  TestRouter r(
      "Idle -> d :: Discard; i :: Idle -> q :: Queue -> Idle; Idle -> Unqueue -> Discard;"
      "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
}

TEST(Idle, SignalsThatNothingWillCome) {
  TestRouter r("Idle -> u :: Unqueue -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const Signal signal = Signal::upstream_nonempty(r.router().find("u"), 0, nullptr);
  EXPECT_FALSE(signal.active());
}

TEST(Idle, AnyNumberOfPorts) {
  EXPECT_TRUE(TestRouter("i, j :: Idle; i[0] -> [0]j; i[1] -> [1]j; i[2] -> [2]j;").ok());
}

}  // namespace
}  // namespace headrace::testing
