#include <fmt/format.h>

#include <random>

#include "headrace/checksum.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr std::string_view kUdp = "45000024 12340000 4011392d 121a042c 121a0709 03e807d0 0010075d 7061796c6f616421";
constexpr std::string_view kWithOptions =
    "48000030 12340000 40112b15 121a042c 121a0709 070b0400 00000000 00000001 03e807d0 0010075d 7061796c6f616421";

TEST(CheckIPHeader, GoodPacketIsMarkedAndTrimmed) {
  TestRouter r("Idle -> i :: CheckIPHeader -> good :: Capture; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("i", from_hex(std::string(kUdp) + "00000000 0000"));
  r.push("i", from_hex(kWithOptions));
  EXPECT_EQ(captured(r, "good"), plain_hex({kUdp, kWithOptions}));
  const Packet& p = *capture(r, "good").seen()[0].packet;
  EXPECT_EQ(p.network_header_offset(), 0);
  EXPECT_EQ(p.network_header_length(), 20);
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "18.26.7.9");
  EXPECT_EQ(capture(r, "good").seen()[1].packet->network_header_length(), 32);
  EXPECT_EQ(r.read("i.drops"), "0");
}

void set_checksum(std::string& packet) {
  packet[10] = packet[11] = 0;
  const uint16_t sum = internet_checksum(packet.data(), 20);
  packet[10] = static_cast<char>(sum >> 8);
  packet[11] = static_cast<char>(sum);
}

TEST(CheckIPHeader, OnlyTheRightChecksumIsGood) {
  TestRouter r("Idle -> i :: CheckIPHeader -> Discard; i[1] -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  std::mt19937 random(1);
  uint64_t bad = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string header = from_hex("45000014");
    // Among random bytes many that are all ones or zeros, so that sums carry from and to any place.
    while (header.size() < 20) {
      const uint32_t word = random();
      header += static_cast<char>(n % 3 == 0 ? word : word & 0x100 ? 0xff : word & 0x200 ? 0 : word);
    }
    set_checksum(header);
    r.push("i", header);
    std::string other = header;
    const size_t at = 8 + random() % 12;
    other[at] = static_cast<char>(other[at] ^ (1 << random() % 8));
    if (internet_checksum(other.data(), 20) != 0) {
      r.push("i", other);
      ++bad;
    }
    ASSERT_EQ(r.read("i.drops"), std::to_string(bad)) << "packet " << n;
  }
  EXPECT_GT(bad, 2900u);
}

