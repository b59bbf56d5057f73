#include <map>

#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

std::string stop_after(const std::string& seconds) {
  return "TimedSource(" + seconds + ", LIMIT 0, STOP true) -> Discard;";
}

/// The IP packet in frame `i` of Capture `c`.
std::string ip_of(TestRouter& r, size_t i) { return capture(r, "c").bytes(i).substr(14); }

constexpr const char* kAddresses = "0:1:2:3:4:5, 1.0.0.1, 6:7:8:9:a:b, 2.0.0.2";

// --- FastUDPSource

TEST(FastUDPSource, SendsFramesWithItsHeaders) {
  TestRouter r(
      "FastUDPSource(0, 3, 100, 0:1:2:3:4:5, 1.0.0.1, 1234, 6:7:8:9:a:b, 2.0.0.2, 5678, STOP true)"
      " -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 3u);
  const std::string frame = capture(r, "c").bytes(2);
  EXPECT_EQ(frame.size(), 100u);
  EXPECT_EQ(to_hex(frame.substr(0, 14)), "060708090a0b0001020304050800");
  EXPECT_EQ(ends_of(frame.substr(14)), "1.0.0.1 1234 > 2.0.0.2 5678");
  EXPECT_TRUE(checksums_are_right(frame.substr(14)));
  EXPECT_EQ(reinterpret_cast<const Ip4Header*>(frame.data() + 14)->ttl, 250);
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.network_header_offset(), 14);
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "2.0.0.2");
}

TEST(FastUDPSource, HasDefaults) {
  TestRouter r("FastUDPSource(LIMIT 1, STOP true) -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c").bytes(0).size(), 64u);
  EXPECT_EQ(ends_of(ip_of(r, 0)), "127.0.0.1 1000 > 127.0.0.1 1000");
}

