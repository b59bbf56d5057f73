#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// What names mean to an element of a compound, or to one of the router itself.
template <typename T>
std::string meaning(TestRouter& r, const std::string& text, const char* seen_from = "top") {
  T value;
  const ArgContext context(&r.router().scope(r.router().find(seen_from)));
  return parse_argument(text, value, context) ? value.unparse() : "unknown";
}

TEST(AddressInfo, NamesEachKindOfAddress) {
  TestRouter r(
      "top :: Script(pause); AddressInfo(a 1.2.3.4, n 10.0.0.0/8, e 00:50:BA:85:84:A9, six 2001:db8::1, sixnet "
      "2001:db8::/32);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(meaning<IpAddress>(r, "a"), "1.2.3.4");
  EXPECT_EQ(meaning<IpPrefix>(r, "n"), "10.0.0.0/8");
  EXPECT_EQ(meaning<EtherAddress>(r, "e"), "00-50-BA-85-84-A9");
  EXPECT_EQ(meaning<Ip6Address>(r, "six"), "2001:db8::1");
  EXPECT_EQ(meaning<Ip6Prefix>(r, "sixnet"), "2001:db8::/32");
  EXPECT_EQ(meaning<IpAddress>(r, "n"), "unknown");
  EXPECT_EQ(meaning<EtherAddress>(r, "a"), "unknown");
}

TEST(AddressInfo, OneNameMayHaveSeveralKinds) {
  TestRouter r("top :: Script(pause); AddressInfo(me 18.26.4.44/24 00:50:BA:85:84:A9);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(meaning<IpAddress>(r, "me"), "18.26.4.44");
  EXPECT_EQ(meaning<IpPrefix>(r, "me:ipnet"), "18.26.4.44/24");
  EXPECT_EQ(meaning<IpAddress>(r, "me:bcast"), "18.26.4.255");
  EXPECT_EQ(meaning<EtherAddress>(r, "me:eth"), "00-50-BA-85-84-A9");
}

TEST(AddressInfo, AnAddressOfItsOwnCountsMoreThanAPrefixesAddress) {
  TestRouter r("top :: Script(pause); AddressInfo(me 18.26.4.44/24 18.26.4.1);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(meaning<IpAddress>(r, "me"), "18.26.4.1");
  EXPECT_EQ(meaning<IpPrefix>(r, "me"), "18.26.4.44/24");
}

TEST(AddressInfo, NamesAreKnownInTheirCompoundAndBelow) {
  TestRouter r(
      "top :: Script(pause); AddressInfo(a 1.0.0.1, b 1.0.0.2);"
      "x :: { in :: Script(pause); AddressInfo(a 2.0.0.1, c 2.0.0.3); y :: { deep :: Script(pause) } };");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(meaning<IpAddress>(r, "a"), "1.0.0.1");
  EXPECT_EQ(meaning<IpAddress>(r, "c"), "unknown");
  EXPECT_EQ(meaning<IpAddress>(r, "a", "x/in"), "2.0.0.1");
  EXPECT_EQ(meaning<IpAddress>(r, "b", "x/in"), "1.0.0.2");
  EXPECT_EQ(meaning<IpAddress>(r, "c", "x/y/deep"), "2.0.0.3");
}

TEST(AddressInfo, NamesAreKnownToElementsDeclaredBefore) {
  TestRouter r(
      "Idle -> EtherEncap(0x0800, me, them) -> Idle; AddressInfo(me 00:00:00:00:00:01, them 00:00:00:00:00:02);");
  EXPECT_TRUE(r.ok()) << r.errors();
}

TEST(AddressInfo, ReportsWhatIsNoAddress) {
  TestRouter r("AddressInfo(a 1.2.3.4 what, b, , c 1.2.3.4);");
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.errors(),
            "config:1: While configuring 'AddressInfo@1 :: AddressInfo':\n  'what' is not a recognizable address\n"
            "  expected 'NAME [ADDRS]'\nRouter could not be initialized!\n");
}

}  // namespace
}  // namespace headrace::testing
