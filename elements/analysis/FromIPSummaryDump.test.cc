#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

/// The packets of a dump, in hexadecimal.
std::vector<std::string> packets(const std::string& dump, const std::string& keywords = "") {
  TemporaryFile file(dump);
  TestRouter r("FromIPSummaryDump(" + file.path() + ", STOP true" + (keywords.empty() ? "" : ", " + keywords) +
               ") -> c :: Capture;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  r.run();
  return captured(r, "c");
}

/// What ToIPSummaryDump writes about a packet whose IP header begins at its first byte, without the header lines.
std::string summary(const std::string& fields, std::string_view hex, const std::string& keywords = "",
                    uint32_t extra = 0, int header = 20) {
  TemporaryFile out;
  {
    TestRouter r("Idle -> t :: ToIPSummaryDump(" + out.path() + ", HEADER false, FIELDS " + fields +
                 (keywords.empty() ? "" : ", " + keywords) + ");");
    EXPECT_TRUE(r.ok()) << r.errors();
    if (!r.ok()) return {};
    const std::string bytes = from_hex(hex);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    if (!bytes.empty()) p->set_network_header(0, header);
    p->set_timestamp(Timestamp::from_us(1500001));
    p->set_anno_u8(anno_offset::kPaint, 1);
    p->set_anno_u32(anno_offset::kExtraLength, extra);
    r.push("t", p);
  }
  return out.content();
}

constexpr const char* kTcp =
    "45000028 12344000 40061234 01000001 02000002  000a0014 00000001 00000002 50181000 00000007";
constexpr const char* kUdp = "4500001e 00000000 40110000 01000001 02000002  00350036 000a0000 6869";

TEST(FromIPSummaryDump, AddressesPortsAndProtocol) {
  const auto p = packets("!data ip_src sport ip_dst dport ip_proto\n1.0.0.1 10 2.0.0.2 20 U\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0], plain_hex("4500001c 00000000 64110000 01000001 02000002 000a0014 00080000"));
}

TEST(FromIPSummaryDump, TcpIsTheDefaultProtocol) {
  const auto p = packets("!data src dst tcp_seq tcp_ack tcp_flags tcp_window\n1.0.0.1 2.0.0.2 258 3 SA 1024\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0], plain_hex("45000028 00000000 64060000 01000001 02000002"
                            "00000000 00000102 00000003 50120400 00000000"));
}

TEST(FromIPSummaryDump, FieldsOfTheIpHeader) {
  const auto p = packets(
      "!data ip_src ip_dst ip_tos ip_ttl ip_id ip_fragoff ip_sum ip_proto\n"
      "1.0.0.1 2.0.0.2 3 4 5 16+! 6 47\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0], plain_hex("45030014 00056002 042f0006 01000001 02000002"));
}

TEST(FromIPSummaryDump, PayloadAndLengths) {
  EXPECT_EQ(packets("!data src proto payload\n1.0.0.1 U \"h\\x69\\n\"\n")[0],
            plain_hex("4500001f 00000000 64110000 01000001 00000000 00000000 000b0000 68690a"));
  TemporaryFile file("!data src proto ip_len\n1.0.0.1 U 100\n");
  TestRouter r("FromIPSummaryDump(" + file.path() + ", STOP true) -> c :: Capture;");
  r.run();
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.length(), 28u);
  EXPECT_EQ(p.anno_u32(anno_offset::kExtraLength), 72u);
  EXPECT_EQ(to_hex(capture(r, "c").bytes(0)).substr(4, 4), "0064");
}

TEST(FromIPSummaryDump, ChecksumsAreRightWhenAskedFor) {
  // A datagram made by Scapy: IP(src="1.0.0.1",dst="2.0.0.2",ttl=100,id=0)/UDP(sport=10,dport=20)/b"hi!!".
  EXPECT_EQ(packets("!data src sport dst dport proto payload\n1.0.0.1 10 2.0.0.2 20 U \"hi!!\"\n", "CHECKSUM true")[0],
            plain_hex("45000020 00000000 641153cb 01000001 02000002 000a0014 000c732b 68692121"));
}

TEST(FromIPSummaryDump, ChecksumTrueFillsThePacket) {
  const auto p = packets("!data src proto ip_len\n1.0.0.1 T 60\n", "CHECKSUM true");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].size(), 120u);
}