TEST(FastUDPSource, IntervalIncrementsThePorts) {
  TestRouter r("FastUDPSource(SPORT 10, DPORT 65535, INTERVAL 2, LIMIT 5, STOP true) -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 5u);
  EXPECT_EQ(ends_of(ip_of(r, 1)), "127.0.0.1 10 > 127.0.0.1 65535");
  EXPECT_EQ(ends_of(ip_of(r, 2)), "127.0.0.1 11 > 127.0.0.1 0");
  EXPECT_EQ(ends_of(ip_of(r, 4)), "127.0.0.1 12 > 127.0.0.1 1");
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(checksums_are_right(ip_of(r, i))) << i;
}

TEST(FastUDPSource, CanLeaveTheChecksumOut) {
  TestRouter r("FastUDPSource(CHECKSUM false, LIMIT 1, STOP true) -> Unqueue -> c :: Capture;");
  r.run();
  EXPECT_EQ(to_hex(ip_of(r, 0).substr(26, 2)), "0000");
}

TEST(FastUDPSource, KeepsItsRateAndTellsWhatItWas) {
  TestRouter r("s :: FastUDPSource(100, 500) -> Unqueue -> d :: Discard;" + stop_after("2"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("d.count")), 200, 3);
  EXPECT_EQ(r.read("s.rate"), "0");
  TestRouter all("s :: FastUDPSource(100, 500, STOP true) -> Unqueue -> d :: Discard;");
  all.run();
  EXPECT_EQ(all.read("s.count"), "500");
  EXPECT_NEAR(std::stoi(all.read("s.rate")), 100, 1);
}

TEST(FastUDPSource, HandlersBeginAnewAndChangeLimits) {
  TestRouter r("s :: FastUDPSource(0, 3, STOP true) -> Unqueue -> d :: Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
  ASSERT_TRUE(r.write("s.limit", "5"));
  r.run();
  EXPECT_EQ(r.read("d.count"), "5");
  ASSERT_TRUE(r.write("s.reset"));
  r.run();
  EXPECT_EQ(r.read("d.count"), "10");
  EXPECT_EQ(r.read("s.count"), "5");
  EXPECT_FALSE(r.write("s.rate", "-1"));
  EXPECT_FALSE(r.write("s.active", "perhaps"));
  EXPECT_FALSE(r.write("s.limit", "many"));
}

TEST(FastUDPSource, InactiveItSendsNothingUntilActivated) {
  TestRouter r(
      "s :: FastUDPSource(0, 3, ACTIVE false) -> Unqueue -> d :: Discard; t :: TimedSource(0.1, LIMIT 0, STOP "
      "true) -> Discard;");
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
  ASSERT_TRUE(r.write("s.active", "true"));
  ASSERT_TRUE(r.write("t.reset"));
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
}

TEST(FastUDPSource, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("FastUDPSource(-1) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("FastUDPSource(1, x) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("FastUDPSource(SRCETH 1) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("FastUDPSource(SPORT 65536) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("FastUDPSource(COLOR 1) -> Idle;").ok());
  EXPECT_FALSE(TestRouter("FastUDPSource -> Discard(ACTIVE false); FastUDPSource -> Tee;").ok());
  EXPECT_NE(TestRouter("FastUDPSource(LENGTH 65550) -> Idle;").errors().find("LENGTH too large, maximum is 65549"),
            std::string::npos);
  TestRouter small("s :: FastUDPSource(LENGTH 20, LIMIT 1, STOP true) -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(small.ok());
  EXPECT_NE(small.errors().find("warning: LENGTH is at least 60"), std::string::npos) << small.errors();
  small.run();
  EXPECT_EQ(capture(small, "c").bytes(0).size(), 60u);
}

// --- FastUDPFlows

TEST(FastUDPFlows, SendsAsManyPacketsOfAFlowAsItMay) {
  TestRouter r(std::string("FastUDPFlows(0, 400, 80, ") + kAddresses + ", 4, 10, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 400u);
  std::map<std::string, int> flows;
  for (size_t i = 0; i < 400; ++i) {
    const std::string ip = ip_of(r, i);
    EXPECT_TRUE(checksums_are_right(ip)) << i;
    ++flows[ends_of(ip)];
  }
  // 400 packets are at least 40 flows of 10. Two flows that have the same ports by chance would be one here.
  EXPECT_GE(flows.size(), 38u);
  EXPECT_LE(flows.size(), 44u);
}

TEST(FastUDPFlows, SequentialFlowsTakeTurnsAndIncrementTheirPorts) {
  TestRouter r(std::string("FastUDPFlows(0, 8, 60, ") + kAddresses +
               ", 2, 4, SEQUENTIAL true, FLOWBURST 2, DUPLICATE true, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 8u);
  EXPECT_EQ(ends_of(ip_of(r, 0)), ends_of(ip_of(r, 1)));
  EXPECT_EQ(ends_of(ip_of(r, 2)), ends_of(ip_of(r, 3)));
  EXPECT_EQ(ends_of(ip_of(r, 0)), ends_of(ip_of(r, 4)));
  TestRouter next(std::string("FastUDPFlows(0, 2, 60, ") + kAddresses +
                  ", 1, 1, SEQUENTIAL true, STOP true) -> c :: Capture;");
  next.run();
  const auto port = [&next](size_t i) {
    return static_cast<uint16_t>(reinterpret_cast<const UdpHeader*>(ip_of(next, i).data() + 20)->src_port);
  };
  EXPECT_EQ(static_cast<uint16_t>(port(0) + 1), port(1));
}

TEST(FastUDPFlows, KeepsItsRatePushedAndPulled) {
  for (const char* sink : {" -> d :: Discard;", " -> Unqueue -> d :: Discard;"}) {
    TestRouter r(std::string("s :: FastUDPFlows(1000, -1, 60, ") + kAddresses + ", 4, 10)" + sink + stop_after("1"));
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_NEAR(std::stoi(r.read("d.count")), 1000, 5) << sink;
  }
}

TEST(FastUDPFlows, HandlersChangeItsFrames) {
  TestRouter r(std::string("s :: FastUDPFlows(0, 1, 60, ") + kAddresses +
               ", 1, 1, CHECKSUM false, BURST 1, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(to_hex(ip_of(r, 0).substr(26, 2)), "0000");
  EXPECT_EQ(r.read("s.length"), "60");
  ASSERT_TRUE(r.write("s.length", "90"));
  ASSERT_TRUE(r.write("s.srceth", "2:2:2:2:2:2"));
  ASSERT_TRUE(r.write("s.dsteth", "4:4:4:4:4:4"));
  ASSERT_TRUE(r.write("s.active", "true"));
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(capture(r, "c").bytes(1).size(), 90u);
  EXPECT_EQ(to_hex(capture(r, "c").bytes(1).substr(0, 12)), "040404040404020202020202");
  EXPECT_EQ(r.read("s.stop"), "true");
  EXPECT_FALSE(r.write("s.length", "59"));
  EXPECT_FALSE(r.write("s.srceth", "x"));
}

TEST(FastUDPFlows, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("FastUDPFlows(0, 1) -> Discard;").errors().find("FLOWSIZE: required argument missing"),
            std::string::npos);
  const auto flows = [](const std::string& rest) {
    return TestRouter(std::string("FastUDPFlows(0, 1, 60, ") + kAddresses + rest + ") -> Discard;").errors();
  };
  EXPECT_EQ(flows(", 1, 1"), "");
  EXPECT_NE(flows(", 0, 1").find("FLOWS: out of range, bound 1"), std::string::npos);
  EXPECT_NE(flows(", 1, 0").find("FLOWSIZE: out of range, bound 1"), std::string::npos);
  EXPECT_NE(flows(", 1, 1, BURST 0").find("BURST: out of range, bound 1"), std::string::npos);
  EXPECT_NE(flows(", 1, 1, FLOWBURST 0").find("FLOWBURST: out of range, bound 1"), std::string::npos);
}

// --- FastTCPFlows

TEST(FastTCPFlows, AFlowIsASynThenDataThenAFin) {
  TestRouter r(std::string("s :: FastTCPFlows(0, 8, 70, ") + kAddresses +
               ", 1, 4, STOP true) -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 8u);
  const uint8_t flags[] = {0x02, 0x18, 0x18, 0x01};
  for (size_t i = 0; i < 8; ++i) {
    const std::string ip = ip_of(r, i);
    EXPECT_TRUE(checksums_are_right(ip)) << i;
    EXPECT_EQ(reinterpret_cast<const TcpHeader*>(ip.data() + 20)->flags, flags[i % 4]) << i;
    EXPECT_EQ(ends_of(ip), ends_of(ip_of(r, i / 4 * 4))) << i;
  }
}

TEST(FastTCPFlows, EndsOpenFlowsAfterTheLimit) {
  TestRouter r(std::string("s :: FastTCPFlows(0, 2, 60, ") + kAddresses +
               ", 3, 5, STOP true) -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 5u);
  for (size_t i = 2; i < 5; ++i)
    EXPECT_EQ(reinterpret_cast<const TcpHeader*>(ip_of(r, i).data() + 20)->flags, 0x01) << i;
  EXPECT_EQ(r.read("s.count"), "5");
}

TEST(FastTCPFlows, ArgumentsAreChecked) {
  TestRouter r(std::string("FastTCPFlows(0, 2, 60, ") + kAddresses + ", 3, 2) -> Idle;");
  EXPECT_TRUE(r.ok());
  EXPECT_NE(r.errors().find("warning: FLOWSIZE is at least 3"), std::string::npos) << r.errors();
  EXPECT_NE(TestRouter("FastTCPFlows(0, 1) -> Idle;").errors().find("FLOWS: required argument missing"),
            std::string::npos);
  EXPECT_FALSE(TestRouter(std::string("FastTCPFlows(0, 2, 60, ") + kAddresses + ", 0, 3) -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
