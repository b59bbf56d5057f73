#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// The packets and the answers to them are Scapy's, computed checksums included.
const std::string kAddresses = "20010db8000000000000000000000001 20010db8000200000000000000000002";
const std::string kPlainUdp6 =
    "600000000010110120010db800000000000000000000000120010db800020000000000000000000203e807d00010db4e7061796c6f616421";
const std::string kIp6ToError = "6000000000403a4120010db80000000000000000000000fe20010db8000000000000000000000001";

std::string error6_graph(const std::string& arguments) {
  return "Idle -> m :: MarkIP6Header -> e :: ICMP6Error(" + arguments +
         ") -> CheckIP6Header(VERBOSE true) -> c :: Capture;";
}

/// The only answer to a packet, or "" when there is none.
std::string answer6(const std::string& arguments, std::string_view hex, uint8_t problem = 0,
                    PacketType type = PacketType::kHost) {
  TestRouter r(error6_graph("2001:db8::fe, " + arguments));
  EXPECT_TRUE(r.ok()) << r.errors();
  const std::string bytes = from_hex(hex);
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_anno_u8(anno_offset::kIcmpParamProb, problem);
  p->set_packet_type(type);
  r.push("m", p);
  const auto errors = captured(r, "c");
  EXPECT_LE(errors.size(), 1u);
  return errors.empty() ? "" : errors[0];
}

/// A packet from 2001:db8::1 to 2001:db8:2::2.
std::string packet6(const char* next_header, const std::string& payload,
                    const std::string& addresses = plain_hex(kAddresses)) {
  return plain_hex("60000000" + fmt::format("{:04x}", payload.size() / 2) + next_header + "40") + addresses + payload;
}

TEST(ICMP6Error, Messages) {
  EXPECT_EQ(answer6("timeexceeded", kPlainUdp6), kIp6ToError + "03002f2400000000" + kPlainUdp6);
  EXPECT_EQ(answer6("3, 0", kPlainUdp6), kIp6ToError + "03002f2400000000" + kPlainUdp6);
  EXPECT_EQ(answer6("packettoobig, PMTU 1400", kPlainUdp6), kIp6ToError + "02002aac00000578" + kPlainUdp6);
  EXPECT_EQ(answer6("unreachable, port", kPlainUdp6), kIp6ToError + "0104312000000000" + kPlainUdp6);
  EXPECT_EQ(answer6("parameterproblem, nextheader", kPlainUdp6, 6), kIp6ToError + "04012e1d00000006" + kPlainUdp6);
}

TEST(ICMP6Error, QuotesUpToTheSmallestMtu) {
  std::string data;
  for (int i = 0; i < 1400; ++i) data += "78";
  const std::string packet =
      "600000000580110920010db800000000000000000000000120010db800020000000000000000000203e807d005802456" + data;
  const std::string error = answer6("packettoobig, PMTU 1395", packet);
  EXPECT_EQ(error.size(), 2 * 1280u);
  EXPECT_EQ(error, "6000000004d83a4120010db80000000000000000000000fe20010db80000000000000000000000010200f8e300000573" +
                       packet.substr(0, 2 * 1232));
}

TEST(ICMP6Error, NoErrorsAboutErrors) {
  for (const char* type : {"01", "02", "03", "04", "7f", "89"})
    EXPECT_EQ(answer6("3", packet6("3a", std::string(type) + "00000000000000")), "") << type;
  for (const char* type : {"80", "81", "87"})
    EXPECT_NE(answer6("3", packet6("3a", std::string(type) + "00000000000000")), "") << type;
  EXPECT_EQ(answer6("3", packet6("3a", "")), "") << "too short to tell";
  // Behind destination options, and in a fragment that does not begin with the type.
  EXPECT_EQ(answer6("3", packet6("3c", "3a000104000000000100a34600000000")), "");
  EXPECT_NE(answer6("3", packet6("3c", "3a000104000000008000a34600000000")), "");
  EXPECT_EQ(answer6("3", packet6("2c", "3a000050000000003132333435363738")), "");
  EXPECT_NE(answer6("3", packet6("2c", "11000050000000003132333435363738")), "");
}

TEST(ICMP6Error, ExclusionsOfRfc4443) {
  const std::string node = "20010db8000000000000000000000001", group = "ff020000000000000000000000000001",
                    none(32, '0');
  for (const char* type : {"3", "unreachable, noroute", "parameterproblem, nextheader"})
    EXPECT_EQ(answer6(type, packet6("3b", "", node + group)), "") << type;
  for (const char* type : {"packettoobig", "parameterproblem, option"})
    EXPECT_NE(answer6(type, packet6("3b", "", node + group)), "") << type;
  for (const PacketType type : {PacketType::kBroadcast, PacketType::kMulticast}) {
    EXPECT_EQ(answer6("3", kPlainUdp6, 0, type), "");
    EXPECT_NE(answer6("2", kPlainUdp6, 0, type), "");
  }
  for (const std::string& source : {none, group})
    for (const char* type : {"2", "3"}) EXPECT_EQ(answer6(type, packet6("3b", "", source + node)), "") << type;
}

TEST(ICMP6Error, WhatIsNotAnsweredIsCounted) {
  TestRouter r(
      "Idle -> e :: ICMP6Error(2001:db8::fe, 3, RATE 10, BURST 1) -> c :: Capture; Idle -> m :: MarkIP6Header -> e;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", from_hex(kPlainUdp6));
  r.push("m", from_hex(kPlainUdp6.substr(0, 60)));
  r.push("m", from_hex("45000014 00000000 01110000 121a042c 121a0709" + std::string(40, '0')));
  r.push("m", from_hex(packet6("3b", "", std::string(64, '0'))));
  for (int i = 0; i < 3; ++i) r.push("m", from_hex(kPlainUdp6));
  EXPECT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(r.read("e.drop_reasons"), "3\tno IPv6 header\n1\tsource is no node\n2\trate limit\n");
}

TEST(ICMP6Error, HandlersAndArguments) {
  TestRouter r(error6_graph("2001:db8::fe, packettoobig"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("e.src") + " " + r.read("e.pmtu") + " " + r.read("e.rate") + " " + r.read("e.burst"),
            "2001:db8::fe 1280 1000 100");
  EXPECT_TRUE(r.write("e.pmtu", "1400"));
  EXPECT_FALSE(r.write("e.pmtu", "1279"));
  r.push("m", from_hex(kPlainUdp6));
  EXPECT_EQ(captured(r, "c").at(0), kIp6ToError + "02002aac00000578" + kPlainUdp6);
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(Ip6Address::from_bytes(p.anno() + anno_offset::kDstIp6).unparse(), "2001:db8::1");
  EXPECT_TRUE(r.write("e.config", "2001:db8::1, timeexceeded, reassembly"));
  r.push("m", from_hex(kPlainUdp6));
  EXPECT_EQ(captured(r, "c").at(1).substr(80, 4), "0301");

  for (const char* arguments : {"2001:db8::fe", "2001:db8::fe, nonsense", "2001:db8::fe, unreachable, nonsense",
                                "2001:db8::fe, timeexceeded, 256", "2001:db8::fe, 2, PMTU 1279", "10.0.0.1, 3"})
    EXPECT_FALSE(TestRouter(error6_graph(arguments)).ok()) << arguments;
  EXPECT_NE(TestRouter(error6_graph("2001:db8::fe, 128")).errors().find("ICMPv6 type 128 is not an error type"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
