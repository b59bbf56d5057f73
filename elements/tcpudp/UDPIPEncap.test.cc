#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(UDPIPEncap, HeadersAreThoseOfOthers) {
  TestRouter r("Idle -> e :: UDPIPEncap(1.0.0.1, 79, 2.0.0.2, ssh) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", "hello");
  r.push("e", "hello");
  EXPECT_EQ(captured(r, "c"), plain_hex({"45000021 00000000 fa11bdc9 01000001 02000002 004f0016000db89a 68656c6c6f",
                                         "45000021 00010000 fa11bdc8 01000001 02000002 004f0016000db89a 68656c6c6f"}));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "2.0.0.2");
  EXPECT_EQ(p.network_header_offset(), 0);
  EXPECT_EQ(p.transport_header_offset(), 20);
}

TEST(UDPIPEncap, DestinationFromTheAnnotationAndNoChecksum) {
  TestRouter r(
      "Idle -> s :: SetIPAddress(2.0.0.2) -> e :: UDPIPEncap(1.0.0.1, 79, DST_ANNO, 22, false) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "hello");
  EXPECT_EQ(captured(r, "c"), plain_hex({"45000021 00000000 fa11bdc9 01000001 02000002 004f0016000d0000 68656c6c6f"}));
}

TEST(UDPIPEncap, HandlersChangeTheArguments) {
  TestRouter r("Idle -> e :: UDPIPEncap(1.0.0.9, 1, 2.0.0.9, 2, CHECKSUM false) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.src") + " " + r.read("e.sport") + " " + r.read("e.dst") + " " + r.read("e.dport"),
            "1.0.0.9 1 2.0.0.9 2");
  EXPECT_TRUE(r.write("e.src", "1.0.0.1") && r.write("e.sport", "79") && r.write("e.dst", "2.0.0.2") &&
              r.write("e.dport", "22"))
      << r.errors();
  r.push("e", "hello");
  EXPECT_EQ(captured(r, "c"), plain_hex({"45000021 00000000 fa11bdc9 01000001 02000002 004f0016000d0000 68656c6c6f"}));
  EXPECT_FALSE(r.write("e.dst", "nonsense"));
  EXPECT_EQ(r.read("e.dst"), "2.0.0.2");
}

TEST(UDPIPEncap, TooLongPacketsAreDropped) {
  TestRouter r("Idle -> e :: UDPIPEncap(1.0.0.1, 79, 2.0.0.2, 22) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", std::string(65535 - 27, 'x'));
  r.push("e", std::string(65535 - 28, 'x'));
  EXPECT_EQ(r.read("e.drop_reasons"), "1\ttoo long for IP\n");
  EXPECT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(captured(r, "c")[0].substr(0, 8), "4500ffff");
}

}  // namespace
}  // namespace headrace::testing
