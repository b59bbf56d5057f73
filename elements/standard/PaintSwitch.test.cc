#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(PaintSwitch, OneOutputOrAll) {
  TestRouter r("Idle -> s :: PaintSwitch -> c :: Capture; s[1] -> [1]c; s[2] -> [2]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const int color : {1, 2, 0, 3, 255}) {
    Packet* p = Packet::make("x", 1);
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(color));
    r.push("s", p);
  }
  std::vector<int> ports;
  for (const auto& seen : capture(r, "c").seen()) ports.push_back(seen.port);
  EXPECT_EQ(ports, (std::vector<int>{1, 2, 0, 0, 1, 2}));
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tdropped\n");
}

}  // namespace
}  // namespace headrace::testing
