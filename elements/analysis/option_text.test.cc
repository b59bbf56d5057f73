#include "elements/analysis/option_text.hh"

#include "elements/analysis/md5.hh"
#include "support/test_router.hh"

namespace headrace::testing {
namespace {

std::string ip_text(std::string_view hex) {
  const std::string bytes = from_hex(hex);
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  std::string text;
  append_ip_options(p, p + bytes.size(), text);
  return text;
}
std::string tcp_text(std::string_view hex, TcpOptions which = TcpOptions::kAll) {
  const std::string bytes = from_hex(hex);
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  std::string text;
  append_tcp_options(p, p + bytes.size(), which, text);
  return text;
}
std::string ip_bytes(std::string_view text) {
  std::string bytes;
  return parse_ip_options(text, bytes) ? to_hex(bytes) : "bad";
}
std::string tcp_bytes(std::string_view text, TcpOptions which = TcpOptions::kAll) {
  std::string bytes;
  return parse_tcp_options(text, which, bytes) ? to_hex(bytes) : "bad";
}

TEST(IpOptionText, NoneIsADot) {
  EXPECT_EQ(ip_text(""), ".");
  EXPECT_EQ(ip_text("01010100"), ".");
  EXPECT_EQ(ip_bytes("."), "");
}

TEST(IpOptionText, Routes) {
  // Record route: two addresses recorded, room for one more.
  EXPECT_EQ(ip_text("070f0c 01020304 05060708 00000000"), "rr{1.2.3.4,5.6.7.8}+1");
  EXPECT_EQ(ip_bytes("rr{1.2.3.4,5.6.7.8}+1"), "070f0c010203040506070800000000");
  // Strict source route whose pointer is at the second address; one that is used up.
  EXPECT_EQ(ip_text("890b08 01020304 05060708"), "ssrr{1.2.3.4^5.6.7.8}");
  EXPECT_EQ(ip_bytes("ssrr{1.2.3.4^5.6.7.8}"), "890b080102030405060708");
  EXPECT_EQ(ip_bytes("ssrr{1.2.3.4,^5.6.7.8}"), "890b080102030405060708");
  EXPECT_EQ(ip_text("83070801020304"), "lsrr{1.2.3.4^}");
  EXPECT_EQ(ip_bytes("lsrr{1.2.3.4^}"), "83070801020304");
}

TEST(IpOptionText, Timestamps) {
  // Type 0: two times taken, one of them not standard, room for one, overflow 3.
  EXPECT_EQ(ip_text("44100d30 00000001 80000002 00000000"), "ts{1,!2}+1++3");
  EXPECT_EQ(ip_bytes("ts{1,!2}+1++3"), "44100d30000000018000000200000000");
  // Type 1: addresses and times.
  EXPECT_EQ(ip_text("440c0d01 01000001 00000007"), "ts.ip{1.0.0.1=7^}");
  EXPECT_EQ(ip_bytes("ts.ip{1.0.0.1=7}"), "440c0d010100000100000007");
  EXPECT_EQ(ip_bytes("ts{1.0.0.1=7}"), "440c0d010100000100000007");
  // Type 3: prespecified addresses, the first of which is done.
  EXPECT_EQ(ip_text("44140d03 01000001 00000007 01000002 00000000"), "ts.preip{1.0.0.1=7^1.0.0.2}");
  EXPECT_EQ(ip_bytes("ts.preip{1.0.0.1=7^1.0.0.2}"),
            "44140d030100000100000007"
            "0100000200000000");
}

TEST(IpOptionText, OtherOptionsAndSeveral) {
  EXPECT_EQ(ip_text("94040000 01"), "148=0:0");
  EXPECT_EQ(ip_bytes("148=0:0"), "94040000");
  EXPECT_EQ(ip_text("6202 630500050a"), "98;99=0:5:10");
  EXPECT_EQ(ip_bytes("nop;nop;eol"), "010100");
}

TEST(IpOptionText, MalformedIsAQuestionMark) {
  EXPECT_EQ(ip_text("0701"), "?");
  EXPECT_EQ(ip_text("07ff04"), "?");
  EXPECT_EQ(ip_text("940400"), "?");
  EXPECT_EQ(ip_text("07"), "?");
  EXPECT_EQ(ip_bytes("rr{1.2.3}"), "bad");
  EXPECT_EQ(ip_bytes("rr{1.2.3.256}"), "bad");
  EXPECT_EQ(ip_bytes("256"), "bad");
  EXPECT_EQ(ip_bytes("rr{}+1 "), "bad");
  EXPECT_EQ(ip_bytes("rr{}+10"), "bad");  // 43 bytes
}

TEST(TcpOptionText, KnownOptions) {
  EXPECT_EQ(tcp_text("020405b4 0402 080a00000001 00000002 01 030307"), "mss1460;sackok;ts1:2;wscale7");
  EXPECT_EQ(tcp_bytes("mss1460;sackok;ts1:2;wscale7"), "020405b40402080a0000000100000002030307");
  EXPECT_EQ(tcp_text("0512 00000001 00000002 00000003 00000004"), "sack1-2;sack3-4");
  EXPECT_EQ(tcp_bytes("sack1-2,sack3-4"), "051200000001000000020000000300000004");
  EXPECT_EQ(tcp_bytes("ts1:2"), "0101080a0000000100000002");
}

TEST(TcpOptionText, Selections) {
  constexpr const char* kOptions = "020405b4 0402 080a00000001 00000002";
  EXPECT_EQ(tcp_text(kOptions, TcpOptions::kNoTimestamp), "mss1460;sackok");
  EXPECT_EQ(tcp_text(kOptions, TcpOptions::kSack), "sackok");
  EXPECT_EQ(tcp_text("080a00000001 00000002", TcpOptions::kSack), ".");
  EXPECT_EQ(tcp_bytes("ts1:2", TcpOptions::kNoTimestamp), "bad");
  EXPECT_EQ(tcp_bytes("mss1", TcpOptions::kSack), "bad");
}

TEST(TcpOptionText, Malformed) {
  EXPECT_EQ(tcp_text("0205010203"), "?");
  EXPECT_EQ(tcp_text("0202"), "?");
  EXPECT_EQ(tcp_text("0503ff"), "?");
  EXPECT_EQ(tcp_bytes("mss70000"), "bad");
  EXPECT_EQ(tcp_bytes("wscale"), "bad");
  EXPECT_EQ(tcp_bytes("sack1"), "bad");
}

// RFC 1321, A.5.
TEST(Md5, ReferenceDigests) {
  const auto hex = [](std::string_view s) {
    return md5_hex(md5(reinterpret_cast<const uint8_t*>(s.data()), s.size()));
  };
  EXPECT_EQ(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
  EXPECT_EQ(hex(std::string(64, 'x')), "c1bb4f81d892b2d57947682aeb252456");
}

TEST(Md5, TextTakesSixBitsAtATimeFromTheLowest) {
  std::array<uint8_t, 16> digest{};
  EXPECT_EQ(md5_text(digest), "aaaaaaaaaaaaaaaaaaaaaa");
  digest[0] = 0x41;   // bits 0-5: 1, bits 6-7: 1
  digest[1] = 0x01;   // bit 8 is bit 2 of the second character
  digest[15] = 0xc0;  // the last character has the two bits that are left
  EXPECT_EQ(md5_text(digest), "bfaaaaaaaaaaaaaaaaaaad");
}

}  // namespace
}  // namespace headrace::testing
