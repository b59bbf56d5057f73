#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

TEST(NumberPacket, WritesIncreasingNumbers) {
  TestRouter r("Idle -> n :: NumberPacket(2) -> c :: Capture; Idle -> m :: NumberPacket(0, NET_ORDER true) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 3; ++i) r.push("n", std::string(12, '\xff'));
  EXPECT_EQ(to_hex(capture(r, "c").bytes(0)), "ffff0000000000000000ffff");
  EXPECT_EQ(to_hex(capture(r, "c").bytes(2)), "ffff0200000000000000ffff");
  EXPECT_EQ(r.read("n.count"), "3");
  for (int i = 0; i < 2; ++i) r.push("m", std::string(8, '\xff'));
  EXPECT_EQ(to_hex(capture(r, "c").bytes(4)), "0000000000000001");
}

TEST(NumberPacket, ExtendsShortPackets) {
  TestRouter r("Idle -> MarkIPHeader -> n :: NumberPacket(42) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make(udp_packet({"1.0.0.1", 1, "2.0.0.2", 2}, "abc").data(), 31);
  p->set_network_header(0, 20);
  r.push("n", p);
  const std::string bytes = capture(r, "c").bytes(0);
  EXPECT_EQ(bytes.size(), 50u);
  EXPECT_EQ(reinterpret_cast<const Ip4Header*>(bytes.data())->total_length, 50);
}

TEST(NumberPacket, NumbersPulledPacketsAndDropsThoseWithoutRoom) {
  TestRouter r(
      "InfiniteSource(LIMIT 5) -> Queue -> n :: NumberPacket -> Unqueue(5) -> c :: Capture; TimedSource(1, LIMIT "
      "0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 5u);
  EXPECT_EQ(to_hex(capture(r, "c").bytes(4).substr(40, 8)), "0400000000000000");
  TestRouter none("Idle -> n :: NumberPacket(60000) -> c :: Capture;");
  none.push("n", "x");
  EXPECT_EQ(none.read("n.drop_reasons"), "1\tno room at the end\n");
}

TEST(NumberPacket, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> NumberPacket(-1) -> Discard;").errors().find("OFFSET: out of range, bound 0"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> NumberPacket(0, NET_ORDER 3) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
