#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kSolicitationBytes =
    "0000c04371ef 009027e0231f 86dd 6000000000203aff 3ffe1ce1000200000000000000000002 3ffe1ce1000200000200c0fffe4371ef"
    "8700 af08 00000000 3ffe1ce1000200000200c0fffe4371ef 0101 009027e0231f";

std::string advertiser(const std::string& arguments) {
  return "Idle -> a :: IP6NDAdvertiser(" + arguments + ") -> c :: Capture;";
}

TEST(IP6NDAdvertiser, AnswersForItsAddresses) {
  TestRouter r(advertiser("3ffe:1ce1:2::/48 1:1:1:1:1:1, 3ffe:1ce1:2:0:200:c0ff:fe43:71ef 00:e0:29:05:e5:6f"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", from_hex(kSolicitationBytes));
  ASSERT_EQ(captured(r, "c").size(), 1u) << r.read("a.drop_reasons");
  std::string answer = captured(r, "c")[0];
  answer.replace(2 * 56, 4, "----");  // the checksum, which the next element would check
  EXPECT_EQ(answer.substr(0, 2 * 56),
            plain_hex("009027e0231f 00e02905e56f 86dd 6000000000203aff 3ffe1ce1000200000200c0fffe4371ef"
                      "3ffe1ce1000200000000000000000002 8800"));
  EXPECT_EQ(answer.substr(2 * 58), plain_hex("c0000000 3ffe1ce1000200000200c0fffe4371ef 0201 00e02905e56f"));
}

TEST(IP6NDAdvertiser, ItsChecksumIsRight) {
  TestRouter r(advertiser("::/0 00:e0:29:05:e5:6f"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", from_hex(kSolicitationBytes));
  ASSERT_EQ(captured(r, "c").size(), 1u);
  const std::string answer = capture(r, "c").bytes(0);
  // The pseudo header: addresses, length and protocol.
  const std::string summed = answer.substr(22, 32) + from_hex("0020003a") + answer.substr(54);
  uint32_t sum = 0;
  for (size_t i = 0; i < summed.size(); i += 2)
    sum += static_cast<uint32_t>(static_cast<uint8_t>(summed[i]) << 8 | static_cast<uint8_t>(summed[i + 1]));
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
}

TEST(IP6NDAdvertiser, DropsTheRest) {
  TestRouter r(advertiser("3ffe:1ce1:2::/48 1:1:1:1:1:1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string good = from_hex(kSolicitationBytes);
  for (const size_t at : {12, 14, 20, 21, 54, 55, 56, 85}) {  // types, hop limit, code, checksum, option
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x80);
    r.push("a", bad);
  }
  for (size_t n = 0; n < good.size(); ++n) r.push("a", good.substr(0, n));
  EXPECT_TRUE(captured(r, "c").empty());
  EXPECT_EQ(r.read("a.drop_reasons"), std::to_string(8 + good.size()) + "\tno valid neighbor solicitation\n");
  TestRouter other(advertiser("2001:db8::/32 1:1:1:1:1:1"));
  other.push("a", good);
  EXPECT_EQ(other.read("a.drop_reasons"), "1\tnot for a known address\n");
}

TEST(IP6NDAdvertiser, LongestPrefixFirstAndErrors) {
  TestRouter r(advertiser("::/0 1:1:1:1:1:1, 2001:db8::1 2001:db8:1::/48 2:2:2:2:2:2"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.table"),
            "2001:db8::1/128 02-02-02-02-02-02\n2001:db8:1::/48 02-02-02-02-02-02\n::/0 01-01-01-01-01-01\n");
  const std::pair<const char*, const char*> kErrors[] = {
      {"1:1:1:1:1:1", "argument 0: missing IP6/LENGTH"},
      {"2001:db8::1", "argument 0: missing ETH"},
      {"::/0 1:1:1:1:1:1, 2001:db8::1 house", "argument 1: expected IP6/LENGTH ETH"},
      {"::/0 1:1:1:1:1:1 2:2:2:2:2:2", "argument 0: more than one ETH"}};
  for (const auto& [arguments, message] : kErrors)
    EXPECT_NE(TestRouter(advertiser(arguments)).errors().find(message), std::string::npos) << arguments;
}

}  // namespace
}  // namespace headrace::testing
