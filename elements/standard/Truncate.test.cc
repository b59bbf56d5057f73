#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Truncate, ShortensAndRemembers) {
  TestRouter r(
      "Idle -> t :: Truncate(4) -> Truncate(3) -> c :: Capture; Idle -> u :: Truncate(2, EXTRA_LENGTH false) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", "abcdefgh");
  r.push("t", "ab");
  r.push("u", "abc");
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
  EXPECT_EQ(capture(r, "c").bytes(1), "ab");
  EXPECT_EQ(capture(r, "c").bytes(2), "ab");
  EXPECT_EQ(capture(r, "c").seen()[0].packet->anno_u32(anno_offset::kExtraLength), 5u);
  EXPECT_EQ(capture(r, "c").seen()[2].packet->anno_u32(anno_offset::kExtraLength), 0u);
  EXPECT_EQ(r.read("t.nbytes"), "4");
  EXPECT_TRUE(r.write("t.nbytes", "1"));
  r.push("t", "abc");
  EXPECT_EQ(capture(r, "c").bytes(3), "a");
}

TEST(SetPacketType, Names) {
  TestRouter r("Idle -> s :: SetPacketType(multicast) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "x");
  EXPECT_EQ(capture(r, "c").seen()[0].packet->packet_type(), PacketType::kMulticast);
  TestRouter bad("Idle -> s :: SetPacketType(nobody) -> Idle;");
  EXPECT_NE(bad.errors().find("unrecognized packet type 'nobody'"), std::string::npos);
}

TEST(SetTimestamp, NowOrAtATime) {
  TestRouter r(
      "Idle -> s :: SetTimestamp -> c :: Capture; Idle -> t :: SetTimestamp(5.5) -> c; Idle -> u :: SetTimestamp(7, "
      "FIRST true) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* element : {"s", "t", "u"}) r.push(element, "x");
  const auto& seen = capture(r, "c").seen();
  EXPECT_EQ(seen[0].packet->timestamp().sec(), 1000000000);
  EXPECT_EQ(seen[1].packet->timestamp(), Timestamp::from_ms(5500));
  EXPECT_EQ(seen[2].packet->timestamp(), Timestamp());
  EXPECT_EQ(seen[2].packet->anno_u64(anno_offset::kFirstTimestamp), 7000000000u);
}

TEST(Align, ChecksItsArgumentsOnly) {
  TestRouter r("Idle -> a :: Align(4, 2) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", "abc");
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
  EXPECT_FALSE(TestRouter("Idle -> Align(3, 0) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> Align(4, 4) -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
