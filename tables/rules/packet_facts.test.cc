#include "tables/rules/packet_facts.hh"

#include <gtest/gtest.h>

#include <random>

#include "support/test_router.hh"
#include "tables/rules/rule_reader.hh"

namespace headrace::rules {
namespace {

using testing::from_hex;

const std::string kEther = from_hex("020000000001 020000000002");
// 10.0.0.1 to 192.168.1.2, identification 0x1234, DF, TTL 64, TOS 0x10
std::string ip4(const std::string& protocol, const std::string& rest, const std::string& fragment = "4000",
                const std::string& options = "") {
  const size_t header = 20 + from_hex(options).size(), total = header + rest.size();
  char start[48];
  std::snprintf(start, sizeof start, "4%zx10%04zx", header / 4, total);
  return from_hex(std::string(start) + "1234" + fragment + "40" + protocol + "0000 0a000001 c0a80102" + options) + rest;
}
// From port 1000 to 80, sequence 7, acknowledgment 8, SYN and ACK, window 512
const std::string kTcpHeader = from_hex("03e8 0050 00000007 00000008 5012 0200 0000 0000");

PacketFacts facts(const std::string& bytes, int32_t network) {
  return PacketFacts({reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<uint32_t>(bytes.size()), network});
}
uint32_t value(const PacketFacts& f, Field field) {
  uint32_t v = 0;
  EXPECT_TRUE(f.field(field, v)) << static_cast<int>(field);
  return v;
}
bool has(const PacketFacts& f, Field field) {
  uint32_t v;
  return f.field(field, v);
}

TEST(PacketFacts, Tcp) {
  const std::string ip = ip4("06", kTcpHeader + "data");
  for (const auto& [bytes, network] :
       {std::pair(ip, int32_t{0}), std::pair(kEther + from_hex("0800") + ip, PacketBytes::kNone),
        std::pair(kEther + from_hex("88a8 0001 8100 0002 0800") + ip + "padding", PacketBytes::kNone)}) {
    const PacketFacts f = facts(bytes, network);
    ASSERT_TRUE(f.is_ip());
    EXPECT_EQ(f.version(), 4);
    EXPECT_EQ(f.protocol(), 6);
    EXPECT_EQ(f.src4(), 0x0a000001u);
    EXPECT_EQ(f.dst4(), 0xc0a80102u);
    ASSERT_TRUE(f.has_ports());
    EXPECT_EQ(f.src_port(), 1000);
    EXPECT_EQ(f.dst_port(), 80);
    EXPECT_EQ(f.payload(), "data");
    EXPECT_EQ(value(f, Field::kPayloadLength), 4u);
    EXPECT_EQ(value(f, Field::kTtl), 64u);
    EXPECT_EQ(value(f, Field::kTos), 0x10u);
    EXPECT_EQ(value(f, Field::kIpId), 0x1234u);
    EXPECT_EQ(value(f, Field::kIpProtocol), 6u);
    EXPECT_EQ(value(f, Field::kFragmentBits), 2u);
    EXPECT_EQ(value(f, Field::kFragmentOffset), 0u);
    EXPECT_EQ(value(f, Field::kIpOptions), 0u);
    EXPECT_EQ(value(f, Field::kTcpFlags), 0x12u);
    EXPECT_EQ(value(f, Field::kTcpSequence), 7u);
    EXPECT_EQ(value(f, Field::kTcpAcknowledgment), 8u);
    EXPECT_EQ(value(f, Field::kTcpWindow), 512u);
    EXPECT_EQ(value(f, Field::kSameAddresses), 0u);
    EXPECT_FALSE(has(f, Field::kIcmpType));
  }
}

TEST(PacketFacts, FragmentsAndOptions) {
  const std::string later_packet = ip4("06", kTcpHeader, "2003");
  const PacketFacts later = facts(later_packet, 0);
  EXPECT_FALSE(later.has_ports() || has(later, Field::kTcpFlags));
  EXPECT_EQ(value(later, Field::kFragmentOffset), 3u);
  EXPECT_EQ(value(later, Field::kFragmentBits), 1u);
  EXPECT_EQ(later.payload(), kTcpHeader);
  // No operation, record route, router alert, end.
  const std::string options_packet =
      ip4("11", from_hex("0001 0002 000c 0000") + "UDP.", "0000", "01 07040000 94040000 00 0000");
  const PacketFacts options = facts(options_packet, 0);
  EXPECT_EQ(value(options, Field::kIpOptions),
            uint32_t{kOptionNop | kOptionRecordRoute | kOptionRouterAlert | kOptionEnd});
  EXPECT_EQ(options.payload(), "UDP.");
  // An option that would not end.
  EXPECT_EQ(value(facts(ip4("11", "", "0000", "07000000"), 0), Field::kIpOptions), uint32_t{kOptionRecordRoute});
}

TEST(PacketFacts, Ip6AndIcmp) {
  // Hop-by-hop options, then a first fragment of an echo request.
  const std::string icmp = from_hex("8000 0000 0102 0304") + "ping";
  const std::string rest = from_hex("2c00 0502 0000 0100 3a00 0001 00000063") + icmp;
  const std::string ip =
      from_hex("61200000 001c 00 05 20010db8000000000000000000000001 20010db8000000000000000000000002") + rest;
  const PacketFacts f = facts(ip, 0);
  ASSERT_TRUE(f.is_ip());
  EXPECT_EQ(f.version(), 6);
  EXPECT_EQ(f.protocol(), 58);
  EXPECT_TRUE(f.is_icmp());
  EXPECT_TRUE(f.src6() == (Address6{0x20010db8} << 96 | 1));
  EXPECT_EQ(value(f, Field::kTtl), 5u);
  EXPECT_EQ(value(f, Field::kTos), 0x12u);
  EXPECT_EQ(value(f, Field::kIcmpType), 128u);
  EXPECT_EQ(value(f, Field::kIcmpId), 0x102u);
  EXPECT_EQ(value(f, Field::kIcmpSequence), 0x304u);
  EXPECT_EQ(value(f, Field::kIpId), 99u);
  EXPECT_EQ(value(f, Field::kFragmentBits), 1u);
  EXPECT_EQ(f.payload(), "ping");
  const std::string unreachable_packet = ip4("01", from_hex("0303 0000 00000000") + "x");
  const PacketFacts unreachable = facts(unreachable_packet, 0);
  EXPECT_EQ(value(unreachable, Field::kIcmpCode), 3u);
  EXPECT_FALSE(has(unreachable, Field::kIcmpId));
}

TEST(PacketFacts, HeaderOfARule) {
  const auto meets = [](const std::string& header, const PacketFacts& f, const std::string& options = "") {
    RuleReader reader({});
    reader.read_text("alert " + header + " (sid:1; " + options + ")", "t");
    const RuleSet set = reader.finish();
    EXPECT_EQ(set.rules.size(), 1u) << header;
    return set.rules.size() == 1 && f.meets(set.rules[0]);
  };
  const std::string bytes = ip4("06", kTcpHeader);
  const PacketFacts f = facts(bytes, 0);
  EXPECT_TRUE(meets("tcp any any -> any any", f) && meets("ip any any -> any any", f) &&
              meets("ipv4 any any -> any any", f));
  EXPECT_FALSE(meets("udp any any -> any any", f) || meets("icmp any any -> any any", f) ||
               meets("ipv6 any any -> any any", f));
  EXPECT_TRUE(meets("tcp 10.0.0.0/8 1000 -> 192.168.1.2 80", f));
  EXPECT_FALSE(meets("tcp 11.0.0.0/8 1000 -> any any", f) || meets("tcp any 1001 -> any any", f));
  EXPECT_FALSE(meets("tcp any any -> !192.168.1.2 any", f) || meets("tcp any any -> any !80", f));
  EXPECT_FALSE(meets("tcp 192.168.1.2 80 -> any any", f));
  EXPECT_TRUE(meets("tcp 192.168.1.2 80 <> 10.0.0.1 1000", f));
  EXPECT_FALSE(meets("tcp 192.168.1.2 1000 <> 10.0.0.1 80", f));
  EXPECT_FALSE(meets("tcp 2001:db8::/32 any -> any any", f));
  EXPECT_FALSE(meets("tcp any any -> any any", f, "flow:established;"));  // it has SYN
  EXPECT_TRUE(meets("tcp any any -> any any", f, "flow:to_server;"));
  EXPECT_TRUE(meets("tcp any any -> any any", f, "flags:SA; window:512;") &&
              !meets("tcp any any -> any any", f, "flags:S;"));
  const std::string fragment = ip4("06", kTcpHeader, "2003");
  EXPECT_TRUE(meets("tcp any any -> any any", facts(fragment, 0)));
  EXPECT_FALSE(meets("tcp any any -> any 80", facts(fragment, 0)) ||
               meets("tcp any any -> any any", facts(fragment, 0), "flags:SA;"));
}

TEST(PacketFacts, BrokenPacketsStayWithinTheirBytes) {
  const std::string good[] = {kEther + from_hex("0800") + ip4("06", kTcpHeader + "data", "0000", "01070400"),
                              kEther + from_hex("86dd 60000000 0020 00 05") + std::string(32, '\1') +
                                  from_hex("2c00 0502 0000 0100 3a00 0001 00000063") + "12345678"};
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good[random() % 2];
    bytes.resize(random() % (bytes.size() + 1));
    for (int k = 0; k < 3 && !bytes.empty(); ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());  // a sanitizer sees its end
    const int32_t network = random() % 2 ? PacketBytes::kNone : static_cast<int32_t>(random() % 20);
    const PacketFacts f({exact.data(), static_cast<uint32_t>(exact.size()), network});
    if (!f.is_ip()) continue;
    uint32_t v, sum = 0;
    for (int field = 0; field <= static_cast<int>(Field::kSameAddresses); ++field)
      sum += f.field(static_cast<Field>(field), v) ? v : 0;
    for (const char c : f.payload()) sum += static_cast<uint8_t>(c);
    ASSERT_LE(f.payload().size(), exact.size() + (sum & 0));
  }
}

}  // namespace
}  // namespace headrace::rules
