#include "support/element_test.hh"

namespace headrace::testing {
namespace {

Packet* with_rate(int32_t rate) {
  Packet* p = Packet::make("x", 1);
  p->set_anno_u32(20, static_cast<uint32_t>(rate));
  return p;
}

TEST(Block, SeparatesRatesAboveTheThreshold) {
  TestRouter r("Idle -> b :: Block(500) -> low :: Capture; b[1] -> high :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const int32_t rate : {-1, 0, 500, 501, 2000000000}) r.push("b", with_rate(rate));
  EXPECT_EQ(capture(r, "low").seen().size(), 3u);
  EXPECT_EQ(capture(r, "high").seen().size(), 2u);
}

TEST(Block, ThresholdZeroSeparatesNothingAndIsAHandler) {
  TestRouter r("Idle -> b :: Block(0) -> low :: Capture; b[1] -> high :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("b", with_rate(1000));
  EXPECT_EQ(capture(r, "low").seen().size(), 1u);
  ASSERT_TRUE(r.write("b.thresh", "999"));
  EXPECT_EQ(r.read("b.thresh"), "999");
  r.push("b", with_rate(1000));
  EXPECT_EQ(capture(r, "high").seen().size(), 1u);
  EXPECT_FALSE(r.write("b.thresh", "high"));
}

TEST(Block, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> b :: Block -> Discard; b[1] -> Discard;").errors().find("THRESH: required argument"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> b :: Block(x) -> Discard; b[1] -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> Block(1) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
