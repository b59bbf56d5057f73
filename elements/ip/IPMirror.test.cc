#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

uint32_t destination_of(TestRouter& r, size_t i = 0) {
  return capture(r, "c").seen().at(i).packet->anno_u32(anno_offset::kDstIp);
}

TEST(IPMirror, ExchangesAddressesAndPorts) {
  TestRouter r("Idle -> m :: MarkIPHeader -> IPMirror -> CheckIPHeader -> CheckUDPHeader -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001c 00000000 401177cf 01000001 02000002 0001 0002 0008 fcd8"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"4500001c 00000000 401177cf 02000002 01000001 0002 0001 0008 fcd8"}));
  EXPECT_EQ(IpAddress::from_network_order(destination_of(r)).unparse(), "1.0.0.1");
}

TEST(IPMirror, ExchangesTheNumbersOfTcp) {
  TestRouter r("Idle -> m :: MarkIPHeader -> IPMirror(false) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000028 00000000 40060000 01000001 02000002"
                       "00010002 11111111 22222222 50100000 00000000"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"45000028 00000000 40060000 02000002 01000001"
                                         "00020001 22222222 11111111 50100000 00000000"}));
  EXPECT_EQ(destination_of(r), 0u);
}

TEST(IPMirror, OnlyAddressesOfOtherPackets) {
  TestRouter r("Idle -> m :: MarkIPHeader -> IPMirror -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001c 00000000 40010000 01000001 02000002 0001 0002 0008 0000"));  // ICMP
  r.push("m", from_hex("4500001c 00000001 40110000 01000001 02000002 0001 0002 0008 0000"));  // later fragment
  r.push("m", from_hex("45000018 00000000 40110000 01000001 02000002 0001 0002"));            // cut
  EXPECT_EQ(captured(r, "c"), plain_hex({"4500001c 00000000 40010000 02000002 01000001 0001 0002 0008 0000",
                                         "4500001c 00000001 40110000 02000002 01000001 0001 0002 0008 0000",
                                         "45000018 00000000 40110000 02000002 01000001 0001 0002"}));
}

TEST(IPMirror, DropsWhatHasNoHeader) {
  TestRouter r("Idle -> m :: MarkIPHeader -> i :: IPMirror -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000018 00000000 40110000 01000001"));
  r.push("i", from_hex("45000014 00000000 40110000 01000001 02000002"));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("i.drop_reasons"), "2\tno IP header\n");
}

TEST(IPMirror, Errors) {
  TestRouter r("Idle -> IPMirror(maybe) -> Discard;");
  EXPECT_NE(r.errors().find("DST_ANNO: "), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
