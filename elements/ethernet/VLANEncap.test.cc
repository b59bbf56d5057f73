#include "support/vlan_test.hh"

namespace headrace::testing {
namespace {

TEST(VLANEncap, InsertsTheTagBehindTheAddresses) {
  TestRouter r("Idle -> e :: VLANEncap(5, 3) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex(kPlainFrame));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020202 010101010101 8100 6005 0800 aabb"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
}

TEST(VLANEncap, KeywordsSayTheSame) {
  TestRouter r("Idle -> e :: VLANEncap(VLAN_ID 0x234, VLAN_PCP 1, ETHERTYPE 0x88a8) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex(kPlainFrame));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020202 010101010101 88a8 2234 0800 aabb"}));
}

TEST(VLANEncap, TakesTheAnnotation) {
  TestRouter r("Idle -> e :: VLANEncap(ANNO, NATIVE_VLAN 7) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", with_tci(kPlainFrame, 0xa064));
  r.push("e", with_tci(kPlainFrame, 0xa007));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020202 010101010101 8100 a064 0800 aabb", kPlainFrame}));
  EXPECT_EQ(r.read("e.vlan_tci"), "ANNO");
  EXPECT_EQ(r.read("e.native_vlan"), "7");
}

TEST(VLANEncap, VlanZeroIsNativeUnlessThereIsNone) {
  TestRouter r("Idle -> d :: VLANEncap -> c :: Capture; Idle -> e :: VLANEncap(0x2000, NATIVE_VLAN -1) -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("d", from_hex(kPlainFrame));
  r.push("e", from_hex(kPlainFrame));
  EXPECT_EQ(captured(r, "c"), plain_hex({kPlainFrame, "020202020202 010101010101 8100 2000 0800 aabb"}));
}

TEST(VLANEncap, DropsWhatIsNoFrame) {
  TestRouter r("Idle -> e :: VLANEncap(5) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex("020202020202 010101010101 08"));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("e.drop_reasons"), "1\tno Ethernet header\n");
}

TEST(VLANEncap, HandlersReadAndWriteTheTag) {
  TestRouter r("Idle -> e :: VLANEncap(0x6005) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.vlan_tci"), "24581");
  EXPECT_EQ(r.read("e.vlan_id"), "5");
  EXPECT_EQ(r.read("e.vlan_pcp"), "3");
  EXPECT_EQ(r.read("e.native_vlan"), "0");
  EXPECT_EQ(r.read("e.ethertype"), "33024");
  EXPECT_TRUE(r.write("e.vlan_tci", "9")) << r.errors();
  EXPECT_TRUE(r.write("e.vlan_pcp", "1")) << r.errors();
  EXPECT_TRUE(r.write("e.ethertype", "0x9100")) << r.errors();
  EXPECT_TRUE(r.write("e.native_vlan", "8")) << r.errors();
  r.push("e", from_hex(kPlainFrame));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020202 010101010101 9100 2009 0800 aabb"}));
  EXPECT_FALSE(r.write("e.vlan_id", "7"));
  EXPECT_EQ(r.read("e.vlan_id"), "9");
}

TEST(VLANEncap, Errors) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"0x10000", "VLAN_TCI: out of range"},
      {"any", "VLAN_TCI: expected an integer"},
      {"1, 8", "VLAN_PCP: out of range, bound 7"},
      {"VLAN_ID 4096", "VLAN_ID: out of range, bound 4095"},
      {"VLAN_ID 1, NATIVE_VLAN -2", "NATIVE_VLAN: out of range, bound -1"},
      {"1, ETHERTYPE 65536", "ETHERTYPE: out of range"},
      {"1, VLAN_ID 1", "VLAN_TCI and VLAN_ID exclude each other"},
      {"1, 2, 3", "too many arguments"}};
  for (const auto& [arguments, message] : kErrors) {
    TestRouter r("Idle -> VLANEncap(" + std::string(arguments) + ") -> Discard;");
    EXPECT_FALSE(r.ok()) << arguments;
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
