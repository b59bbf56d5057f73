#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

std::string last_of(TestRouter& r, const char* name) {
  const Capture& c = capture(r, name);
  return c.seen().empty() ? "none" : c.bytes(c.seen().size() - 1);
}

TEST(UDPRewriter, TreatsTcpAndUdpAlike) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> rw :: UDPRewriter(pattern 1.0.0.1 7 - - 0 1, REPLY_ANNO PAINT) -> out :: Capture;"
      "rw[1] -> in :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "abc"));
  EXPECT_EQ(ends_of(last_of(r, "out")), "1.0.0.1 7 > 20.0.0.1 53");
  r.push("m", tcp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "abc"));
  EXPECT_EQ(ends_of(last_of(r, "out")), "1.0.0.1 7 > 20.0.0.1 53");
  EXPECT_TRUE(checksums_are_right(last_of(r, "out")));
  r.push("m", tcp_packet({"20.0.0.1", 53, "1.0.0.1", 7}, "abc"));
  EXPECT_EQ(ends_of(last_of(r, "in")), "20.0.0.1 53 > 10.0.0.9 2000");
  EXPECT_TRUE(checksums_are_right(last_of(r, "in")));
  EXPECT_EQ(r.read("rw.table_size"), "1");
}

TEST(UDPRewriter, StreamsLiveLonger) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> rw :: UDPRewriter(pattern 1.0.0.1 7 - - 0 0, TIMEOUT 10, STREAMING_TIMEOUT 2m)"
      " -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto expiry = [&] {
    const std::string table = r.read("rw.table");
    return table.substr(table.find(" exp") + 4, table.find('\n') - table.find(" exp") - 4);
  };
  for (int i = 0; i < 5; ++i) r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "abc"));
  EXPECT_EQ(expiry(), "10");
  r.push("m", udp_packet({"20.0.0.1", 53, "1.0.0.1", 7}, "abc"));
  EXPECT_EQ(expiry(), "120");
}

TEST(UDPRewriter, ThePaintOfTheFirstPacketComesBack) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> Paint(3) -> rw :: UDPRewriter(pattern 1.0.0.1 7 - - 0 1, drop, REPLY_ANNO PAINT,"
      " DST_ANNO false) -> out :: Capture; Idle -> n :: MarkIPHeader -> Paint(9) -> [1] rw; rw[1] -> in :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "abc"));
  r.push("n", udp_packet({"20.0.0.1", 53, "1.0.0.1", 7}, "abc"));
  const Packet& p = *capture(r, "in").seen()[0].packet;
  EXPECT_EQ(p.anno_u8(anno_offset::kPaint), 3);
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp), IpAddress());
}

}  // namespace
}  // namespace headrace::testing
