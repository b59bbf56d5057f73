#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(MarkIPHeader, MarksNetworkAndTransportHeader) {
  TestRouter r("Idle -> m :: MarkIPHeader(2) -> c :: Capture; Idle -> n :: MarkIPHeader(OFFSET 0) -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("ffff 46000018 00000000 40110000 01000001 02000002 01010101"));
  r.push("n", from_hex("45"));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.network_header_offset(), 2);
  EXPECT_EQ(p.network_header_length(), 24);
  EXPECT_EQ(capture(r, "c").seen()[1].packet->network_header_length(), 20);
}

TEST(MarkIPHeader, PacketThatEndsBeforeIsDropped) {
  TestRouter r("Idle -> m :: MarkIPHeader(100000) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", "abc");
  EXPECT_EQ(r.read("m.drop_reasons"), "1\tno byte at OFFSET\n");
}

}  // namespace
}  // namespace headrace::testing
