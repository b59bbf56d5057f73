#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Paint, SetsTheAnnotation) {
  TestRouter r("Idle -> p :: Paint(7) -> c :: Capture; Idle -> q :: Paint(0x20, 3) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", "x");
  r.push("q", "y");
  EXPECT_EQ(capture(r, "c").seen()[0].packet->anno_u8(anno_offset::kPaint), 7);
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u8(anno_offset::kPaint), 0);
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u8(3), 0x20);
}

TEST(Paint, ColorIsAHandler) {
  TestRouter r("Idle -> p :: Paint(0x10) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("p.color"), "16");
  ASSERT_TRUE(r.write("p.color", "9"));
  r.push("p", "x");
  EXPECT_EQ(capture(r, "c").seen()[0].packet->anno_u8(anno_offset::kPaint), 9);
  EXPECT_FALSE(r.write("p.color", "256"));
  EXPECT_EQ(r.read("p.color"), "9");
}

TEST(Paint, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("Idle -> Paint -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> Paint(256) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> Paint(1, 48) -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
