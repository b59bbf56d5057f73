#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(EtherEncap, PutsTheHeaderInFront) {
  TestRouter r("Idle -> e :: EtherEncap(0x0800, 1:1:1:1:1:2, 2:2:2:2:2:3) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex("4500"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"020202020203 010101010102 0800 4500"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
}

TEST(EtherEncap, HandlersReadAndWriteTheArguments) {
  TestRouter r("Idle -> e :: EtherEncap(0x0800, 1:1:1:1:1:1, DST 2:2:2:2:2:2) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.ethertype"), "2048");
  EXPECT_EQ(r.read("e.src"), "01-01-01-01-01-01");
  EXPECT_EQ(r.read("e.dst"), "02-02-02-02-02-02");
  EXPECT_TRUE(r.write("e.ethertype", "0x0801"));
  EXPECT_TRUE(r.write("e.src", "3:3:3:3:3:3"));
  EXPECT_TRUE(r.write("e.dst", "4:4:4:4:4:4")) << r.errors();
  EXPECT_EQ(r.read("e.etht"), "2049");
  EXPECT_EQ(r.read("e.config"), "0x0801, 3:3:3:3:3:3, DST 4:4:4:4:4:4");
  r.push("e", "");
  EXPECT_EQ(captured(r, "c"), plain_hex({"040404040404 030303030303 0801"}));
}

}  // namespace
}  // namespace headrace::testing
