#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(CheckLength, SplitsByLength) {
  TestRouter r("Idle -> l :: CheckLength(3) -> c :: Capture; l[1] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("l", "abc");
  r.push("l", "abcd");
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
  EXPECT_EQ(capture(r, "d").bytes(0), "abcd");
  EXPECT_EQ(r.read("l.length"), "3");
  EXPECT_TRUE(r.write("l.length", "4"));
  r.push("l", "abcd");
  EXPECT_EQ(capture(r, "c").seen().size(), 2u);
}

TEST(CheckLength, CountsDrops) {
  TestRouter r("Idle -> l :: CheckLength(3) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("l", "abcd");
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("l.drop_reasons"), "1\tlonger than LENGTH\n");
}

TEST(CheckLength, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "LENGTH: required argument missing"), std::pair("-1", "LENGTH: "), std::pair("x", "LENGTH: ")}) {
    TestRouter r("Idle -> CheckLength(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
