#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(BlockThread, TakesATime) {
  TestRouter r("b :: BlockThread; Idle -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("b.block", "10ms")) << r.errors();
  EXPECT_FALSE(r.write("b.block", "soon"));
  EXPECT_NE(r.errors().find("expected a time"), std::string::npos) << r.errors();
}

TEST(BlockThread, Errors) {
  TestRouter r("BlockThread(1); Idle -> Discard;");
  EXPECT_NE(r.errors().find("too many arguments"), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