TEST(CheckIPHeader, LengthAndPaddingDecideTogether) {
  TestRouter r("Idle -> i :: CheckIPHeader -> good :: Capture; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  size_t good = 0;
  for (uint16_t length = 0; length < 64; ++length) {
    std::string packet = from_hex("45000000 12340000 40110000 121a042c 121a0709") + std::string(20, 'x');
    packet[3] = static_cast<char>(length);
    set_checksum(packet);
    r.push("i", packet);
    if (length < 20 || length > 40) continue;
    ASSERT_EQ(capture(r, "good").seen().size(), ++good);
    EXPECT_EQ(capture(r, "good").seen().back().packet->length(), length);
  }
  EXPECT_EQ(capture(r, "good").seen().size(), 21u);
  EXPECT_EQ(capture(r, "bad").seen().size(), 43u);
}

TEST(CheckIPHeader, OffsetByKeywordAndByPlace) {
  TestRouter r("Idle -> i :: CheckIPHeader(3) -> c :: Capture; Idle -> j :: CheckIPHeader(OFFSET 3) -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("i", from_hex("aabbcc" + std::string(kUdp)));
  r.push("j", from_hex("aabbcc" + std::string(kUdp) + "00"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"aabbcc" + std::string(kUdp), "aabbcc" + std::string(kUdp)}));
  EXPECT_EQ(capture(r, "c").seen()[1].packet->network_header_offset(), 3);
}

TEST(CheckIPHeader, EachFaultHasItsReason) {
  TestRouter r("Idle -> i :: CheckIPHeader(INTERFACES 18.26.4.1/24, DETAILS true) -> Idle; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  r.push("i", "");
  r.push("i", from_hex("45000024 12340000 4011392d 121a042c 121a07"));    // 19 bytes
  r.push("i", from_hex("65000014 00010000 0911849d 121a042c 121a0709"));  // version 6
  r.push("i", from_hex("44000014 00010000 0911859d 121a042c 121a0709"));  // header of 16 bytes
  r.push("i", from_hex("45000015 00010000 0911849d 121a042c 121a0709"));  // longer than the packet
  r.push("i", from_hex("46000014 00010000 0911849d 121a042c 121a0709"));  // shorter than its header
  r.push("i", from_hex("45000014 00010000 09118271 121a042c 121a0709"));  // checksum
  r.push("i", from_hex("48000030 12340000 40112b15 121a042c 121a0709 070b0400 00000000 00000002"
                       "03e807d0 0010075d 7061796c6f616421"));            // checksum of the options
  r.push("i", from_hex("45000014 00010000 0911819d 121a04ff 121a0709"));  // source is a broadcast
  EXPECT_EQ(GetCapturedStderr(), "i: IP header check failed: tiny packet\n");
  EXPECT_EQ(capture(r, "bad").seen().size(), 9u);
  EXPECT_EQ(r.read("i.drops"), "9");
  EXPECT_EQ(r.read("i.drop_details"),
            "2\ttiny packet\n1\tbad IP version\n1\tbad IP header length\n2\tbad IP length\n2\tbad IP checksum\n"
            "1\tbad source address\n");
  for (const auto& seen : capture(r, "bad").seen()) EXPECT_FALSE(seen.packet->has_network_header());
}

TEST(CheckIPHeader, InterfacesRefuseBroadcastSources) {
  TestRouter r(
      "Idle -> i :: CheckIPHeader(INTERFACES 18.26.4.1/24 18.26.7.1/24) -> good :: Capture; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  r.push("i", from_hex("45000014 00010000 0911819d 121a04ff 121a0709"));
  r.push("i", from_hex("45000014 00010000 091198b6 00000000 121a0709"));
  r.push("i", from_hex("45000014 00010000 091198b6 ffffffff 121a0709"));
  EXPECT_EQ(capture(r, "bad").seen().size(), 3u);
  // For this router itself they may pass.
  r.push("i", from_hex("45000014 00010000 091184a5 121a04ff 121a0401"));
  r.push("i", from_hex("45000014 00010000 09119bbe 00000000 121a0401"));
  EXPECT_EQ(capture(r, "good").seen().size(), 2u);
  GetCapturedStderr();
}

/// Networks of all sizes, whose broadcast addresses have much or little in common.
TEST(CheckIPHeader, InterfacesOfAnySizeRefuseTheirBroadcasts) {
  const auto packet_from = [](uint32_t source) {
    std::string packet = from_hex("45000014 00010000 09110000 00000000 121a0709");
    auto* const ip = reinterpret_cast<Ip4Header*>(packet.data());
    ip->src = IpAddress::from_host_order(source);
    set_ip_checksum(*ip);
    return packet;
  };
  for (int first = 8; first <= 30; ++first)
    for (const int second : {8, 24, 27, 30}) {
      const uint32_t broadcasts[] = {0x0a141e28 | ~uint32_t{0} >> first, 0xc0a8b5a5 | ~uint32_t{0} >> second};
      TestRouter r(
          fmt::format("Idle -> i :: CheckIPHeader(INTERFACES 10.20.30.40/{} 192.168.181.165/{}) -> good :: Capture;"
                      "i[1] -> bad :: Capture;",
                      first, second));
      ASSERT_TRUE(r.ok()) << r.errors();
      CaptureStderr();
      for (const uint32_t address : broadcasts) {
        r.push("i", packet_from(address));
        r.push("i", packet_from(address - 1));
        r.push("i", packet_from(address + 1));
        r.push("i", packet_from(address ^ 0x01000000));
      }
      EXPECT_EQ(capture(r, "bad").seen().size(), 2u) << first << " " << second;
      EXPECT_EQ(capture(r, "good").seen().size(), 6u) << first << " " << second;
      GetCapturedStderr();
    }
}

TEST(CheckIPHeader, BadSourcesAndGoodDestinations) {
  TestRouter r(
      "Idle -> i :: CheckIPHeader(BADSRC 18.26.4.44, GOODDST 1.1.1.1) -> good :: Capture; i[1] -> bad :: Capture;"
      "Idle -> j :: CheckIPHeader(BADSRC 18.26.4.44, GOODDST 18.26.7.9) -> [1]good;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  r.push("i", from_hex(kUdp));
  r.push("j", from_hex(kUdp));
  r.push("i", from_hex("45000014 00010000 091198b6 00000000 121a0709"));
  EXPECT_EQ(capture(r, "bad").seen().size(), 1u);
  EXPECT_EQ(capture(r, "good").seen().size(), 2u);
  GetCapturedStderr();
}

TEST(CheckIPHeader, OldFormOfBadSources) {
  TestRouter r("Idle -> i :: CheckIPHeader(18.26.4.44 18.26.4.255, 2) -> good :: Capture; i[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  r.push("i", from_hex("0000" + std::string(kUdp)));
  r.push("i", from_hex("0000 45000014 00010000 091198b6 00000000 121a0709"));
  EXPECT_EQ(capture(r, "bad").seen().size(), 2u);
  GetCapturedStderr();
}

TEST(CheckIPHeader, ListsOfAnyLength) {
  for (const int n : {1, 7, 8, 9, 31, 32, 33, 70}) {
    std::string list;
    for (int i = 1; i < n; ++i) list += " 10.0.0." + std::to_string(i);
    TestRouter r("Idle -> i :: CheckIPHeader(BADSRC " + list +
                 " 18.26.4.44) -> good :: Capture; i[1] -> bad :: Capture;"
                 "Idle -> j :: CheckIPHeader(BADSRC 18.26.4.44, GOODDST " +
                 list + " 18.26.7.9) -> [1]good;");
    ASSERT_TRUE(r.ok()) << r.errors();
    CaptureStderr();
    r.push("i", from_hex(kUdp));
    r.push("j", from_hex(kUdp));
    EXPECT_EQ(capture(r, "bad").seen().size(), 1u) << n;
    EXPECT_EQ(capture(r, "good").seen().size(), 1u) << n;
    GetCapturedStderr();
  }
}

TEST(CheckIPHeader, ChecksumFalseAndCheckIPHeader2) {
  for (const char* check : {"CheckIPHeader(CHECKSUM false)", "CheckIPHeader2", "CheckIPHeader2(0)"}) {
    TestRouter r(std::string("Idle -> i :: ") + check + " -> good :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.push("i", from_hex("45000014 00010000 09110000 121a042c 121a0709"));
    EXPECT_EQ(capture(r, "good").seen().size(), 1u) << check;
  }
  TestRouter r("Idle -> i :: CheckIPHeader2(CHECKSUM true) -> good :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  r.push("i", from_hex("45000014 00010000 09110000 121a042c 121a0709"));
  EXPECT_EQ(capture(r, "good").seen().size(), 0u);
  EXPECT_EQ(GetCapturedStderr(), "i: IP header check failed: bad IP checksum\n");
}

TEST(CheckIPHeader, VerboseReportsEveryPacket) {
  TestRouter r("Idle -> i :: CheckIPHeader(VERBOSE true) -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  CaptureStderr();
  r.push("i", "a");
  r.push("i", "b");
  EXPECT_EQ(GetCapturedStderr(), "i: IP header check failed: tiny packet\ni: IP header check failed: tiny packet\n");
}

TEST(CheckIPHeader, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("Idle -> CheckIPHeader(OFFSET -1) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> CheckIPHeader(nonsense) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> CheckIPHeader(1.2.3.4, 1, 2) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> CheckIPHeader(INTERFACES 1.2.3.4/33) -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
