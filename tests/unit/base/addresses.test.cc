#include "headrace/addresses.hh"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <unordered_set>

#include "base/decimal.hh"
#include "headrace/bandwidth.hh"

namespace headrace {
namespace {

static_assert(std::is_trivially_copyable_v<IpAddress> && std::is_trivially_copyable_v<IpPrefix>);
static_assert(std::is_trivially_copyable_v<Ip6Address> && std::is_trivially_copyable_v<Ip6Prefix>);
static_assert(std::is_trivially_copyable_v<EtherAddress> && std::is_trivially_copyable_v<Bandwidth>);

/// What unparse() makes of a text that parse() reads, or "-" when parse() refuses it.
template <typename T>
std::string reread(std::string_view text) {
  T value;
  return parse(text, value) ? value.unparse() : "-";
}

TEST(IpAddress, KeepsNetworkOrder) {
  const IpAddress a = IpAddress::from_octets(18, 26, 4, 9);
  EXPECT_EQ(a.host_order(), 0x121a0409u);
  uint8_t bytes[5];
  a.copy_to(bytes + 1);
  EXPECT_EQ(bytes[1], 18);
  EXPECT_EQ(bytes[4], 9);
  EXPECT_EQ(IpAddress::from_bytes(bytes + 1), a);
  EXPECT_EQ(IpAddress::from_network_order(a.network_order()), a);
  EXPECT_EQ(IpAddress::from_host_order(0x121a0409), a);
  EXPECT_LT(IpAddress::from_octets(1, 0, 0, 2), IpAddress::from_octets(2, 0, 0, 1));
  EXPECT_FALSE(IpAddress());
  EXPECT_TRUE(a);
}

TEST(IpAddress, Kinds) {
  EXPECT_TRUE(IpAddress::from_octets(224, 0, 0, 1).is_multicast());
  EXPECT_TRUE(IpAddress::from_octets(239, 255, 255, 255).is_multicast());
  EXPECT_FALSE(IpAddress::from_octets(240, 0, 0, 1).is_multicast());
  EXPECT_FALSE(IpAddress::from_octets(223, 0, 0, 1).is_multicast());
  EXPECT_TRUE(IpAddress::from_octets(255, 255, 255, 255).is_broadcast());
}

TEST(IpAddress, ReadsFourOctets) {
  EXPECT_EQ(reread<IpAddress>("18.26.4.9"), "18.26.4.9");
  EXPECT_EQ(reread<IpAddress>("0.0.0.0"), "0.0.0.0");
  EXPECT_EQ(reread<IpAddress>("255.255.255.255"), "255.255.255.255");
  // Leading zeros are decimal.
  EXPECT_EQ(reread<IpAddress>("010.001.000.0255"), "10.1.0.255");
  for (const char* bad :
       {"", "1", "1.2.3", "1.2.3.", "1.2.3.4.", "1.2.3.4.5", ".1.2.3", "1..2.3", "256.0.0.1", "1.2.3.256", " 1.2.3.4",
        "1.2.3.4 ", "1.2.3.4/8", "-1.2.3.4", "+1.2.3.4", "a.b.c.d", "0x1.2.3.4", "4294967297.0.0.1", "1,2,3,4"})
    EXPECT_EQ(reread<IpAddress>(bad), "-") << bad;
}

TEST(IpAddress, BadTextLeavesTheValue) {
  IpAddress a = IpAddress::from_octets(1, 2, 3, 4);
  EXPECT_FALSE(parse("5.6.7", a));
  EXPECT_EQ(a.unparse(), "1.2.3.4");
}

TEST(IpAddress, Masks) {
  for (int length = 0; length <= 32; ++length) {
    const IpAddress mask = IpAddress::prefix_mask(length);
    EXPECT_EQ(mask.prefix_length(), length);
    EXPECT_EQ(std::popcount(mask.host_order()), length);
    EXPECT_EQ(mask.unparse_mask(), std::to_string(length));
  }
  EXPECT_EQ(IpAddress::from_octets(255, 0, 255, 0).prefix_length(), -1);
  EXPECT_EQ(IpAddress::from_octets(255, 0, 255, 0).unparse_mask(), "255.0.255.0");
  EXPECT_EQ(IpAddress::from_octets(0, 0, 0, 1).prefix_length(), -1);
  EXPECT_EQ(IpAddress::prefix_mask(-3), IpAddress::prefix_mask(0));
  EXPECT_EQ(IpAddress::prefix_mask(40), IpAddress::prefix_mask(32));
}

TEST(IpPrefix, ReadsLengthsAndMasks) {
  EXPECT_EQ(reread<IpPrefix>("18.26.4.0/24"), "18.26.4.0/24");
  EXPECT_EQ(reread<IpPrefix>("18.26.4.9/24"), "18.26.4.9/24");
  EXPECT_EQ(reread<IpPrefix>("18.26.4.9/255.255.255.0"), "18.26.4.9/24");
  EXPECT_EQ(reread<IpPrefix>("18.26.4.9/255.0.255.0"), "18.26.4.9/255.0.255.0");
  EXPECT_EQ(reread<IpPrefix>("0.0.0.0/0"), "0.0.0.0/0");
  EXPECT_EQ(reread<IpPrefix>("1.2.3.4/32"), "1.2.3.4/32");
}

TEST(IpPrefix, OctetsMayBeLeftOutWhereTheMaskIsZero) {
  EXPECT_EQ(reread<IpPrefix>("18.26.4/24"), "18.26.4.0/24");
  EXPECT_EQ(reread<IpPrefix>("18.26.4/20"), "18.26.4.0/20");
  EXPECT_EQ(reread<IpPrefix>("2.0/16"), "2.0.0.0/16");
  EXPECT_EQ(reread<IpPrefix>("0/0"), "0.0.0.0/0");
  EXPECT_EQ(reread<IpPrefix>("10/8"), "10.0.0.0/8");
  EXPECT_EQ(reread<IpPrefix>("10/255.0.0.0"), "10.0.0.0/8");
  EXPECT_EQ(reread<IpPrefix>("18.26.4/28"), "-");
  EXPECT_EQ(reread<IpPrefix>("10/9"), "-");
  EXPECT_EQ(reread<IpPrefix>("10/255.0.0.1"), "-");
}

TEST(IpPrefix, RefusesOtherText) {
  for (const char* bad : {"", "/", "/8", "1.2.3.4", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/ 8", "1.2.3.4/8/8",
                          "1.2.3.4/x", "1.2.3./24", "1.2.3.4/255.255", "1.2.3.4.5/8", "1.2.3.4/99999999999"})
    EXPECT_EQ(reread<IpPrefix>(bad), "-") << bad;
}

TEST(IpPrefix, Parts) {
  IpPrefix p;
  ASSERT_TRUE(parse("18.26.4.9/24", p));
  EXPECT_EQ(p.length(), 24);
  EXPECT_EQ(p.network().unparse(), "18.26.4.0");
  EXPECT_EQ(p.broadcast().unparse(), "18.26.4.255");
  EXPECT_EQ(p.normalized().unparse(), "18.26.4.0/24");
  EXPECT_TRUE(p.contains(IpAddress::from_octets(18, 26, 4, 200)));
  EXPECT_FALSE(p.contains(IpAddress::from_octets(18, 26, 5, 9)));
  EXPECT_TRUE(IpPrefix().contains(IpAddress::from_octets(9, 9, 9, 9)));
}

TEST(IpPrefix, OrAddress) {
  IpPrefix p;
  ASSERT_TRUE(parse_prefix_or_address("1.2.3.4", p));
  EXPECT_EQ(p.unparse(), "1.2.3.4/32");
  ASSERT_TRUE(parse_prefix_or_address("1.2/16", p));
  EXPECT_EQ(p.unparse(), "1.2.0.0/16");
  EXPECT_FALSE(parse_prefix_or_address("1.2", p));
}

TEST(Ip6Address, ReadsAndWrites) {
  EXPECT_EQ(reread<Ip6Address>("1080:0:0:0:8:800:200C:417a"), "1080::8:800:200c:417a");
  EXPECT_EQ(reread<Ip6Address>("1080::8:800:200C:417a"), "1080::8:800:200c:417a");
  EXPECT_EQ(reread<Ip6Address>("::"), "::");
  EXPECT_EQ(reread<Ip6Address>("::1"), "::1");
  EXPECT_EQ(reread<Ip6Address>("2001:DB8::"), "2001:db8::");
  EXPECT_EQ(reread<Ip6Address>("::ffff:129.144.52.38"), "::ffff:129.144.52.38");
  EXPECT_EQ(reread<Ip6Address>("::13.1.68.3"), "::13.1.68.3");
  EXPECT_EQ(reread<Ip6Address>("64:ff9b::192.0.2.33"), "64:ff9b::c000:221");
  EXPECT_EQ(reread<Ip6Address>("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  EXPECT_EQ(reread<Ip6Address>("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
  // RFC 5952: the longest run of zeros, the first of two, and never a single group.
  EXPECT_EQ(reread<Ip6Address>("1:0:0:2:0:0:0:3"), "1:0:0:2::3");
  EXPECT_EQ(reread<Ip6Address>("1:0:0:2:0:0:3:4"), "1::2:0:0:3:4");
  EXPECT_EQ(reread<Ip6Address>("1:0:2:3:4:5:6:7"), "1:0:2:3:4:5:6:7");
}

TEST(Ip6Address, RefusesOtherText) {
  for (const char* bad : {"", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "8000::1:1:1:1:1:1:1", "1::2::3",
                          "12345::", "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7", "g::", "::1 ", " ::1", "::1.2.3", "::1/64",
                          "1.2.3.4", "::ffff:1.2.3.256", "fe80::1%eth0"})
    EXPECT_EQ(reread<Ip6Address>(bad), "-") << bad;
  EXPECT_EQ(reread<Ip6Address>(std::string_view("::1\0junk", 8)), "-");
  EXPECT_EQ(reread<Ip6Address>(std::string(100, '1')), "-");
}

TEST(Ip6Address, Masks) {
  for (int length = 0; length <= 128; ++length) EXPECT_EQ(Ip6Address::prefix_mask(length).prefix_length(), length);
  EXPECT_EQ(Ip6Address::prefix_mask(97).unparse(), "ffff:ffff:ffff:ffff:ffff:ffff:8000:0");
  EXPECT_EQ((~Ip6Address::prefix_mask(17)).unparse(), "0:7fff:ffff:ffff:ffff:ffff:ffff:ffff");
  EXPECT_EQ((~Ip6Address::prefix_mask(17)).prefix_length(), -1);
  Ip6Address a;
  ASSERT_TRUE(parse("::8000", a));
  EXPECT_EQ(a.prefix_length(), -1);
  ASSERT_TRUE(parse("ff00:0:1::", a));
  EXPECT_EQ(a.prefix_length(), -1);
  EXPECT_EQ(((a & Ip6Address::prefix_mask(8)) | ~Ip6Address::prefix_mask(120)).unparse(), "ff00::ff");
}

TEST(Ip6Address, EmbeddedV4) {
  const Ip6Address a = Ip6Address::v4_mapped(IpAddress::from_octets(18, 26, 4, 9));
  EXPECT_EQ(a.unparse(), "::ffff:18.26.4.9");
  EXPECT_TRUE(a.is_v4_mapped());
  EXPECT_EQ(a.embedded_v4().unparse(), "18.26.4.9");
  EXPECT_FALSE(Ip6Address().is_v4_mapped());
}

TEST(Ip6Prefix, ReadsLengthsAndMasks) {
  EXPECT_EQ(reread<Ip6Prefix>("2001:db8::/32"), "2001:db8::/32");
  EXPECT_EQ(reread<Ip6Prefix>("2001:db8::1/128"), "2001:db8::1/128");
  EXPECT_EQ(reread<Ip6Prefix>("::/0"), "::/0");
  EXPECT_EQ(reread<Ip6Prefix>("2001:db8::1/ffff:ffff::"), "2001:db8::1/32");
  for (const char* bad : {"", "::", "::/", "/64", "::/129", "::/-1", "::/x", "::/ff00:ff::"})
    EXPECT_EQ(reread<Ip6Prefix>(bad), "-") << bad;
  Ip6Prefix p;
  ASSERT_TRUE(parse("2001:db8::1/32", p));
  EXPECT_EQ(p.network().unparse(), "2001:db8::");
  Ip6Address inside, outside;
  ASSERT_TRUE(parse("2001:db8:ffff::", inside) && parse("2001:db9::", outside));
  EXPECT_TRUE(p.contains(inside));
  EXPECT_FALSE(p.contains(outside));
  ASSERT_TRUE(parse_prefix_or_address("fe80::1", p));
  EXPECT_EQ(p.unparse(), "fe80::1/128");
}

TEST(EtherAddress, ReadsBothSeparators) {
  EXPECT_EQ(reread<EtherAddress>("00:01:02:03:04:05"), "00-01-02-03-04-05");
  EXPECT_EQ(reread<EtherAddress>("00-01-02-03-04-05"), "00-01-02-03-04-05");
  EXPECT_EQ(reread<EtherAddress>("0:1:2:a:B:c"), "00-01-02-0A-0B-0C");
  for (const char* bad : {"", "00:01:02:03:04", "00:01:02:03:04:05:06", "00:01:02:03:04:", "00:01:02:03:04:005",
                          "00:01-02:03:04:05", "000102030405", "0g:01:02:03:04:05", ":00:01:02:03:04:05",
                          "00::02:03:04:05", "00:01:02:03:04:05 ", "00.01.02.03.04.05"})
    EXPECT_EQ(reread<EtherAddress>(bad), "-") << bad;
}

TEST(EtherAddress, Kinds) {
  EtherAddress a;
  EXPECT_FALSE(a);
  ASSERT_TRUE(parse("02:00:5e:00:00:01", a));
  EXPECT_TRUE(a.is_local());
  EXPECT_FALSE(a.is_group());
  EXPECT_EQ(a.unparse_colon(), "02:00:5E:00:00:01");
  EXPECT_TRUE(EtherAddress::broadcast().is_group());
  EXPECT_TRUE(EtherAddress::broadcast().is_broadcast());
  uint8_t bytes[6];
  a.copy_to(bytes);
  EXPECT_EQ(EtherAddress::from_bytes(bytes), a);
}

TEST(Addresses, FormatAndHash) {
  IpPrefix p;
  ASSERT_TRUE(parse("10.0.0.1/8", p));
  EXPECT_EQ(fmt::format("{} {} {}|", p, EtherAddress::broadcast(), p.address),
            "10.0.0.1/8 FF-FF-FF-FF-FF-FF 10.0.0.1|");
  // Neighboring addresses must not share their low bits.
  std::unordered_set<size_t> low;
  for (uint32_t i = 0; i < 256; ++i)
    low.insert(std::hash<IpAddress>()(IpAddress::from_host_order(0x0a000000 + i)) & 0xffff);
  EXPECT_GT(low.size(), 250u);
}

std::string bandwidth(std::string_view text) {
  Bandwidth b{77};
  switch (parse(text, b)) {
    case BandwidthStatus::kOk:
      return std::to_string(b.bytes_per_second);
    case BandwidthStatus::kOutOfRange:
      return b.bytes_per_second == 77 ? "range" : "changed";
    case BandwidthStatus::kInvalid:
      break;
  }
  return b.bytes_per_second == 77 ? "invalid" : "changed";
}

TEST(Bandwidth, Units) {
  EXPECT_EQ(bandwidth("8"), "8");
  EXPECT_EQ(bandwidth("8 baud"), "1");
  EXPECT_EQ(bandwidth("8Kbps"), "1000");
  EXPECT_EQ(bandwidth("8kbps"), "1000");
  EXPECT_EQ(bandwidth("8KBps"), "8000");
  EXPECT_EQ(bandwidth("8 kb/s"), "1000");
  EXPECT_EQ(bandwidth("8 MB/s"), "8000000");
  EXPECT_EQ(bandwidth("100Gbps"), "12500000000");
  EXPECT_EQ(bandwidth("1.5Mbps"), "187500");
  EXPECT_EQ(bandwidth("2k"), "2000");
  EXPECT_EQ(bandwidth("2Ki"), "2048");
  EXPECT_EQ(bandwidth("1Mibps"), "131072");
  EXPECT_EQ(bandwidth("1 TiBps"), "1099511627776");
  EXPECT_EQ(bandwidth("12bps"), "2");  // halves round up
  EXPECT_EQ(bandwidth("11bps"), "1");
}

TEST(Bandwidth, RefusesOtherText) {
  for (const char* bad : {"", "bps", "Gbps", "-1", "1 2", "1xbps", "1gbps", "1Gbps ", "0x10"})
    EXPECT_EQ(bandwidth(bad), "invalid") << bad;
  EXPECT_EQ(bandwidth("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(bandwidth("18446744073709551616"), "range");
  EXPECT_EQ(bandwidth("1e20bps"), "12500000000000000000");
  EXPECT_EQ(bandwidth("1e30"), "range");
}

TEST(Bandwidth, Unparse) {
  EXPECT_EQ(Bandwidth{0}.unparse(), "0kbps");
  EXPECT_EQ(Bandwidth{1}.unparse(), "0.008kbps");
  EXPECT_EQ(Bandwidth{1000}.unparse(), "8kbps");
  EXPECT_EQ(Bandwidth{125000}.unparse(), "1Mbps");
  EXPECT_EQ(Bandwidth{187500}.unparse(), "1.5Mbps");
  EXPECT_EQ(Bandwidth{12500000000}.unparse(), "100Gbps");
  EXPECT_EQ(Bandwidth{UINT64_MAX}.unparse(), "147573952589.676Gbps");
  for (const uint64_t rate : {1ull, 999ull, 123456789ull, 98765432109876ull, 2305843009213693951ull})
    EXPECT_EQ(bandwidth(Bandwidth{rate}.unparse()), std::to_string(rate));
}

std::string decimal(std::string_view text, DecimalScale scale = {}, bool allow_negative = false) {
  Decimal value;
  switch (parse_decimal(text, scale, allow_negative, value)) {
    case DecimalStatus::kOk:
      return (value.negative ? "-" : "") + std::to_string(value.magnitude);
    case DecimalStatus::kOutOfRange:
      return "range";
    case DecimalStatus::kInvalid:
      break;
  }
  return "invalid";
}

TEST(Decimal, Forms) {
  EXPECT_EQ(decimal("12"), "12");
  EXPECT_EQ(decimal("+12"), "12");
  EXPECT_EQ(decimal("1_000"), "1000");
  EXPECT_EQ(decimal("5."), "5");
  EXPECT_EQ(decimal(".5"), "1");
  EXPECT_EQ(decimal(".49"), "0");
  EXPECT_EQ(decimal("1e3"), "1000");
  EXPECT_EQ(decimal("1.5E+3"), "1500");
  EXPECT_EQ(decimal("1500e-3"), "2");
  EXPECT_EQ(decimal("0.0000000001e10"), "1");
  EXPECT_EQ(decimal("-3", {}, true), "-3");
  for (const char* bad : {"", ".", "+", "-3", "1..2", "1.2.3", "e3", "1e", "1e+", "1ex", "1__0", "1_", "_1", "1_.5",
                          "1 ", " 1", "0x1", "inf", "nan"})
    EXPECT_EQ(decimal(bad), "invalid") << bad;
}

TEST(Decimal, IsExactAndBounded) {
  EXPECT_EQ(decimal("0.1", {9, 1, 1}), "100000000");
  EXPECT_EQ(decimal("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(decimal("18446744073709551615.49"), "18446744073709551615");
  EXPECT_EQ(decimal("18446744073709551615.5"), "range");
  EXPECT_EQ(decimal("18446744073709551616"), "range");
  EXPECT_EQ(decimal("1e999999999999"), "range");
  EXPECT_EQ(decimal("0e999999999999"), "0");
  EXPECT_EQ(decimal("1e-999999999999"), "0");
  EXPECT_EQ(decimal(std::string(500, '9')), "range");
  EXPECT_EQ(decimal("0." + std::string(500, '9')), "1");
  EXPECT_EQ(decimal(std::string(500, '0') + "7"), "7");
  EXPECT_EQ(decimal("9999999999999999999999999", {-15, uint64_t{1} << 20, 8}), "1310720000000000");
  EXPECT_EQ(decimal("1e-30", {0, 1, 8}), "0");
}

TEST(Decimal, Unparse) {
  EXPECT_EQ(unparse_decimal(1500, 3), "1.5");
  EXPECT_EQ(unparse_decimal(1000, 3), "1");
  EXPECT_EQ(unparse_decimal(1, 9), "0.000000001");
  EXPECT_EQ(unparse_decimal(0, 3), "0");
  EXPECT_EQ(unparse_decimal(42, 0), "42");
}

}  // namespace
}  // namespace headrace
