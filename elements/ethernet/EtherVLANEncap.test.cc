#include "support/vlan_test.hh"

namespace headrace::testing {
namespace {

TEST(EtherVLANEncap, PutsTheWholeHeaderInFront) {
  TestRouter r("Idle -> e :: EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, 5, 3) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex("aabb"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020202 010101010101 8100 6005 0800 aabb"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
}

TEST(EtherVLANEncap, NativePacketsGetAPlainHeader) {
  TestRouter r("Idle -> e :: EtherVlanEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, ANNO, NATIVE_VLAN 5) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", with_tci("aabb", 0x6005));
  r.push("e", with_tci("aabb", 0x6004));
  EXPECT_EQ(captured(r, "c"), plain_hex({kPlainFrame, "020202020202 010101010101 8100 6004 0800 aabb"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
}

TEST(EtherVLANEncap, HandlersReadAndWriteTheArguments) {
  TestRouter r("Idle -> e :: EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, VLAN_ID 5) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.ethertype"), "2048");
  EXPECT_EQ(r.read("e.src"), "01-01-01-01-01-01");
  EXPECT_EQ(r.read("e.dst"), "02-02-02-02-02-02");
  EXPECT_EQ(r.read("e.vlan_id"), "5");
  EXPECT_TRUE(r.write("e.src", "3:3:3:3:3:3")) << r.errors();
  EXPECT_TRUE(r.write("e.dst", "4:4:4:4:4:4")) << r.errors();
  EXPECT_TRUE(r.write("e.ethertype", "0x86dd")) << r.errors();
  EXPECT_TRUE(r.write("e.vlan_id", "6")) << r.errors();
  EXPECT_TRUE(r.write("e.vlan_pcp", "7")) << r.errors();
  r.push("e", "");
  EXPECT_EQ(captured(r, "c"), plain_hex({"040404040404 030303030303 8100 e006 86dd"}));
}

TEST(EtherVLANEncap, Errors) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"", "ETHERTYPE: required argument missing"},
      {"0x800", "SRC: required argument missing"},
      {"0x800, 1:1:1:1:1:1", "DST: required argument missing"},
      {"0x800, x, 2:2:2:2:2:2", "SRC: "},
      {"65536, 1:1:1:1:1:1, 2:2:2:2:2:2", "ETHERTYPE: out of range"},
      {"0x800, 1:1:1:1:1:1, 2:2:2:2:2:2, NONE", "VLAN_TCI: "},
      {"0x800, 1:1:1:1:1:1, 2:2:2:2:2:2, 1, VLAN_ID 2", "VLAN_TCI and VLAN_ID exclude each other"}};
  for (const auto& [arguments, message] : kErrors) {
    TestRouter r("Idle -> EtherVLANEncap(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
