#include "support/vlan_test.hh"

namespace headrace::testing {
namespace {

TEST(VLANDecap, RemovesTheTagAndRemembersIt) {
  TestRouter r("Idle -> d :: VLANDecap -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("d", from_hex("020202020202 010101010101 8100 6005 0800 aabb"));
  r.push("d", with_tci(kPlainFrame, 9));
  EXPECT_EQ(captured(r, "c"), plain_hex({kPlainFrame, kPlainFrame}));
  EXPECT_EQ(tci_of(r, "c", 0), 0x6005);
  EXPECT_EQ(tci_of(r, "c", 1), 0);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
}

TEST(VLANDecap, ArgumentsNameAnnotationAndType) {
  TestRouter r("Idle -> d :: VLANDecap(false, ETHERTYPE 0x88a8) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("d", with_tci("020202020202 010101010101 88a8 6005 8100 0001 0800", 9));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020202 010101010101 8100 0001 0800"}));
  EXPECT_EQ(tci_of(r, "c"), 9);
}

TEST(VLANDecap, DropsWhatEndsInTheHeader) {
  TestRouter r("Idle -> d :: VLANDecap -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("d", from_hex("020202020202 010101010101 8100 6005 08"));
  r.push("d", from_hex("020202020202 01"));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("d.drop_reasons"), "2\tno Ethernet header\n");
}

TEST(VLANDecap, Errors) {
  for (const auto& [arguments, message] : {std::pair("maybe", "ANNO: "), std::pair("ETHERTYPE x", "ETHERTYPE: "),
                                           std::pair("true, 5", "too many arguments")}) {
    TestRouter r("Idle -> VLANDecap(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
