#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(ICMPIPEncap, WritesBothHeaders) {
  TestRouter r(
      "Idle -> e :: ICMPIPEncap(1.0.0.1, 2.0.0.2, echo, IDENTIFIER 0x1234) -> CheckIPHeader -> CheckICMPHeader"
      " -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex("aabb"));
  r.push("e", "");
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(captured(r, "c")[0], plain_hex("4500001e 00010000 ff01b8db 01000001 02000002 0800 3b0f 12340001 aabb"));
  EXPECT_EQ(captured(r, "c")[1].substr(40), plain_hex("0800 e5c9 12340002"));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.transport_header_offset(), 20);
  EXPECT_EQ(IpAddress::from_network_order(p.anno_u32(anno_offset::kDstIp)).unparse(), "2.0.0.2");
}

TEST(ICMPIPEncap, OtherTypesHaveNoNumber) {
  TestRouter r(
      "Idle -> e :: ICMPIPEncap(1.0.0.1, 2.0.0.2, unreachable, host, IDENTIFIER 5) -> CheckICMPHeader -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", std::string(28, '\0'));
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(captured(r, "c")[0].substr(40, 16), plain_hex("0301 fcfe 00000000"));
}

TEST(ICMPIPEncap, TimestampsHaveTheirLongerHeader) {
  TestRouter r("Idle -> e :: ICMPIPEncap(1.0.0.1, 2.0.0.2, 13) -> CheckICMPHeader -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", "");
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c").bytes(0).size(), 40u);
}

TEST(ICMPIPEncap, HandlersChangeTheAddresses) {
  TestRouter r("Idle -> e :: ICMPIPEncap(1.0.0.1, 2.0.0.2, 8) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.src"), "1.0.0.1");
  EXPECT_TRUE(r.write("e.src", "3.0.0.3"));
  EXPECT_TRUE(r.write("e.dst", "4.0.0.4"));
  EXPECT_EQ(r.read("e.dst"), "4.0.0.4");
  r.push("e", "");
  EXPECT_EQ(captured(r, "c")[0].substr(24, 16), "0300000304000004");
}

TEST(ICMPIPEncap, DropsWhatIsTooLong) {
  TestRouter r("Idle -> e :: ICMPIPEncap(1.0.0.1, 2.0.0.2, 8) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", std::string(65508, 'x'));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("e.drop_reasons"), "1\ttoo long for IP\n");
}

TEST(ICMPIPEncap, Errors) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"", "SRC: required argument missing"},
      {"1.0.0.1", "DST: required argument missing"},
      {"1.0.0.1, 2.0.0.2", "TYPE: required argument missing"},
      {"1.0.0.1, 2.0.0.2, 256", "TYPE: expected an ICMP type"},
      {"1.0.0.1, 2.0.0.2, nosuch", "TYPE: expected an ICMP type"},
      {"1.0.0.1, 2.0.0.2, 3, nosuch", "CODE: expected a code of ICMP type 3"},
      {"1.0.0.1, 2.0.0.2, 8, IDENTIFIER 65536", "IDENTIFIER: out of range"}};
  for (const auto& [arguments, message] : kErrors) {
    TestRouter r("Idle -> ICMPIPEncap(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
