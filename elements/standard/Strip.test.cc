#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Strip, RemovesFromTheFront) {
  TestRouter r("Idle -> s :: Strip(3) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "abcdef");
  r.push("s", "abc");
  r.push("s", "ab");
  EXPECT_EQ(capture(r, "c").bytes(0), "def");
  EXPECT_EQ(capture(r, "c").bytes(1), "");
  EXPECT_EQ(capture(r, "c").bytes(2), "");
}

TEST(Strip, UnstripBringsTheBytesBack) {
  TestRouter r("Idle -> Strip(3) -> s :: Null; Idle -> t :: Strip(3) -> Unstrip(2) -> c :: Capture; s -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", "abcdef");
  EXPECT_EQ(capture(r, "c").bytes(0), "bcdef");
}

TEST(Strip, HeadersStayWhereTheyWere) {
  TestRouter r("Idle -> m :: MarkIPHeader(4) -> Strip(4) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("00000000 45000014 00000000 4011 0000 01000001 02000002"));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->network_header_offset(), 0);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->transport_header_offset(), 20);
}

}  // namespace
}  // namespace headrace::testing
