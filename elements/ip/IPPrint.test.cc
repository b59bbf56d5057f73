#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

/// What `IPPrint(arguments)` says of an IP packet whose transport header is `header` bytes in, without the last
/// newline.
std::string print(std::string_view hex, const std::string& arguments = "TIMESTAMP false", int header = 20) {
  TestRouter r("Idle -> p :: IPPrint(" + arguments + ") -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  const std::string bytes = from_hex(hex);
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_network_header(0, header);
  p->set_timestamp(Timestamp::from_us(1000020));
  p->set_anno_u32(anno_offset::kAggregate, 7);
  ::testing::internal::CaptureStderr();
  r.push("p", p);
  std::string text = ::testing::internal::GetCapturedStderr();
  if (!text.empty()) text.pop_back();  // the newline
  return text;
}

constexpr const char* kTcp =
    "45020028 12344000 40060000 01000001 02000002 000a0014 00000005 00000002 50101000 00000000";
constexpr const char* kUdp = "45000020 00000000 40110000 01000001 02000002 00350036 000c0000 68692121";

TEST(IPPrint, Tcp) {
  EXPECT_EQ(print(kTcp), "1.0.0.1.10 > 2.0.0.2.20: . 5:5(0,40,40) ack 2 win 4096");
  // SYN and FIN count one each; a header of 24 bytes; 3 bytes of data.
  EXPECT_EQ(
      print(
          "4500002f 00000000 40060000 01000001 02000002 000a0014 00000005 00000000 60031000 00000000 00000000 616263"),
      "1.0.0.1.10 > 2.0.0.2.20: SF 5:10(5,47,47) win 4096");
  EXPECT_EQ(print("45000028 00000000 40060000 01000001 02000002 000a0014 00000005 00000000 500c1000 00000000"),
            "1.0.0.1.10 > 2.0.0.2.20: RP 5:5(0,40,40) win 4096");
}

TEST(IPPrint, Udp) { EXPECT_EQ(print(kUdp), "1.0.0.1.53 > 2.0.0.2.54: udp 12"); }

TEST(IPPrint, OtherProtocols) {
  EXPECT_EQ(print("45000014 00000000 402f0000 01000001 02000002"), "1.0.0.1 > 2.0.0.2: ip-proto-47");
}

TEST(IPPrint, Icmp) {
  const auto icmp = [](const std::string& hex) { return print("45000040 00000000 40010000 01000001 02000002" + hex); };
  EXPECT_EQ(icmp("08000000 01020003"), "1.0.0.1 > 2.0.0.2: icmp echo (258, 3)");
  EXPECT_EQ(icmp("00000000 01020003"), "1.0.0.1 > 2.0.0.2: icmp echo-reply (258, 3)");
  EXPECT_EQ(print("4500001c 00000000 40010000 01000001 02000002 08000000 01020003", "TIMESTAMP false, SWAP false"),
            "1.0.0.1 > 2.0.0.2: icmp echo (513, 768)");
  EXPECT_EQ(icmp("0b000000 00000000"), "1.0.0.1 > 2.0.0.2: icmp timeexceeded transit");
  EXPECT_EQ(icmp("28050000 00000000"), "1.0.0.1 > 2.0.0.2: icmp type 40 code 5");
  EXPECT_EQ(icmp("0303"), "1.0.0.1 > 2.0.0.2: icmp unreachable port truncated-icmp");
  const std::string inner = "4500001c 00000000 40110000 03000003 04000004 00070008 00080000";
  EXPECT_EQ(icmp("03030000 00000000" + inner), "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable port udp/8");
  EXPECT_EQ(icmp("03020000 00000000" + inner), "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable protocol udp");
  EXPECT_EQ(icmp("03040000 000005dc" + inner), "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable needfrag (mtu 1500)");
  EXPECT_EQ(icmp("03010000 00000000" + inner), "1.0.0.1 > 2.0.0.2: icmp 4.0.0.4 unreachable host");
}

TEST(IPPrint, Truncated) {
  EXPECT_EQ(print("45000028 0000"), "truncated-ip");
  EXPECT_EQ(print("45000028 00000000 40060000 01000001 02000002 000a"), "1.0.0.1 > 2.0.0.2: truncated-tcp");
  EXPECT_EQ(print("45000028 00000000 40060000 01000001 02000002 000a0014 0000"),
            "1.0.0.1.10 > 2.0.0.2.20: truncated-tcp");
  EXPECT_EQ(print("45000028 00000000 40110000 01000001 02000002 000a0014"), "1.0.0.1.10 > 2.0.0.2.20: truncated-udp");
}

TEST(IPPrint, Fragments) {
  EXPECT_EQ(print("45000028 00072001 40110000 01000001 02000002 000a0014 0000000000000000 0000000000000000"),
            "1.0.0.1 > 2.0.0.2: udp (frag 7:20@8+)");
}

TEST(IPPrint, FieldsOnRequest) {
  EXPECT_EQ(print(kUdp, "lab, ID true, TTL true, TOS true, LENGTH true"),
            "lab: 1.000020: id 0 ttl 64 tos 0 length 32 1.0.0.1.53 > 2.0.0.2.54: udp 12");
  EXPECT_EQ(print(kUdp, "TIMESTAMP false, AGGREGATE true, PAINT true"), "#7.0: 1.0.0.1.53 > 2.0.0.2.54: udp 12");
  EXPECT_EQ(print(kUdp, "TIMESTAMP false, PAINT true"), "paint 0: 1.0.0.1.53 > 2.0.0.2.54: udp 12");
}

TEST(IPPrint, Contents) {
  EXPECT_EQ(print(kUdp, "TIMESTAMP false, PAYLOAD HEX"), "1.0.0.1.53 > 2.0.0.2.54: udp 12\n  68692121");
  EXPECT_EQ(print(kUdp, "TIMESTAMP false, PAYLOAD ASCII"), "1.0.0.1.53 > 2.0.0.2.54: udp 12\n  hi!!");
  EXPECT_EQ(print(kUdp, "TIMESTAMP false, CONTENTS HEX, MAXLENGTH 26"),
            "1.0.0.1.53 > 2.0.0.2.54: udp 12\n  45000020 00000000 40110000 01000001 02000002 00350036\n  000c");
}

TEST(IPPrint, WithoutNetworkHeaderOrInactiveItIsSilent) {
  EXPECT_EQ(print(kUdp, "ACTIVE false"), "");
  TestRouter r("Idle -> p :: IPPrint -> c :: Capture;");
  ::testing::internal::CaptureStderr();
  r.push("p", from_hex(kUdp));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
}

TEST(IPPrint, PrintsToAFile) {
  TemporaryFile file;
  EXPECT_EQ(print(kUdp, "x, TIMESTAMP false, OUTFILE " + file.path()), "");
  EXPECT_EQ(file.content(), "x: 1.0.0.1.53 > 2.0.0.2.54: udp 12\n");
}

TEST(IPPrint, OneOfContentsAndPayload) {
  EXPECT_NE(TestRouter("Idle -> IPPrint(CONTENTS HEX, PAYLOAD HEX) -> Discard;")
                .errors()
                .find("specify at most one of PAYLOAD and CONTENTS"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
