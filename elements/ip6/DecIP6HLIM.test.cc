#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string packet(std::string_view hop_limit) {
  return "6000000000003b" + std::string(hop_limit) + "20010db8000000000000000000000001" +
         "20010db8000000000000000000000002";
}

TEST(DecIP6HLIM, DecrementsAndExpires) {
  TestRouter r("Idle -> m :: MarkIP6Header -> t :: DecIP6HLIM -> live :: Capture; t[1] -> dead :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* limit : {"ff", "02", "01", "00"}) r.push("m", from_hex(packet(limit)));
  EXPECT_EQ(captured(r, "live"), plain_hex({packet("fe"), packet("01")}));
  EXPECT_EQ(captured(r, "dead"), plain_hex({packet("01"), packet("00")}));
  EXPECT_EQ(r.read("t.drops"), "2");
}

TEST(DecIP6HLIM, WithoutSecondOutputDropsAreCountedByReason) {
  TestRouter r("Idle -> m :: MarkIP6Header -> t :: DecIP6HLIM -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(packet("01")));
  EXPECT_EQ(r.read("t.drop_reasons"), "1\thop limit expired\n");
}

TEST(DecIP6HLIM, PacketWithoutNetworkHeaderIsDropped) {
  TestRouter r("Idle -> t :: DecIP6HLIM -> live :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", from_hex(packet("40")));
  EXPECT_EQ(capture(r, "live").seen().size(), 0u);
}

}  // namespace
}  // namespace headrace::testing
