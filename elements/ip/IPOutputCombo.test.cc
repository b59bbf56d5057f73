#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(IPOutputCombo, ActsAsTheElementsThatItStandsFor) {
  TestRouter r(
      "Idle -> o :: IPOutputCombo(1, 9.0.0.9, 24) -> c :: Capture; o[1] -> [1]c; o[2] -> [2]c; o[3] -> [3]c; o[4] -> [4]c;"
      "Idle -> x :: DropBroadcasts -> p :: PaintTee(1) -> g :: IPGWOptions(9.0.0.9) -> FixIPSrc(9.0.0.9)"
      " -> t :: DecIPTTL -> l :: CheckLength(24) -> d :: Capture;"
      "p[1] -> [1]d; g[1] -> [2]d; t[1] -> [3]d; l[1] -> [4]d;");
  ASSERT_TRUE(r.ok()) << r.errors();
  struct Case {
    const char* bytes;
    int header_length;
    uint8_t paint;
    bool fix;
    PacketType type;
  };
  const PacketType host = PacketType::kHost;
  const Case cases[] = {
      {"45000014 00000000 401177d7 01000001 02000002", 20, 0, false, host},
      {"45000014 00000000 401177d7 01000001 02000002", 20, 1, false, host},                      // where it came in
      {"45000014 00000000 401177d7 01000001 02000002", 20, 0, true, host},                       // wants its source
      {"45000014 00000000 401177d7 01000001 02000002", 20, 0, false, PacketType::kBroadcast},    // dropped
      {"45000014 00000000 401177d7 01000001 02000002", 20, 0, false, PacketType::kMulticast},    // dropped
      {"45000014 00000000 0111b6d7 01000001 02000002", 20, 0, true, host},                       // expired
      {"45000014 00000000 0011b7d7 01000001 02000002", 20, 1, false, host},                      // expired, a copy too
      {"4500001c 00000000 401177cf 01000001 02000002 0001 0002 0008 0000", 20, 0, false, host},  // too long
      {"4700001c 00000000 40010000 01000001 02000002 07070400 00000000", 28, 0, false, host},  // record route, too long
      {"46000018 00000000 40010000 01000001 02000002 01010100", 24, 1, true, host},            // no options to fill in
      {"46000018 00000000 40010000 01000001 02000002 07090400", 24, 1, false, host},           // bad option, a copy too
  };
  for (const Case& one : cases)
    for (const char* to : {"o", "x"}) {
      const std::string bytes = from_hex(one.bytes);
      Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
      p->set_network_header(0, one.header_length);
      p->set_anno_u8(anno_offset::kPaint, one.paint);
      p->set_anno_u8(anno_offset::kFixIpSrc, one.fix);
      p->set_packet_type(one.type);
      r.push(to, p);
    }
  EXPECT_EQ(captured(r, "c"), captured(r, "d"));
  const auto& combo = capture(r, "c").seen();
  const auto& separate = capture(r, "d").seen();
  ASSERT_EQ(combo.size(), separate.size());
  EXPECT_EQ(combo.size(), 13u);
  for (size_t i = 0; i < combo.size(); ++i) {
    EXPECT_EQ(combo[i].port, separate[i].port) << i;
    EXPECT_EQ(std::memcmp(combo[i].packet->anno(), separate[i].packet->anno(), Packet::kAnnoSize), 0) << i;
  }
}

TEST(IPOutputCombo, CountsDropsByReason) {
  TestRouter r("Idle -> m :: MarkIPHeader -> o :: IPOutputCombo(1, 9.0.0.9, 24) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000014 00000000 0111b6d7 01000001 02000002"));
  r.push("m", from_hex("4500001c 00000000 401177cf 01000001 02000002 0001 0002 0008 0000"));
  r.push("m", from_hex("46000018 00000000 40010000 01000001 02000002 07090400"));
  r.push("m", from_hex("46000018 00000000 40010000 01000001 02000002"));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("o.drop_reasons"),
            "1\tbad IP header length\n1\tbad IP option\n1\tttl expired\n1\tlonger than MTU\n");
}

TEST(IPOutputCombo, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "COLOR: required argument missing"), std::pair("1", "IPADDR: required argument missing"),
        std::pair("1, 9.0.0.9", "MTU: required argument missing"),
        std::pair("256, 9.0.0.9, 1500", "COLOR: out of range"), std::pair("1, x, 1500", "IPADDR: "),
        std::pair("1, 9.0.0.9, x", "MTU: ")}) {
    TestRouter r("Idle -> IPOutputCombo(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
