#include <fmt/format.h>

#include "support/element_test.hh"

namespace headrace::testing {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

const std::string kSrc = "20010db8000000000000000000000001";
const std::string kDst = "20010db8000000000000000000000002";

/// A header with a next header, a source, and a payload.
std::string packet(std::string_view next, const std::string& payload, const std::string& src = kSrc,
                   std::string_view start = "60000000") {
  const std::string bytes = plain_hex(payload);
  return std::string(start) + fmt::format("{:04x}", bytes.size() / 2) + std::string(next) + "40" + src + kDst + bytes;
}

const std::string kUdp = "03e807d0 00080000";

TEST(CheckIP6Header, GoodPacketIsMarkedAndTrimmed) {
  TestRouter r("Idle -> i :: CheckIP6Header -> good :: Capture; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("i", from_hex(packet("11", kUdp) + "000000"));
  r.push("i", from_hex(packet("3b", "")));
  EXPECT_EQ(captured(r, "good"), plain_hex({packet("11", kUdp), packet("3b", "")}));
  const Packet& p = *capture(r, "good").seen()[0].packet;
  EXPECT_EQ(p.network_header_offset(), 0);
  EXPECT_EQ(p.network_header_length(), 40);
  EXPECT_EQ(Ip6Address::from_bytes(p.anno() + anno_offset::kDstIp6).unparse(), "2001:db8::2");
  EXPECT_EQ(r.read("i.drops"), "0");
}

TEST(CheckIP6Header, TransportHeaderBehindExtensionHeaders) {
  TestRouter r("Idle -> i :: CheckIP6Header(OFFSET 2) -> c :: Capture; i[1] -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string options = "2b00010400000000";                                    // hop-by-hop, then routing
  const std::string routing = "3c02000000000000 0000000000000000 0000000000000000";  // 24 bytes, then options
  const std::string destination = "2c00010400000000";                                // then fragment
  const std::string first = "1100000112345678", later = "1100010012345678";
  const struct {
    std::string next, payload;
    int length;
  } cases[] = {
      {"00", options + routing + destination + first + kUdp, 40 + 8 + 24 + 8 + 8},
      {"2c", first + kUdp, 48},
      // Behind a later fragment's header nothing is a header, whatever its number says.
      {"2c", "0000010012345678" + options, 48},
      {"2c", later + kUdp, 48},
      // Authentication counts in words.
      {"33", "11040000 00000001 00000001 000102030405060708090a0b" + kUdp, 40 + 24},
      // An extension header that does not fit.
      {"00", "1105000000000000", 40},
      {"00", "110000", 40},
      {"3c", "", 40},
  };
  for (const auto& c : cases) {
    r.push("i", from_hex("ffff" + packet(c.next, c.payload)));
    const Packet& p = *capture(r, "c").seen().back().packet;
    EXPECT_EQ(p.network_header_length(), c.length) << c.next << " " << c.payload;
    EXPECT_EQ(p.network_header_offset(), 2);
  }
  EXPECT_EQ(capture(r, "c").seen().size(), std::size(cases));

  std::string many;
  for (int i = 0; i < 12; ++i) many += "3c00010400000000";
  r.push("i", from_hex("ffff" + packet("3c", many)));
  EXPECT_EQ(capture(r, "c").seen().back().packet->network_header_length(), 40 + 8 * 8) << "eight are followed";
}

TEST(CheckIP6Header, EachFaultHasItsReason) {
  TestRouter r("Idle -> i :: CheckIP6Header(2001:db8::bad ::0, DETAILS true) -> Idle; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  const std::string good = packet("11", kUdp);
  r.push("i", "");
  r.push("i", from_hex(good.substr(0, 78)));                    // 39 bytes
  r.push("i", from_hex(packet("11", kUdp, kSrc, "40000000")));  // version 4
  r.push("i", from_hex(good.substr(0, good.size() - 2)));       // longer than the packet
  r.push("i", from_hex(packet("11", kUdp, "20010db8000000000000000000000bad")));
  r.push("i", from_hex(packet("11", kUdp, std::string(32, '0'))));
  r.push("i", from_hex(packet("11", kUdp, "ff020000000000000000000000000001")));  // multicast
  EXPECT_EQ(GetCapturedStderr(), "i: IP6 header check failed: tiny packet\n");
  EXPECT_EQ(capture(r, "bad").seen().size(), 7u);
  EXPECT_EQ(r.read("i.drops"), "7");
  EXPECT_EQ(r.read("i.drop_details"), "2\ttiny packet\n1\tbad IP version\n1\tbad IP length\n3\tbad source address\n");
  for (const auto& seen : capture(r, "bad").seen()) EXPECT_FALSE(seen.packet->has_network_header());
}

TEST(CheckIP6Header, BadSourcesInListsOfAnyLength) {
  for (const int n : {0, 1, 7, 8, 9, 40}) {
    std::string list;
    for (int i = 1; i <= n; ++i) list += " 2001:db8:1::" + std::to_string(i);
    TestRouter r("Idle -> i :: CheckIP6Header(BADSRC " + list +
                 " 2001:db8::1) -> good :: Capture; i[1] -> bad :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    CaptureStderr();
    r.push("i", from_hex(packet("11", kUdp)));
    r.push("i", from_hex(packet("11", kUdp, kDst)));
    GetCapturedStderr();
    EXPECT_EQ(capture(r, "bad").seen().size(), 1u) << n;
    EXPECT_EQ(capture(r, "good").seen().size(), 1u) << n;
  }
}

TEST(CheckIP6Header, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("Idle -> CheckIP6Header(OFFSET -1) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> CheckIP6Header(nonsense) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> CheckIP6Header(::1, 1, 2) -> Idle;").ok());
  EXPECT_TRUE(TestRouter("Idle -> CheckIP6Header(::1, 14) -> Idle;").ok());
}

TEST(MarkIP6Header, MarksNetworkAndTransportHeader) {
  TestRouter r("Idle -> m :: MarkIP6Header(2) -> c :: Capture; Idle -> n :: MarkIP6Header -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("ffff" + packet("00", "1100010400000000" + kUdp)));
  r.push("n", from_hex("60"));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.network_header_offset(), 2);
  EXPECT_EQ(p.network_header_length(), 48);
  EXPECT_EQ(capture(r, "c").seen()[1].packet->network_header_length(), 40);
  r.push("m", "ab");
  EXPECT_EQ(r.read("m.drop_reasons"), "1\tno byte at OFFSET\n");
}

}  // namespace
}  // namespace headrace::testing
