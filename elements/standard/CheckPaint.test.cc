#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(CheckPaint, PassesOneColor) {
  TestRouter r(
      "Idle -> a :: Paint(1) -> k :: CheckPaint(1) -> c :: Capture; Idle -> b :: Paint(2) -> k; k[1] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", "one");
  r.push("b", "two");
  EXPECT_EQ(capture(r, "c").bytes(0), "one");
  EXPECT_EQ(capture(r, "d").bytes(0), "two");
  EXPECT_EQ(r.read("k.color"), "1");
  EXPECT_TRUE(r.write("k.color", "2"));
  r.push("b", "two");
  EXPECT_EQ(capture(r, "c").bytes(1), "two");
}

TEST(CheckPaint, LooksAtTheNamedAnnotationAndCountsDrops) {
  TestRouter r("Idle -> a :: Paint(5, 3) -> k :: CheckPaint(5, 3) -> c :: Capture; Idle -> b :: Paint(5) -> k;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", "one");
  r.push("b", "two");
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(r.read("k.drop_reasons"), "1\tother color\n");
}

TEST(CheckPaint, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "COLOR: required argument missing"), std::pair("256", "COLOR: out of range"),
        std::pair("1, AGGREGATE", "ANNO: ")}) {
    TestRouter r("Idle -> CheckPaint(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
