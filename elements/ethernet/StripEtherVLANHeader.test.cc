#include "support/vlan_test.hh"

namespace headrace::testing {
namespace {

TEST(StripEtherVLANHeader, RemovesEitherHeader) {
  TestRouter r("Idle -> s :: StripEtherVLANHeader(4) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", from_hex("020202020202 010101010101 8100 6005 0800 aabb"));
  r.push("s", from_hex(kPlainFrame));
  EXPECT_EQ(captured(r, "c"), plain_hex({"aabb", "aabb"}));
  EXPECT_EQ(tci_of(r, "c", 0), 0x6005);
  EXPECT_EQ(tci_of(r, "c", 1), 4);
}

TEST(StripEtherVLANHeader, WithoutNativeVlanUntaggedPacketsLeaveByOutput1) {
  TestRouter r("Idle -> s :: StripEtherVlanHeader(-1) -> c :: Capture; s[1] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", from_hex(kPlainFrame));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(captured(r, "d"), plain_hex({kPlainFrame}));
}

TEST(StripEtherVLANHeader, CountsDropsByReason) {
  TestRouter r("Idle -> s :: StripEtherVLANHeader(-1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", from_hex(kPlainFrame));
  r.push("s", from_hex("020202020202 010101010101 8100 60"));
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tno Ethernet header\n1\tno VLAN tag\n");
}

TEST(StripEtherVLANHeader, Errors) {
  TestRouter r("Idle -> StripEtherVLANHeader(4096) -> Discard;");
  EXPECT_NE(r.errors().find("NATIVE_VLAN: out of range, bound 4095"), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
