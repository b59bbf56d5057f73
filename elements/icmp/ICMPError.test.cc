#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kUdp = "45000024 12340000 0111782d 121a042c 121a0709 03e807d0 0010075d 7061796c6f616421";

std::string graph(const std::string& arguments) {
  return "Idle -> m :: MarkIPHeader -> e :: ICMPError(" + arguments +
         ") -> CheckIPHeader(VERBOSE true) -> c :: Capture;";
}

/// The error without its identification and checksum, which differ from one to the next.
std::string masked(std::string error) { return error.replace(8, 4, "....").replace(20, 4, "...."); }

/// The only answer to a packet, or "" when there is none.
std::string answer(const std::string& arguments, std::string_view hex, uint8_t problem = 0, uint32_t gateway = 0,
                   PacketType type = PacketType::kHost) {
  TestRouter r(graph(arguments));
  EXPECT_TRUE(r.ok()) << r.errors();
  const std::string bytes = from_hex(hex);
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_anno_u8(anno_offset::kIcmpParamProb, problem);
  IpAddress::from_host_order(gateway).copy_to(p->anno() + anno_offset::kDstIp);
  p->set_packet_type(type);
  r.push("m", p);
  const auto errors = captured(r, "c");
  return errors.empty() ? "" : masked(errors[0]);
}

const std::string kIpToError = "45c00040....00004101....121a0418121a042c";

TEST(ICMPError, Messages) {
  const std::string quote = plain_hex(kUdp);
  EXPECT_EQ(answer("18.26.4.24, timeexceeded", kUdp), kIpToError + "0b00248a00000000" + quote);
  EXPECT_EQ(answer("18.26.4.24, 11, 0", kUdp), kIpToError + "0b00248a00000000" + quote);
  EXPECT_EQ(answer("18.26.4.24, parameterproblem", kUdp, 21), kIpToError + "0c000e8a15000000" + quote);
  EXPECT_EQ(answer("18.26.4.24, redirect, host", kUdp, 0, 0x121a0401), kIpToError + "0501146e121a0401" + quote);
  EXPECT_EQ(answer("18.26.4.24, unreachable, needfrag, PMTU 1400", kUdp), kIpToError + "0304270e00000578" + quote);
  EXPECT_EQ(answer("18.26.4.24, sourcequench", kUdp), "4500" + kIpToError.substr(4) + "04002b8a00000000" + quote);
}

TEST(ICMPError, LengthIsLimited) {
  const std::string big = "45000404 12340000 0111744d 121a042c 121a0709 03e807d0 03f071a2";
  const std::string packet = plain_hex(big) + std::string(2000, '7');
  std::string data;
  for (int i = 0; i < 1000; ++i) data += "78";
  EXPECT_EQ(answer("18.26.4.24, 11", plain_hex(big) + data),
            "45c00240....00004101....121a0418121a042c0b00195b00000000" + (plain_hex(big) + data).substr(0, 548 * 2));
  EXPECT_EQ(answer("18.26.4.24, 11, MTU 200", plain_hex(big) + data),
            "45c000c8....00004101....121a0418121a042c0b0091d300000000" + (plain_hex(big) + data).substr(0, 172 * 2));
}

TEST(ICMPError, SourceRoutesAreReversed) {
  const std::string routed = plain_hex(
      "4a00003000010000010668f8 121a042c 0a000008 89130c 80042d3c 8004313d 01020304 05060708 00"
      "3031323334353637");
  EXPECT_EQ(answer("19.19.19.19, timeexceeded", routed),
            "48c00058....00004101....131313138004313d890b0480042d3c121a042c000b00282f00000000" + routed);
  EXPECT_EQ(answer("19.19.19.19, redirect, host", routed), "");
  // A problem in the source route itself: the route is not used.
  EXPECT_EQ(answer("19.19.19.19, parameterproblem", routed, 22).substr(0, 2), "45");
  EXPECT_EQ(answer("19.19.19.19, parameterproblem", routed, 39).substr(0, 2), "48");
}