TEST(FromIPSummaryDump, AnnotationsAndTime) {
  TemporaryFile file("!data timestamp link aggregate count first_timestamp src\n5.000001 3 7 4 2.5 1.0.0.1\n");
  TestRouter r("FromIPSummaryDump(" + file.path() + ", STOP true) -> c :: Capture;");
  r.run();
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.timestamp(), Timestamp::from_us(5000001));
  EXPECT_EQ(p.anno_u8(anno_offset::kPaint), 3);
  EXPECT_EQ(p.anno_u32(anno_offset::kAggregate), 7u);
  EXPECT_EQ(p.anno_u32(anno_offset::kExtraPackets), 3u);
  EXPECT_EQ(p.anno_u64(anno_offset::kFirstTimestamp), 2500000000u);
  EXPECT_EQ(p.network_header_offset(), 0);
  EXPECT_EQ(p.transport_header_offset(), 20);
}

TEST(FromIPSummaryDump, EthernetHeader) {
  const auto p = packets("!data eth_src eth_dst ip_src\n0:1:2:3:4:5 6-7-8-9-A-B 1.0.0.1\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].substr(0, 36), plain_hex("060708090a0b 000102030405 0800 45000028").substr(0, 36));
}

TEST(FromIPSummaryDump, TcpOptionsAndHeaderLength) {
  const auto p = packets("!data tcp_opt\nmss1460;sackok\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].substr(64), plain_hex("70000000 00000000 020405b4 04020000"));
}

TEST(FromIPSummaryDump, IcmpNames) {
  const auto p = packets("!data src proto icmp_type_name icmp_code_name\n1.0.0.1 I unreachable port\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].substr(40), plain_hex("03030000 00000000"));
}

TEST(FromIPSummaryDump, LinesThatAreNotPackets) {
  EXPECT_EQ(packets("!IPSummaryDump 1.3\n!creator \"me\"\n# note\n\n!data src\n1.0.0.1\r\n!host x\n1.0.0.2\n").size(),
            2u);
}

TEST(FromIPSummaryDump, FlowAndProtocolLines) {
  const auto p = packets("!flowid 1.0.0.1 10 2.0.0.2 20 U\n!data ip_id\n7\n");
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0], plain_hex("4500001c 00070000 64110000 01000001 02000002 000a0014 00080000"));
}

TEST(FromIPSummaryDump, FieldsGivenAsArguments) {
  TestRouter r("FromIPSummaryDump(DATA \"1.0.0.1 9\\n\", FIELDS src ip_ttl, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.errors(), "");
  r.run();
  EXPECT_EQ(captured(r, "c")[0].substr(16, 2), "09");
}

TEST(FromIPSummaryDump, MultipacketSplitsLengthAndTime) {
  TemporaryFile file("!data timestamp first_timestamp count src proto ip_len\n9 7 3 1.0.0.1 U 300\n");
  TestRouter r("FromIPSummaryDump(" + file.path() + ", STOP true, MULTIPACKET true) -> c :: Capture;");
  r.run();
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(seen[i].packet->timestamp(), Timestamp::from_sec(7 + i));
    EXPECT_EQ(seen[i].packet->length() + seen[i].packet->anno_u32(anno_offset::kExtraLength), 100u);
    EXPECT_EQ(to_hex(capture(r, "c").bytes(i)).substr(4, 4), "0064");
    EXPECT_EQ(seen[i].packet->anno_u32(anno_offset::kExtraPackets), 0u);
  }
}

TEST(FromIPSummaryDump, TimingKeepsDistances) {
  TemporaryFile file("!data timestamp src\n100 1.0.0.1\n100.5 1.0.0.2\n");
  TestRouter r("f :: FromIPSummaryDump(" + file.path() +
               ", TIMING true) -> c :: Counter -> Discard;"
               "TimedSource(0.4, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("c.count"), "1");
}

TEST(FromIPSummaryDump, PulledItSleepsAtTheEnd) {
  TemporaryFile file("!data src\n1.0.0.1\n1.0.0.2\n");
  TestRouter r("FromIPSummaryDump(" + file.path() + ", STOP true) -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "2");
}

TEST(FromIPSummaryDump, SaysWhatIsWrong) {
  EXPECT_NE(TestRouter("FromIPSummaryDump(/no/such/file) -> Discard;").errors().find("No such file or directory"),
            std::string::npos);
  EXPECT_TRUE(TestRouter("FromIPSummaryDump(/no/such/file, ALLOW_NONEXISTENT true) -> Discard;").ok());
  EXPECT_NE(TestRouter("FromIPSummaryDump(x, DATA y) -> Discard;").errors().find("FILENAME and DATA conflict"),
            std::string::npos);
  EXPECT_NE(TestRouter("FromIPSummaryDump(DATA \"1.0.0.1\\n\") -> Discard;").errors().find("missing banner line"),
            std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(packets("!data src frobs\n1.0.0.1 x\n").size() == 1);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(":1: warning: unknown content type 'frobs'"),
            std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(packets("!data src\n1.0.0\n1.0.0.2\n").size() == 1);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(":2: packet parse error"), std::string::npos);
}

TEST(ToIPSummaryDump, HeaderLines) {
  TemporaryFile out;
  { TestRouter r("Idle -> ToIPSummaryDump(" + out.path() + ", FIELDS src \"tcp seq\" ntimestamp, BANNER \"a b\");"); }
  EXPECT_EQ(out.content(), "!IPSummaryDump 1.3\n!creator \"a b\"\n!data ip_src tcp_seq timestamp\n");
}

TEST(ToIPSummaryDump, FieldsOfIp) {
  EXPECT_EQ(
      summary("src dst proto ip_len ip_hl ip_id ip_tos ip_ttl ip_sum ip_frag ip_fragoff ip_opt ip_dscp ip_ecn", kTcp),
      "1.0.0.1 2.0.0.2 T 40 20 4660 0 64 4660 ! 0! . 0 no\n");
  EXPECT_EQ(
      summary("proto ip_frag ip_fragoff sport", "4500001e 00002001 40110000 01000001 02000002 0035003600000000 0000"),
      "U f 8+ -\n");
}

TEST(ToIPSummaryDump, FieldsOfTransport) {
  EXPECT_EQ(summary("sport dport tcp_seq tcp_ack tcp_off tcp_flags tcp_win tcp_urp tcp_opt udp_len payload_len", kTcp),
            "10 20 1 2 20 PA 4096 7 . - 0\n");
  EXPECT_EQ(summary("sport dport udp_len tcp_seq payload_len payload", kUdp), "53 54 10 - 2 \"hi\"\n");
  EXPECT_EQ(summary("icmp_type icmp_code icmp_type_name icmp_code_name icmp_nextmtu icmp_flowid sport",
                    "4500001c 00000000 40010000 01000001 02000002 0304 0000 0000 05dc"),
            "3 4 unreachable needfrag 1500 - -\n");
  EXPECT_EQ(summary("icmp_type_name icmp_flowid icmp_seq",
                    "4500001c 00000000 40010000 01000001 02000002 0800 0000 0102 0003"),
            "echo 258 3\n");
}

TEST(ToIPSummaryDump, Annotations) {
  EXPECT_EQ(summary("timestamp ts_sec ts_usec ts_usec1 link direction count aggregate wire_len", kUdp),
            "1.500001 1 500001 1500001 1 < 1 0 30\n");
}

TEST(ToIPSummaryDump, Digests) {
  // md5sum of "hi".
  EXPECT_EQ(summary("payload_md5_hex", kUdp), "49f68a5c8493ec2c0bf489821c21fc3b\n");
}

TEST(ToIPSummaryDump, EthernetFields) {
  TemporaryFile out;
  {
    TestRouter r("Idle -> t :: ToIPSummaryDump(" + out.path() +
                 ", HEADER false, FIELDS eth_src eth_dst eth_type src);");
    const std::string bytes = from_hex("060708090a0b 0001020304ff 0800" + std::string(kUdp));
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_mac_header();
    p->set_network_header(14, 20);
    r.push("t", p);
  }
  EXPECT_EQ(out.content(), "00-01-02-03-04-FF 06-07-08-09-0A-0B 0800 1.0.0.1\n");
}

TEST(ToIPSummaryDump, LengthsComeFromTheIpHeader) {
  // Padding behind the packet does not count, and what was not captured does.
  EXPECT_EQ(summary("ip_len payload_len ip_capture_len payload", std::string(kUdp) + "0000"), "30 2 30 \"hi\"\n");
  EXPECT_EQ(summary("ip_len payload_len ip_capture_len",
                    "45000064 00000000 40110000 01000001 02000002 0035003600500000", "", 72),
            "100 72 28\n");
}

TEST(ToIPSummaryDump, BadPacketsAreExplained) {
  EXPECT_EQ(summary("src", "65000014 00000000 40110000 01000001 02000002", "BAD_PACKETS true"),
            "!bad IP version 6\n-\n");
  EXPECT_EQ(summary("src", "44000014 00000000 40110000 01000001 02000002", "BAD_PACKETS true"),
            "!bad IP header length 4\n-\n");
  EXPECT_EQ(summary("src", "4500001e 00000000 40110000 01000001 02000002", "BAD_PACKETS true"),
            "!bad truncated IP missing 10\n1.0.0.1\n");
  EXPECT_EQ(summary("src", "4500001e 00000000 40110000 01000001 02000002", "BAD_PACKETS true, CAREFUL_TRUNC false"),
            "1.0.0.1\n");
  EXPECT_EQ(summary("sport", "", "BAD_PACKETS true"), "!bad no IP header\n-\n");
  EXPECT_EQ(summary("tcp_seq", "4500001a 00000000 40060000 01000001 02000002 000a00140000", "BAD_PACKETS true"),
            "!bad truncated TCP header\n-\n");
  // Another protocol is not a fault.
  EXPECT_EQ(summary("tcp_seq", kUdp, "BAD_PACKETS true"), "-\n");
}

TEST(ToIPSummaryDump, UnknownFieldsAreErrors) {
  EXPECT_NE(TestRouter("Idle -> ToIPSummaryDump(-, FIELDS src frobs);").errors().find("unknown content type 'frobs'"),
            std::string::npos);
  EXPECT_NE(
      TestRouter("Idle -> ToIPSummaryDump(-, FIELDS payload, BINARY true);").errors().find("cannot use field payload"),
      std::string::npos);
}

TEST(ToIPSummaryDump, MultipacketWritesALineForEach) {
  TemporaryFile out;
  {
    TestRouter r("Idle -> t :: ToIPSummaryDump(" + out.path() +
                 ", HEADER false, MULTIPACKET true, FIELDS timestamp src);");
    const std::string bytes = from_hex(kUdp);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_network_header(0, 20);
    p->set_timestamp(Timestamp::from_sec(9));
    p->set_anno_u64(anno_offset::kFirstTimestamp, 7000000000);
    p->set_anno_u32(anno_offset::kExtraPackets, 2);
    r.push("t", p);
  }
  EXPECT_EQ(out.content(), "7.000000 1.0.0.1\n8.000000 1.0.0.1\n9.000000 1.0.0.1\n");
}

TEST(ToIPSummaryDump, BinaryRecordsHaveTheDocumentedForm) {
  EXPECT_EQ(to_hex(summary("timestamp ip_src sport ip_frag ip_proto tcp_opt", kUdp, "BINARY true")),
            plain_hex("00000015 00000001 0007a121 01000001 0035 2e 11 00"));
}

TEST(ToIPSummaryDump, BinaryDumpsAreReadAgain) {
  TemporaryFile out;
  const std::string fields = "timestamp src sport dst dport proto ip_frag ip_len tcp_opt link";
  const std::string line = "3.000004 1.0.0.1 10 2.0.0.2 20 T ! 44 mss1460 7\n";
  {
    TemporaryFile in("!data " + fields + "\n" + line);
    TestRouter r("FromIPSummaryDump(" + in.path() + ", STOP true) -> ToIPSummaryDump(" + out.path() +
                 ", BINARY true, FIELDS " + fields + ");");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
  }
  TemporaryFile again;
  {
    TestRouter r("FromIPSummaryDump(" + out.path() + ", STOP true) -> ToIPSummaryDump(" + again.path() +
                 ", HEADER false, FIELDS " + fields + ");");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
  }
  EXPECT_EQ(again.content(), line);
}

TEST(ToIPSummaryDump, PassesPacketsOn) {
  TestRouter r("Idle -> t :: ToIPSummaryDump(/dev/null) -> c :: Capture;");
  r.push("t", from_hex(kUdp));
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
}

}  // namespace
}  // namespace headrace::testing
