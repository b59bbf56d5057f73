#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// Scapy's, with their checksums.
const std::string kRequest6 =
    "6030000500113a0720010db800000000000000000000000120010db80000000000000000000000fe80004f5c1234000970696e672064617461";
const std::string kReply6 =
    "6030000500113aff20010db80000000000000000000000fe20010db800000000000000000000000181004e5c1234000970696e672064617461";

TEST(ICMP6PingResponder, AnswersEchoRequests) {
  TestRouter r("Idle -> m :: MarkIP6Header -> p :: ICMP6PingResponder -> c :: Capture; p[1] -> others :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kRequest6));
  EXPECT_EQ(captured(r, "c"), std::vector{kReply6});
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(Ip6Address::from_bytes(p.anno() + anno_offset::kDstIp6).unparse(), "2001:db8::1");
  EXPECT_EQ(p.timestamp().sec(), 1000000000);
}

TEST(ICMP6PingResponder, LeavesTheRestAlone) {
  TestRouter r("Idle -> m :: MarkIP6Header -> p :: ICMP6PingResponder -> c :: Capture; p[1] -> others :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto changed = [](size_t at, const std::string& hex) {
    std::string packet = kRequest6;
    return packet.replace(2 * at, hex.size(), hex);
  };
  const std::vector<std::string> others = {
      kReply6,
      changed(0, "45"),                                 // not IPv6
      changed(6, "11"),                                 // UDP
      changed(4, "0007"),                               // too short
      changed(8, "ff020000000000000000000000000001"),   // from a group
      changed(8, std::string(32, '0')),                 // from nobody
      changed(24, "ff020000000000000000000000000001"),  // to a group
      kRequest6.substr(0, 2 * 47),
      // Behind destination options.
      "6000000000103c4020010db800000000000000000000000120010db80000000000000000000000fe3a000104000000008000110f12340009",
  };
  for (const std::string& packet : others) r.push("m", from_hex(packet));
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(captured(r, "others"), others);
}

TEST(ICMP6PingResponder, WithoutSecondOutputTheRestIsCounted) {
  TestRouter r("Idle -> p :: ICMP6PingResponder -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", from_hex(kRequest6));  // without a network header
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("p.drop_reasons"), "1\tnot an echo request to one node\n");
  EXPECT_FALSE(TestRouter("Idle -> ICMP6PingResponder(1) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