TEST(ICMPError, ReversedRoutesEndAtTheSender) {
  // From 30.1.1.1 through 1.2.3.4 and 5.6.7.8: back to 5.6.7.8 first, then 1.2.3.4, then 30.1.1.1.
  const std::string routed = plain_hex("48000020 00000000 0111 0000 1e010101 12345678 830b0c 01020304 05060708 00");
  TestRouter r(graph("19.19.19.19, timeexceeded"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(routed));
  const std::string error = captured(r, "c").at(0);
  EXPECT_EQ(error.substr(24, 16), "1313131305060708");
  EXPECT_EQ(error.substr(40, 24), plain_hex("830b04 01020304 1e010101 00"));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "5.6.7.8");

  // A sender that recorded itself is named once (RFC 1122, 3.2.1.8).
  const std::string twice = plain_hex("48000020 00000000 0111 0000 1e010101 12345678 830b0c 1e010101 05060708 00");
  const std::string once = answer("19.19.19.19, timeexceeded", twice);
  EXPECT_EQ(once.substr(0, 2), "47");
  EXPECT_EQ(once.substr(32, 8), "05060708");
  EXPECT_EQ(once.substr(40, 16), plain_hex("830704 1e010101 00"));
}

TEST(ICMPError, RouteThatHasNotBegunLeavesNoOption) {
  const std::string error =
      answer("19.19.19.19, timeexceeded", "48000020 00000000 0111 0000 1e010101 12345678 830b04 01020304 05060708 00");
  EXPECT_EQ(error.substr(0, 2), "45");
  EXPECT_EQ(error.substr(32, 8), "1e010101");
}

TEST(ICMPError, NoErrorsAboutErrors) {
  const std::string header = "45000020 00000000 0101 0000 121a042c 121a0709";
  for (const char* type : {"03", "04", "05", "0b", "0c"})
    EXPECT_EQ(answer("18.26.4.24, 11", header + type + "000000 00000000 00000000"), "") << type;
  for (const char* type : {"00", "08", "0d"})
    EXPECT_NE(answer("18.26.4.24, 11", header + type + "000000 00000000 00000000"), "") << type;
  EXPECT_EQ(answer("18.26.4.24, 11", header + "080000"), "") << "too short to tell";
}

TEST(ICMPError, ExclusionsOfRfc1812) {
  const auto from_to = [](const char* source, const char* destination) {
    return std::string("45000014 00000000 0111 0000") + source + destination;
  };
  EXPECT_NE(answer("18.26.4.24, 11", from_to("121a042c", "121a0709")), "");
  for (const char* bad : {"ffffffff", "e0000005", "121a04ff"}) {
    EXPECT_EQ(answer("18.26.4.24, 11, 0, 18.26.4.255", from_to("121a042c", bad)), "") << bad;
    EXPECT_EQ(answer("18.26.4.24, 11, BADADDRS 18.26.4.255", from_to(bad, "121a0709")), "") << bad;
  }
  for (const char* bad : {"00000000", "00000001", "7f000001", "f0000001"})
    EXPECT_EQ(answer("18.26.4.24, 11", from_to(bad, "121a0709")), "") << bad;
  for (const PacketType type : {PacketType::kBroadcast, PacketType::kMulticast})
    EXPECT_EQ(answer("18.26.4.24, 11", kUdp, 0, 0, type), "");
  EXPECT_EQ(answer("18.26.4.24, 11", "45000024 12340001" + kUdp.substr(17)), "");
  EXPECT_NE(answer("18.26.4.24, 11", "45000024 12342000" + kUdp.substr(17)), "");
}

TEST(ICMPError, WhatIsNotAnsweredIsCounted) {
  TestRouter r("Idle -> e :: ICMPError(18.26.4.24, 11) -> c :: Capture; Idle -> m :: MarkIPHeader -> e;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex(kUdp));
  r.push("m", from_hex("46000014 00000000 01110000 121a042c 121a0709"));
  r.push("m", from_hex("45000014 00000000 01110000 00000000 121a0709"));
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("e.drop_reasons"), "2\tno IP header\n1\tsource is no host\n");
}

