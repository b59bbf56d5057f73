#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kPacket = "45000014 00070000 c801efdf 01000001 02000002";

TEST(FixIPSrc, ReplacesTheSourceOnDemandOnly) {
  TestRouter r("Idle -> f :: FixIPSrc(18.26.4.24) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const int wanted : {0, 1}) {
    const std::string bytes = from_hex(kPacket);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_network_header(0, 20);
    p->set_anno_u8(anno_offset::kFixIpSrc, static_cast<uint8_t>(wanted));
    r.push("f", p);
  }
  EXPECT_EQ(captured(r, "c"), plain_hex({kPacket, "45000014 00070000 c801daae 121a0418 02000002"}));
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u8(anno_offset::kFixIpSrc), 0);
}

TEST(FixIPSrc, PacketWithoutHeaderPasses) {
  TestRouter r("Idle -> f :: FixIPSrc(18.26.4.24) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("abc", 3);
  p->set_anno_u8(anno_offset::kFixIpSrc, 1);
  r.push("f", p);
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
}

}  // namespace
}  // namespace headrace::testing
