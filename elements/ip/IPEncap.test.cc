#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(IPEncap, PutsAHeaderInFront) {
  TestRouter r("Idle -> e :: IPEncap(ipip, 18.26.4.24, 140.247.60.147) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", "hello");
  r.push("e", "hello");
  EXPECT_EQ(captured(r, "c")[0], plain_hex("45000019 00000000 fa04e124 121a0418 8cf73c93 68656c6c6f"));
  EXPECT_NE(captured(r, "c")[1].substr(8, 4), "0000");  // identifications differ
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "140.247.60.147");
  EXPECT_EQ(p.network_header_offset(), 0);
  EXPECT_EQ(p.transport_header_offset(), 20);
}

TEST(IPEncap, FieldsAndTheDestinationAnnotation) {
  TestRouter r(
      "Idle -> s :: SetIPAddress(2.0.0.2) -> e :: IPEncap(4, 1.0.0.1, DST_ANNO, TTL 9, DSCP 10, ECT 2, DF true)"
      " -> CheckIPHeader -> c :: Capture; Idle -> f :: IPEncap(udp, 1.0.0.1, 2.0.0.2, TOS 0x1c) -> d :: Capture;"
      "Idle -> g :: IPEncap(udp, 1.0.0.1, 2.0.0.2, CE true) -> h :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "x");
  r.push("f", "x");
  r.push("g", "x");
  ASSERT_EQ(captured(r, "c").size(), 1u);  // so the checksum is right
  EXPECT_EQ(captured(r, "c")[0].substr(0, 20), "452a0015000040000904");
  EXPECT_EQ(captured(r, "c")[0].substr(24), "010000010200000278");
  EXPECT_EQ(captured(r, "d")[0].substr(0, 20), "451c001500000000fa11");
  EXPECT_EQ(captured(r, "h")[0].substr(0, 4), "4503");
  EXPECT_EQ(r.read("e.dst"), "DST_ANNO");
  EXPECT_TRUE(r.write("e.dst", "9.9.9.9"));
  EXPECT_EQ(r.read("e.dst"), "9.9.9.9");
  EXPECT_EQ(r.read("e.src"), "1.0.0.1");
}

TEST(IPEncap, Errors) {
  for (const auto& [arguments, error] : {std::pair{"4, 1.0.0.1, x", "DST: expected an IP address or DST_ANNO"},
                                         {"4, 1.0.0.1, 2.0.0.2, TOS 1, DSCP 1", "cannot set both TOS and DSCP"},
                                         {"4, 1.0.0.1, 2.0.0.2, TOS 1, CE true", "cannot set both TOS and ECN bits"},
                                         {"4, 1.0.0.1, 2.0.0.2, ECT 1, CE true", "can set at most one ECN option"},
                                         {"4, 1.0.0.1, 2.0.0.2, ECT 3", "bad ECT value '3'"},
                                         {"4, 1.0.0.1, 2.0.0.2, DSCP 64", "DSCP: out of range"},
                                         {"400, 1.0.0.1, 2.0.0.2", "PROTO: "}}) {
    TestRouter r("Idle -> IPEncap(" + std::string(arguments) + ") -> Idle;");
    EXPECT_NE(r.errors().find(error), std::string::npos) << r.errors();
  }
}

TEST(IPEncap, TooLongPacketsAreDropped) {
  TestRouter r("Idle -> e :: IPEncap(4, 1.0.0.1, 2.0.0.2) -> c :: Capture;");
  r.push("e", std::string(65535 - 19, 'x'));
  r.push("e", std::string(65535 - 20, 'x'));
  EXPECT_EQ(r.read("e.drop_reasons"), "1\ttoo long for IP\n");
  ASSERT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(captured(r, "c")[0].substr(0, 8), "4500ffff");
}

}  // namespace
}  // namespace headrace::testing
