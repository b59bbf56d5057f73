#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(DelayShaper, TimestampsBelowOneSecondCountAsNone) {
  TestRouter r("Idle -> q :: Queue -> DelayShaper(0.1) -> Unqueue -> c :: Capture; Script(wait 0.05, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("x", 1);
  p->set_timestamp(Timestamp::from_ms(120));
  r.push("q", p);
  r.run();
  EXPECT_TRUE(capture(r, "c").seen().empty());
}

TEST(DelayShaper, CountsFromTheTimestamp) {
  TestRouter r("Idle -> q :: Queue -> DelayShaper(0.1) -> Unqueue -> c :: Capture; Script(wait 0.05, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("x", 1);
  p->set_timestamp(clock::now() - Timestamp::from_ms(80));
  r.push("q", p);
  r.run();
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
}

}  // namespace
}  // namespace headrace::testing
