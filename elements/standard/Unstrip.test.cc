#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Unstrip, MakesRoomWithinTheBuffer) {
  TestRouter r("Idle -> u :: Unstrip(300) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("u", "abc");
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c").bytes(0).size(), 303u);
  EXPECT_EQ(capture(r, "c").bytes(0).substr(300), "abc");
}

TEST(Unstrip, WithoutRoomThePacketIsCounted) {
  TestRouter r("Idle -> u :: Unstrip(100000) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("u", "abc");
  EXPECT_EQ(capture(r, "c").seen().size(), 0u);
  EXPECT_EQ(r.read("u.drop_reasons"), "1\tno room in front\n");
}

}  // namespace
}  // namespace headrace::testing
