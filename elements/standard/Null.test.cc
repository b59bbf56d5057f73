#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Null, PassesPackets) {
  TestRouter r("Idle -> n :: Null -> Null1 -> Null8 -> PushNull -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("n", "abc");
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
}

TEST(Null, PushAndPullNullFixTheKindOfPath) {
  EXPECT_TRUE(TestRouter("Idle -> Null -> PullNull -> Null -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> PullNull -> Null -> PushNull -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
