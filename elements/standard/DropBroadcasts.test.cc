#include "support/element_test.hh"

namespace headrace::testing {
namespace {

void push_of_type(TestRouter& r, PacketType type) {
  Packet* p = Packet::make("x", 1);
  p->set_packet_type(type);
  r.push("d", p);
}

TEST(DropBroadcasts, LetsOnlyUnicastThrough) {
  TestRouter r("Idle -> d :: DropBroadcasts -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int type = 0; type <= 6; ++type) push_of_type(r, static_cast<PacketType>(type));
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0].packet->packet_type(), PacketType::kHost);
  EXPECT_EQ(seen[1].packet->packet_type(), PacketType::kOtherHost);
  EXPECT_EQ(r.read("d.drops"), "2");
  EXPECT_EQ(r.read("d.drop_reasons"), "2\tlink broadcast or multicast\n");
}

TEST(DropBroadcasts, SecondOutputGetsTheRest) {
  TestRouter r("Idle -> d :: DropBroadcasts -> c :: Capture; d[1] -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_of_type(r, PacketType::kMulticast);
  EXPECT_EQ(capture(r, "c").seen().at(0).port, 1);
  EXPECT_EQ(r.read("d.drops"), "1");
  EXPECT_EQ(r.read("d.drop_reasons"), "");
}

}  // namespace
}  // namespace headrace::testing