TEST(ICMPError, TheRateIsLimited) {
  TestRouter r("Idle -> m :: MarkIPHeader -> e :: ICMPError(18.26.4.24, 11, RATE 10, BURST 3) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto sent_after = [&](int64_t ms, int tries) {
    clock::jump_steady(clock::steady() + Timestamp::from_ms(ms));
    const size_t before = captured(r, "c").size();
    for (int i = 0; i < tries; ++i) r.push("m", from_hex(kUdp));
    return captured(r, "c").size() - before;
  };
  EXPECT_EQ(sent_after(0, 5), 3u);
  EXPECT_EQ(sent_after(50, 5), 0u);
  EXPECT_EQ(sent_after(60, 5), 1u);
  EXPECT_EQ(sent_after(250, 5), 2u);
  EXPECT_EQ(sent_after(60000, 5), 3u) << "no more than BURST, however long the rest";
  EXPECT_EQ(r.read("e.drop_reasons"), "16\trate limit\n");
  // What gets no answer anyhow does not count.
  r.push("m", from_hex("45000014 00000000 01110000 00000000 121a0709"));
  EXPECT_EQ(sent_after(100, 1), 1u);
  EXPECT_TRUE(r.write("e.rate", "0"));
  EXPECT_EQ(sent_after(0, 500), 500u);
  EXPECT_FALSE(r.write("e.burst", "0"));
}

TEST(ICMPError, Annotations) {
  for (const bool fix : {true, false}) {
    TestRouter r(std::string("Idle -> m :: MarkIPHeader -> e :: ICMPError(18.26.4.24, 11") +
                 (fix ? "" : ", USE_FIX_ANNO false") + ") -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.push("m", from_hex(kUdp));
    r.push("m", from_hex(kUdp));
    const Packet& p = *capture(r, "c").seen()[0].packet;
    EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "18.26.4.44");
    EXPECT_EQ(p.anno_u8(anno_offset::kFixIpSrc), fix);
    EXPECT_EQ(p.timestamp().sec(), 1000000000);
    EXPECT_EQ(p.network_header_length(), 20);
    EXPECT_NE(captured(r, "c")[0].substr(8, 4), captured(r, "c")[1].substr(8, 4)) << "identifications differ";
  }
}

TEST(ICMPError, HandlersAndArguments) {
  TestRouter r(graph("18.26.4.24, unreachable, needfrag"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.src") + " " + r.read("e.mtu") + " " + r.read("e.pmtu"), "18.26.4.24 576 0");
  EXPECT_TRUE(r.write("e.pmtu", "1400"));
  EXPECT_TRUE(r.write("e.src", "18.26.4.25"));
  r.push("m", from_hex(kUdp));
  EXPECT_EQ(captured(r, "c")[0].substr(24, 32), "121a0419121a042c0304270e00000578");
  EXPECT_TRUE(r.write("e.config", "1.1.1.1, timeexceeded, reassembly"));
  r.push("m", from_hex(kUdp));
  EXPECT_EQ(captured(r, "c")[1].substr(40, 4), "0b01");

  EXPECT_FALSE(TestRouter(graph("18.26.4.24")).ok());
  EXPECT_FALSE(TestRouter(graph("18.26.4.24, nonsense")).ok());
  EXPECT_FALSE(TestRouter(graph("18.26.4.24, unreachable, nonsense")).ok());
  EXPECT_FALSE(TestRouter(graph("18.26.4.24, timeexceeded, 256")).ok());
  EXPECT_FALSE(TestRouter(graph("18.26.4.24, timeexceeded, MTU 50")).ok());
  TestRouter echo(graph("18.26.4.24, 8"));
  EXPECT_NE(echo.errors().find("ICMP type 8 is not an error type"), std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
