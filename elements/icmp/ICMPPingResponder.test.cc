#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(ICMPPingResponder, AnswersEchoRequests) {
  TestRouter r("Idle -> m :: MarkIPHeader -> Paint(3) -> p :: ICMPPingResponder -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500002600054000 0901455b121a042c 121a0418 0800d42801110003 68656c6c6f2070696e67"));
  r.push("m", from_hex("4500002000050000 09018561121a042c 121a0418 0800f7ff00000000 00000000"));
  EXPECT_EQ(captured(r, "c"),
            plain_hex({"4500002600050000 ff018f5a121a0418 121a042c 0000dc2801110003 68656c6c6f2070696e67",
                       "4500002000050000 ff018f60121a0418 121a042c 0000ffff00000000 00000000"}));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "18.26.4.44");
  EXPECT_EQ(p.anno_u8(anno_offset::kPaint), 0);
  EXPECT_EQ(p.timestamp().sec(), 1000000000);
}

TEST(ICMPPingResponder, ChecksumOfZeroStaysIfItIsRight) {
  // Sum 0xffff in the reply: data fffe 0001. Made with Scapy: the reply's checksum is 0000.
  TestRouter r("Idle -> m :: MarkIPHeader -> p :: ICMPPingResponder -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500002000050000 09018561121a042c 121a0418 0800f7ff00000000 fffe0001"));
  EXPECT_EQ(captured(r, "c")[0].substr(40),
            "000000000000"
            "0000"
            "fffe0001");
}

TEST(ICMPPingResponder, RepliesComeFromOneHost) {
  TestRouter r("Idle -> m :: MarkIPHeader -> p :: ICMPPingResponder(BADADDRS 18.26.4.255) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string to = "4500001c00050000 09010000121a042c ", echo = " 0800d42801110003";
  r.push("m", from_hex(to + "ffffffff" + echo));
  r.push("m", from_hex(to + "e0000001" + echo));
  r.push("m", from_hex(to + "00000000" + echo));
  r.push("m", from_hex(to + "121a04ff" + echo));
  for (const PacketType type : {PacketType::kBroadcast, PacketType::kMulticast, PacketType::kHost}) {
    const std::string bytes = from_hex(to + "121a0418" + echo);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_packet_type(type);
    r.push("m", p);
  }
  EXPECT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(r.read("p.drop_reasons"), "6\tnot an echo request to one host\n");
}

TEST(ICMPPingResponder, LeavesTheRestAlone) {
  TestRouter r("Idle -> m :: MarkIPHeader -> p :: ICMPPingResponder -> c :: Capture; p[1] -> d :: Capture; Idle -> p;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string others[] = {
      "4500001c00050000 09110000121a042c 121a0418 0800d42801110003",  // UDP
      "4500001c00050000 09010000121a042c 121a0418 0000d42801110003",  // a reply
      "4500001b00050000 09010000121a042c 121a0418 0800d428011100",    // too short
      "4500001c00052000 09010000121a042c 121a0418 0800d42801110003",  // fragments
      "4500001c00050001 09010000121a042c 121a0418 0800d42801110003",
      "4f00001c00050000 09010000121a042c 121a0418 0800d42801110003",  // header longer than the packet
  };
  for (const std::string& other : others) r.push("m", from_hex(other));
  r.push("p", from_hex("4500002600054000 0901455b121a042c 121a0418 0800d42801110003"));  // no network header
  EXPECT_EQ(captured(r, "c").size(), 0u);
  ASSERT_EQ(captured(r, "d").size(), 7u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(captured(r, "d")[i], plain_hex(others[i]));
}

}  // namespace
}  // namespace headrace::testing
