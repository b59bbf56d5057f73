#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(DelayUnqueue, CountsFromTheTimestamp) {
  TestRouter r("i :: Idle -> q :: Queue -> DelayUnqueue(0.1) -> c :: Capture; Script(wait 0.05, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("x", 1);
  p->set_timestamp(clock::now() - Timestamp::from_ms(80));
  const Timestamp due = p->timestamp() + Timestamp::from_ms(100);
  r.push("q", p);
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->timestamp(), due);
}

TEST(DelayUnqueue, TimestampsBelowOneSecondCountAsNone) {
  for (const int64_t ns : {int64_t{0}, int64_t{120000000}}) {
    TestRouter r("i :: Idle -> q :: Queue -> DelayUnqueue(0.1) -> c :: Capture; Script(wait 0.05, stop);");
    ASSERT_TRUE(r.ok()) << r.errors();
    Packet* p = Packet::make("x", 1);
    p->set_timestamp(Timestamp::from_ns(ns));
    r.push("q", p);
    r.run();
    EXPECT_TRUE(capture(r, "c").seen().empty());
  }
}

}  // namespace
}  // namespace headrace::testing
