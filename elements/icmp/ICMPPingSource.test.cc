#include "headrace/checksum.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(ICMPPingSource, SendsRequests) {
  TestRouter r(
      "s :: ICMPPingSource(1.0.0.1, 2.0.0.2, INTERVAL 0.1, IDENTIFIER 0x1234, LIMIT 3, STOP true, DATA hello)"
      "-> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const Timestamp before = clock::steady();
  r.run();
  // Made with Scapy.
  EXPECT_EQ(captured(r, "c"), plain_hex({"4500002100010000 c801efd8 01000001 02000002 0800a1f8 12340001 68656c6c6f",
                                         "4500002100020000 c801efd7 01000001 02000002 0800a1f7 12340002 68656c6c6f",
                                         "4500002100030000 c801efd6 01000001 02000002 0800a1f6 12340003 68656c6c6f"}));
  for (const auto& seen : capture(r, "c").seen()) {
    EXPECT_EQ(internet_checksum(seen.packet->network_header(), 20), 0);
    EXPECT_EQ(internet_checksum(seen.packet->transport_header(), 13), 0);
    EXPECT_EQ(IpAddress::from_bytes(seen.packet->anno() + anno_offset::kDstIp).unparse(), "2.0.0.2");
  }
  EXPECT_EQ((clock::steady() - before).ns / 100000000, 4);
  EXPECT_EQ(r.read("s.count"), "3");
}

TEST(ICMPPingSource, CountsReplies) {
  ::testing::internal::CaptureStderr();
  {
    TestRouter r(
        "s :: ICMPPingSource(1.0.0.1, 2.0.0.2, INTERVAL 1, LIMIT 4, STOP true)"
        "-> lost :: Switch(0) -> ICMPPingResponder -> Queue -> DelayShaper(20ms) -> Unqueue -> SetTimestamp"
        "-> t :: Tee -> s; t[1] -> other :: Switch(0) -> Discard; lost[1] -> Discard; other[1] -> s;"
        "Script(wait 2.5s, write other.switch 1, wait 1s, write lost.switch 1);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    // The third came twice, the fourth not at all.
    EXPECT_EQ(r.read("s.summary").substr(0, 72),
              "4 packets transmitted, 3 received, +1 duplicates, 25% packet loss\nrtt mi");
    EXPECT_EQ(r.read("s.rtt_min").substr(0, 6), "0.0200");
    EXPECT_EQ(r.read("s.rtt_max").substr(0, 6), "0.0200");
    EXPECT_EQ(r.read("s.rtt_avg").substr(0, 6), "0.0200");
    ASSERT_TRUE(r.write("s.reset_counts"));
    EXPECT_EQ(r.read("s.summary"), "0 packets transmitted, 0 received\n");
    EXPECT_EQ(r.read("s.rtt_avg"), "0.000000");
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("s :: ICMPPingSource: 0 bytes from 2.0.0.2: icmp_seq=3 ttl=255 time=20.0"), std::string::npos)
      << said;
}

TEST(ICMPPingSource, OnlyItsOwnRepliesCount) {
  TestRouter r(
      "s :: ICMPPingSource(1.0.0.1, 2.0.0.2, IDENTIFIER 7, VERBOSE false, LIMIT 1, STOP true) -> c :: Capture;"
      "Idle -> m :: MarkIPHeader -> s;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string reply = "4500001c00010000 c8010000 02000002 01000001 ";
  r.push("m", from_hex(reply + "00000000 00070001"));  // before the request
  r.run();
  for (const char* other : {"00000000 00070002", "00000000 00080001", "08000000 00070001", "00000000 000700"})
    r.push("m", from_hex(reply + other));
  EXPECT_EQ(r.read("s.drop_reasons"), "5\tnot a reply to a ping sent\n");
  r.push("m", from_hex(reply + "00000000 00070001"));
  EXPECT_EQ(r.read("s.summary").substr(0, 55), "1 packets transmitted, 1 received, 0% packet loss\nrtt m");
}

TEST(ICMPPingSource, MirrorsReplies) {
  TestRouter r(
      "s :: ICMPPingSource(1.0.0.1, 2.0.0.2, VERBOSE false, LIMIT 1, MIRROR true) -> c :: Capture;"
      "Idle -> m :: MarkIPHeader(4) -> s; Script(wait 1500ms, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(captured(r, "c").size(), 1u);
  // With an option, something before the header and padding behind.
  r.push("m",
         from_hex("deadbeef 4600002400010000 c8010000 02000002 01000001 01010100 00000000 00000001 abcdefab cccccc"));
  EXPECT_EQ(captured(r, "c").back(),
            plain_hex("4500002000020000 c801efd8 01000001 02000002 08005c84 00000002 abcdefab"));
}

TEST(ICMPPingSource, PullAndArguments) {
  TestRouter r(
      "s :: ICMPPingSource(1.0.0.1, 2.0.0.2, LIMIT 5, STOP true, ACTIVE false) -> u :: Unqueue -> c :: Capture;"
      "Script(wait 0.1s, read s.count, write s.src 1.0.0.9, write s.active true);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(captured(r, "c").size(), 5u);
  EXPECT_EQ(captured(r, "c")[0].substr(24, 8), "01000009");
  const auto errors = [](const std::string& text) { return TestRouter(text).errors(); };
  EXPECT_NE(errors("ICMPPingSource(1.0.0.1) -> Discard;"), "");
  EXPECT_NE(errors("ICMPPingSource(1.0.0.1, 2.0.0.2, MIRROR true) -> Unqueue -> Discard;").find("MIRROR invalid"),
            std::string::npos);
  EXPECT_NE(errors("ICMPPingSource(1.0.0.1, 2.0.0.2, INTERVAL 2) -> Unqueue -> Discard;").find("will be ignored"),
            std::string::npos);
}

TEST(ICMPPingEncap, NumbersRequests) {
  TestRouter r("Idle -> e :: ICMPPingEncap(1.0.0.1, 2.0.0.2, IDENTIFIER 0x1234) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", "hello");
  ASSERT_TRUE(r.write("e.dst", "2.0.0.3"));
  r.push("e", "");
  EXPECT_EQ(captured(r, "c"), plain_hex({"4500002100010000 ff01b8d8 01000001 02000002 0800a1f8 12340001 68656c6c6f",
                                         "4500001c00020000 ff01b8db 01000001 02000003 0800e5c9 12340002"}));
  EXPECT_EQ(r.read("e.src") + " " + r.read("e.dst"), "1.0.0.1 2.0.0.3");
  r.push("e", std::string(65535, 'x'));
  EXPECT_EQ(r.read("e.drop_reasons"), "1\ttoo long for IP\n");
  EXPECT_FALSE(TestRouter("Idle -> ICMPPingEncap(1.0.0.1) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
