#include "support/test_router.hh"

namespace headrace::testing {
namespace {

TEST(ClickyInfo, IgnoresItsArguments) {
  TestRouter r("ClickyInfo(\"c { color: red; }\", FULL anything, 1); Idle -> Discard; ClickyInfo;");
  EXPECT_TRUE(r.ok()) << r.errors();
}

TEST(ClickyInfo, HasNoPorts) { EXPECT_FALSE(TestRouter("Idle -> ClickyInfo(x);").ok()); }

}  // namespace
}  // namespace headrace::testing
