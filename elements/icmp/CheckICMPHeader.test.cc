#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kIp = "4500001f 00090000 400177d3 01000001 02000002";

/// "good", or why an ICMP message is bad. Its checksum is put right unless it is given.
std::string verdict(const std::string& message_hex, bool fix_checksum = true) {
  std::string message = from_hex(message_hex);
  if (fix_checksum) {
    uint32_t sum = 0;
    for (size_t i = 0; i < message.size(); ++i) sum += uint32_t{static_cast<uint8_t>(message[i])} << (i % 2 ? 0 : 8);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    message[2] = static_cast<char>(~sum >> 8);
    message[3] = static_cast<char>(~sum);
  }
  TestRouter r("Idle -> m :: MarkIPHeader -> c :: CheckICMPHeader -> good :: Capture; c[1] -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push("m", from_hex(kIp) + message);
  const std::string text = ::testing::internal::GetCapturedStderr();
  const std::string prefix = "c: ICMP header check failed: ";
  return text.empty() ? "good" : text.substr(prefix.size(), text.size() - prefix.size() - 1);
}

TEST(CheckICMPHeader, Messages) {
  EXPECT_EQ(verdict("0800339a 00010002 616263", false), "good");
  EXPECT_EQ(verdict("0800339b 00010002 616263", false), "bad ICMP checksum");
  EXPECT_EQ(verdict("08000000 000000"), "bad packet length");
}

TEST(CheckICMPHeader, LengthsSuitTheType) {
  const std::string quote(56, '1');  // 28 bytes
  for (const char* type : {"03", "04", "05", "0b", "0c"}) {
    EXPECT_EQ(verdict(type + std::string("000000 00000000") + quote), "good") << type;
    EXPECT_EQ(verdict(type + std::string("000000 00000000") + quote.substr(2)), "bad packet length") << type;
  }
  for (const char* type : {"0d", "0e"}) {
    EXPECT_EQ(verdict(type + std::string("000000 00000000 000000000000000000000000")), "good");
    EXPECT_EQ(verdict(type + std::string("000000 00000000 00000000000000000000000000")), "bad packet length");
  }
  for (const char* type : {"0f", "10"}) {
    EXPECT_EQ(verdict(type + std::string("000000 00000000")), "good");
    EXPECT_EQ(verdict(type + std::string("000000 00000000 00")), "bad packet length");
  }
}

TEST(CheckICMPHeader, OtherProtocols) {
  TestRouter r("Idle -> m :: MarkIPHeader -> c :: CheckICMPHeader -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push("m", from_hex("4500001f 00090000 401177d3 01000001 02000002 0800339a 00010002 616263"));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(r.read("c.drop_reasons"), "1\tnot ICMP\n");
}

}  // namespace
}  // namespace headrace::testing
