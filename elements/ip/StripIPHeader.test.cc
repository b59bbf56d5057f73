#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kPacket = "aabb 45000016 00000000 40110000 01000001 02000002 7878";

TEST(StripIPHeader, AndBack) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader(2) -> s :: StripIPHeader -> c :: Capture;"
      "Idle -> n :: MarkIPHeader(2) -> StripIPHeader -> UnstripIPHeader -> UnstripIPHeader -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kPacket));
  r.push("n", from_hex(kPacket));
  EXPECT_EQ(captured(r, "c"), plain_hex({"7878", kPacket.substr(5)}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->network_header_offset(), -20);
}

TEST(StripIPHeader, HeaderLongerThanThePacket) {
  TestRouter r("Idle -> m :: MarkIPHeader(2) -> s :: StripIPHeader -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("aabb 4f000016"));
  EXPECT_EQ(capture(r, "c").bytes(0), "");
}

TEST(StripToNetworkHeader, ForwardsAndBackwards) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader(2) -> s :: StripToNetworkHeader -> c :: Capture;"
      "Idle -> n :: MarkIPHeader(2) -> StripIPHeader -> s;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kPacket));
  r.push("n", from_hex(kPacket));
  r.push("s", from_hex(kPacket));
  EXPECT_EQ(captured(r, "c"), plain_hex({kPacket.substr(5), kPacket.substr(5)}));
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tdropped\n");
}

TEST(MarkMACHeader, MarksMacAndNetworkHeader) {
  TestRouter r("Idle -> m :: MarkMACHeader(2, 14) -> c :: Capture; Idle -> n :: MarkMACHeader -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", std::string(16, 'x'));
  r.push("m", std::string(15, 'x'));
  r.push("n", "");
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 2);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->network_header_offset(), 16);
  EXPECT_FALSE(capture(r, "c").seen()[1].packet->has_network_header());
  EXPECT_EQ(r.read("m.drop_reasons"), "1\tshorter than OFFSET\n");
}

TEST(SetIPChecksum, WithAndWithoutMark) {
  TestRouter r("Idle -> m :: MarkIPHeader(2) -> s :: SetIPChecksum -> c :: Capture; Idle -> s;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string with_options = "48000030 12340000 4011ffff 121a042c 121a0709 070b0400 00000000 00000001";
  r.push("m", from_hex("ffff 45000024 12340000 40110000 121a042c 121a0709"));
  r.push("s", from_hex("45000024 12340000 40111111 121a042c 121a0709"));
  r.push("s", from_hex(with_options));
  r.push("s", from_hex("44000024 12340000 40111111 121a042c 121a0709"));
  r.push("s", from_hex(with_options.substr(0, with_options.size() - 2)));
  r.push("s", "");
  EXPECT_EQ(captured(r, "c"), plain_hex({"ffff 45000024 12340000 4011392d 121a042c 121a0709",
                                         "45000024 12340000 4011392d 121a042c 121a0709",
                                         "48000030 12340000 40112b15 121a042c 121a0709 070b0400 00000000 00000001"}));
  EXPECT_EQ(r.read("s.drops"), "3");
}

}  // namespace
}  // namespace headrace::testing
