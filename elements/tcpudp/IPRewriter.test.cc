#include <random>

#include "elements/ip/rewriter_base.hh"
#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

constexpr const char* kNat =
    "Idle -> m0 :: MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, drop) -> out :: Capture;"
    "Idle -> m1 :: MarkIPHeader -> [1] rw; rw[1] -> in :: Capture;";

std::string last_bytes(TestRouter& r, const char* name) {
  const Capture& c = capture(r, name);
  return c.seen().empty() ? "none" : c.bytes(c.seen().size() - 1);
}

TEST(IPRewriter, RewritesThereAndBack) {
  TestRouter r(kNat);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m0", tcp_packet({"10.0.0.9", 2000, "20.0.0.1", 80}, "hello"));
  EXPECT_EQ(ends_of(last_bytes(r, "out")), "1.0.0.1 2000 > 20.0.0.1 80");
  const Packet& p = *capture(r, "out").seen()[0].packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "20.0.0.1");
  r.push("m1", tcp_packet({"20.0.0.1", 80, "1.0.0.1", 2000}, "welcome"));
  EXPECT_EQ(ends_of(last_bytes(r, "in")), "20.0.0.1 80 > 10.0.0.9 2000");
  EXPECT_TRUE(checksums_are_right(last_bytes(r, "out")) && checksums_are_right(last_bytes(r, "in")));
  // Another host's port is in use; that of another protocol is not.
  r.push("m0", tcp_packet({"10.0.0.8", 2000, "20.0.0.1", 80}, "hello"));
  EXPECT_NE(ends_of(last_bytes(r, "out")), "1.0.0.1 2000 > 20.0.0.1 80");
  r.push("m0", udp_packet({"10.0.0.8", 2000, "20.0.0.1", 80}, "hello"));
  EXPECT_EQ(ends_of(last_bytes(r, "out")), "1.0.0.1 2000 > 20.0.0.1 80");
  EXPECT_EQ(r.read("rw.table_size"), "3");
  EXPECT_EQ(r.read("rw.patterns"), "1.0.0.1 1024-65535 - - [3]\n<drop>\n");
  EXPECT_EQ(r.read("rw.udp_table"),
            "(10.0.0.8, 2000, 20.0.0.1, 80) => (1.0.0.1, 2000, 20.0.0.1, 80) [*0 1] i0 exp300\n"
            "(20.0.0.1, 80, 1.0.0.1, 2000) => (20.0.0.1, 80, 10.0.0.8, 2000) [0 *1] i0 exp300\n");
  EXPECT_EQ(r.read("rw.tcp_lookup 20.0.0.1 80 1.0.0.1 2000"), "20.0.0.1 80 10.0.0.9 2000");
  EXPECT_EQ(r.read("rw.tcp_lookup 20.0.0.1 81 1.0.0.1 2000"), "");
  // Nobody has asked for this.
  r.push("m1", tcp_packet({"20.0.0.1", 80, "1.0.0.1", 9999}, "x"));
  EXPECT_EQ(r.read("rw.drop_reasons"), "1\tno flow\n");
  EXPECT_TRUE(r.write("rw.clear"));
  EXPECT_EQ(r.read("rw.size"), "0");
}

TEST(IPRewriter, ChecksumsOfRandomPacketsStayRight) {
  std::mt19937 random(3);
  TestRouter r(
      "Idle -> m0 :: MarkIPHeader -> rw :: IPRewriter(pattern 255.255.255.254 1-65535? - - 0 1, drop)"
      " -> out :: Capture; Idle -> m1 :: MarkIPHeader -> [1] rw; rw[1] -> in :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 3000; ++i) {
    const std::string src = IpAddress::from_host_order(random() | 1).unparse();
    const std::string data(random() % 9, static_cast<char>(random()));
    const Ends ends{src, static_cast<uint16_t>(random()), "20.0.0.1", static_cast<uint16_t>(random() % 3)};
    r.push("m0", random() % 2 ? tcp_packet(ends, data) : udp_packet(ends, data));
    const std::string out = last_bytes(r, "out");
    ASSERT_TRUE(checksums_are_right(out));
    // The answer, as the other end would send it.
    const auto& ip = *reinterpret_cast<const Ip4Header*>(out.data());
    const auto& ports = *reinterpret_cast<const UdpHeader*>(out.data() + 20);
    const Ends back{"20.0.0.1", ports.dst_port, "255.255.255.254", ports.src_port};
    r.push("m1", ip.protocol == ip_protocol::kTcp ? tcp_packet(back, data) : udp_packet(back, data));
    const std::string in = last_bytes(r, "in");
    ASSERT_TRUE(checksums_are_right(in));
    ASSERT_EQ(ends_of(in), fmt::format("20.0.0.1 {} > {} {}", back.sport, src, ends.sport));
    if (ip.protocol == ip_protocol::kUdp) {
      ASSERT_NE(std::string_view(in).substr(26, 2), std::string_view("\0\0", 2));
    }
  }
}

TEST(IPRewriter, UdpWithoutChecksumStaysSo) {
  TestRouter r(kNat);
  r.push("m0", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "hello", false));
  EXPECT_EQ(last_bytes(r, "out").substr(26, 2), std::string(2, '\0'));
  EXPECT_EQ(ends_of(last_bytes(r, "out")), "1.0.0.1 2000 > 20.0.0.1 53");
}

TEST(IPRewriter, AUdpChecksumNeverBecomesZero) {
  // All sums come up: one of these packets has a checksum whose new value would be zero.
  int ones = 0;
  for (uint32_t part = 0; part < 16; ++part) {
    TestRouter r("Idle -> m :: MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1 5 - - 0 0) -> out :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    for (uint32_t word = part << 12; word < (part + 1) << 12; ++word) {
      const char data[] = {static_cast<char>(word >> 8), static_cast<char>(word)};
      r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, {data, 2}));
      const std::string out = last_bytes(r, "out");
      ASSERT_TRUE(checksums_are_right(out));
      const uint16_t sum = reinterpret_cast<const UdpHeader*>(out.data() + 20)->checksum;
      ASSERT_NE(sum, 0);
      ones += sum == 0xffff;
    }
  }
  EXPECT_EQ(ones, 1);
}

TEST(IPRewriter, HeadersWithOptionsAndShortSegments) {
  TestRouter r(kNat);
  // A router alert option; the ports are behind it.
  std::string packet = udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "hello");
  packet.insert(20, std::string("\x94\x04\x00\x00", 4));
  auto& ip = *reinterpret_cast<Ip4Header*>(packet.data());
  ip.version_ihl = 0x46;
  ip.total_length = static_cast<uint16_t>(packet.size());
  set_ip_checksum(ip);
  r.push("m0", packet);
  EXPECT_EQ(ends_of(last_bytes(r, "out")), "1.0.0.1 2000 > 20.0.0.1 53");
  EXPECT_TRUE(checksums_are_right(last_bytes(r, "out")));
  // The first 8 bytes of a TCP segment: ports change, there is no checksum.
  r.push("m0", ip_packet("10.0.0.9", "20.0.0.1", 6, from_hex("07d00050 00000001")));
  EXPECT_EQ(ends_of(last_bytes(r, "out")), "1.0.0.1 2000 > 20.0.0.1 80");
  EXPECT_EQ(to_hex(last_bytes(r, "out")).substr(48), "00000001");
  EXPECT_EQ(capture(r, "out").seen().size(), 2u);
}

TEST(IPRewriter, WhatHasNoPortsPassesOnlyWhereItMay) {
  TestRouter r(
      "Idle -> m0 :: MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0, pass 1) -> a :: Capture;"
      "Idle -> m1 :: MarkIPHeader -> [1] rw; rw[1] -> b :: Capture; Idle -> [0] rw;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string others[] = {
      ip_packet("10.0.0.9", "20.0.0.1", 17, "12345678", 5),  // a later fragment
      ip_packet("10.0.0.9", "20.0.0.1", 6, "1234567"),       // short
      ping_packet("10.0.0.9", "20.0.0.1", 8, 1, ""),
  };
  for (const std::string& other : others) {
    r.push("m0", other);
    r.push("m1", other);
  }
  EXPECT_EQ(capture(r, "a").seen().size(), 0u);
  EXPECT_EQ(capture(r, "b").seen().size(), 3u);
  r.push("rw", others[0]);  // without a network header
  EXPECT_EQ(r.read("rw.drop_reasons"), "3\tno flow\n1\tno IP header\n");
  r.push("m1", udp_packet({"10.0.0.9", 1, "20.0.0.1", 2}, ""));
  EXPECT_EQ(ends_of(last_bytes(r, "b")), "10.0.0.9 1 > 20.0.0.1 2");
  EXPECT_EQ(r.read("rw.size"), "0");
}

TEST(IPRewriter, PatternsAndTheirPorts) {
  TestRouter r(
      "IPRewriterPatterns(turn 1.0.0.1 10-12# - -, own 1.0.0.2 10-12 - -);"
      "rw :: IPRewriter(pattern turn 0 0, pattern own 0 0, pattern 2.0.0.1-2.0.0.3# 7 - 99 0 0, keep 0 0,"
      " pattern 3.0.0.0/30# 1 - - 0 0);"
      "Idle -> m0 :: MarkIPHeader -> rw -> out :: Capture; Idle -> m1 :: MarkIPHeader -> [1] rw;"
      "Idle -> m2 :: MarkIPHeader -> [2] rw; Idle -> m3 :: MarkIPHeader -> [3] rw; Idle -> m4 :: MarkIPHeader -> [4] "
      "rw;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("rw.patterns"),
            "1.0.0.1 10-12 - -\n1.0.0.2 10-12 - -\n2.0.0.1-2.0.0.3 7 - 99\n<keep>\n3.0.0.1-3.0.0.2 1 - -\n");
  const auto send = [&](const char* input, uint16_t sport) {
    const size_t before = capture(r, "out").seen().size();
    r.push(input, udp_packet({"10.0.0.9", sport, "20.0.0.1", 53}, ""));
    return capture(r, "out").seen().size() == before ? "none" : ends_of(last_bytes(r, "out"));
  };
  EXPECT_EQ(send("m0", 11), "1.0.0.1 10 > 20.0.0.1 53");
  EXPECT_EQ(send("m0", 12), "1.0.0.1 11 > 20.0.0.1 53");
  EXPECT_EQ(send("m0", 13), "1.0.0.1 12 > 20.0.0.1 53");
  EXPECT_EQ(send("m0", 14), "none");
  EXPECT_EQ(send("m0", 11), "1.0.0.1 10 > 20.0.0.1 53");
  EXPECT_EQ(r.read("rw.mapping_failures"), "1");
  EXPECT_EQ(r.read("rw.drop_reasons"), "1\tno room for a flow\n");
  r.push("m1", udp_packet({"10.0.0.8", 12, "20.0.0.1", 53}, ""));
  EXPECT_EQ(ends_of(last_bytes(r, "out")), "1.0.0.2 12 > 20.0.0.1 53");
  for (const char* expected :
       {"2.0.0.1 7 > 20.0.0.1 99", "2.0.0.2 7 > 20.0.0.1 99", "2.0.0.3 7 > 20.0.0.1 99", "none"}) {
    static uint16_t port = 100;
    EXPECT_EQ(send("m2", ++port), expected);
  }
  EXPECT_EQ(send("m3", 1000), "10.0.0.9 1000 > 20.0.0.1 53");
  EXPECT_EQ(send("m4", 2000), "3.0.0.1 1 > 20.0.0.1 53");
  EXPECT_EQ(send("m4", 2001), "3.0.0.2 1 > 20.0.0.1 53");
  // A write forgets the flows of its input only.
  EXPECT_TRUE(r.write("rw.pattern0", "pattern 4.0.0.4 - - - 0 0"));
  EXPECT_EQ(send("m0", 11), "4.0.0.4 11 > 20.0.0.1 53");
  EXPECT_EQ(send("m0", 2000), "3.0.0.1 1 > 20.0.0.1 53");
  EXPECT_FALSE(r.write("rw.pattern0", "pattern 4.0.0.4 - - - 0 1"));
  EXPECT_EQ(send("m0", 11), "4.0.0.4 11 > 20.0.0.1 53");
}

TEST(IPRewriter, ALargeRangeThatIsUsedUpIsNotSearchedForEveryPacket) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0, UDP_GUARANTEE 0)"
      " -> out :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < 200000; ++i)
    r.push("m", udp_packet({IpAddress::from_host_order(0x0a000000 + i).unparse(), 2000, "20.0.0.1", 53}, "", false));
  const auto size = std::stoul(r.read("rw.size"));
  EXPECT_GT(size, 64512 * 97 / 100);
  EXPECT_LE(size, 64512u);
  EXPECT_EQ(size + std::stoul(r.read("rw.mapping_failures")), 200000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  // Other destinations have ports of their own.
  r.push("m", udp_packet({"9.0.0.1", 2000, "20.0.0.1", 54}, ""));
  EXPECT_EQ(std::stoul(r.read("rw.size")), size + 1);
}

TEST(IPRewriter, SeveralShareTheRoom) {
  TestRouter r(
      "Idle -> m0 :: MarkIPHeader -> a :: IPRewriter(pattern 1.0.0.1 - - - 0 0, MAPPING_CAPACITY b) -> Discard;"
      "Idle -> m1 :: MarkIPHeader -> b :: UDPRewriter(pattern 1.0.0.2 - - - 0 0, CAPACITY 2, GUARANTEE 1h) -> "
      "Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m0", udp_packet({"10.0.0.9", 1, "20.0.0.1", 53}, ""));
  r.push("m1", udp_packet({"10.0.0.9", 1, "20.0.0.1", 53}, ""));
  r.push("m0", udp_packet({"10.0.0.9", 2, "20.0.0.1", 53}, ""));
  EXPECT_EQ(r.read("a.size") + r.read("b.size") + r.read("a.table_size") + r.read("b.table_size"), "2211");
  EXPECT_EQ(r.read("a.capacity"), "2");
  EXPECT_EQ(r.read("a.mapping_failures"), "1");
  EXPECT_TRUE(r.write("a.capacity", "3"));
  r.push("m0", udp_packet({"10.0.0.9", 2, "20.0.0.1", 53}, ""));
  EXPECT_EQ(r.read("b.size"), "3");
  EXPECT_TRUE(r.write("b.capacity", "1"));
  EXPECT_EQ(r.read("b.size"), "1");
}

TEST(IPRewriter, TcpLivesByItsFlags) {
  TestRouter r(kNat);
  const auto expiry = [&] {
    const std::string table = r.read("rw.tcp_table");
    const size_t at = table.find(" exp");
    return table.substr(at + 4, table.find('\n') - at - 4);
  };
  const Ends there{"10.0.0.9", 2000, "20.0.0.1", 80}, back{"20.0.0.1", 80, "1.0.0.1", 2000};
  r.push("m0", tcp_packet(there, "", {.flags = 2}));
  EXPECT_EQ(expiry(), "300");
  r.push("m1", tcp_packet(back, "data"));
  EXPECT_EQ(expiry(), "300");
  r.push("m0", tcp_packet(there, "data"));
  EXPECT_EQ(expiry(), "86400");
  r.push("m0", tcp_packet(there, "", {.flags = 0x11}));
  EXPECT_EQ(expiry(), "86400");
  r.push("m1", tcp_packet(back, "", {.flags = 0x11}));
  EXPECT_EQ(expiry(), "240");
  r.push("m0", tcp_packet(there, "", {.flags = 2}));  // the ports again
  EXPECT_EQ(expiry(), "86400");
  r.push("m1", tcp_packet(back, "", {.flags = 4}));
  EXPECT_EQ(expiry(), "240");
}

TEST(IPRewriter, KeepsItsFlowsWhenAnotherTakesOver) {
  const auto text = [](const char* pattern, int capacity) {
    return fmt::format(
        "Idle -> m0 :: MarkIPHeader -> rw :: IPRewriter(pattern {} 1024-65535 - - 0 1, drop, CAPACITY {})"
        " -> out :: Capture; Idle -> m1 :: MarkIPHeader -> [1] rw; rw[1] -> in :: Capture;"
        "Idle -> m2 :: MarkIPHeader -> [0] ping :: ICMPPingRewriter(pattern {} - 0-65535 0 1, drop,"
        " MAPPING_CAPACITY rw); Idle -> [1] ping; ping[0] -> pout :: Capture; ping[1] -> Idle;",
        pattern, capacity, pattern);
  };
  TestRouter before(text("1.0.0.1", 100)), after(text("1.0.0.2", 200));
  ASSERT_TRUE(before.ok() && after.ok()) << before.errors() << after.errors();
  before.push("m0", tcp_packet({"10.0.0.9", 2000, "20.0.0.1", 80}, "hello"));
  before.push("m2", ping_packet("10.0.0.9", "20.0.0.1", 8, 77, ""));
  Errors errors;
  for (const char* name : {"rw", "ping"}) after.router().find(name)->take_state(*before.router().find(name), errors);
  EXPECT_EQ(after.read("rw.size"), "2");
  EXPECT_EQ(after.read("rw.table_size") + after.read("ping.table_size"), "11");
  EXPECT_EQ(after.read("ping.capacity"), "200");
  // The old flow goes on as it was, new ones get the new address.
  after.push("m0", tcp_packet({"10.0.0.9", 2000, "20.0.0.1", 80}, "again"));
  EXPECT_EQ(ends_of(last_bytes(after, "out")), "1.0.0.1 2000 > 20.0.0.1 80");
  after.push("m1", tcp_packet({"20.0.0.1", 80, "1.0.0.1", 2000}, "back"));
  EXPECT_EQ(ends_of(last_bytes(after, "in")), "20.0.0.1 80 > 10.0.0.9 2000");
  after.push("m0", tcp_packet({"10.0.0.8", 2000, "20.0.0.1", 80}, "new"));
  EXPECT_EQ(ends_of(last_bytes(after, "out")), "1.0.0.2 2000 > 20.0.0.1 80");
  after.push("m2", ping_packet("10.0.0.9", "20.0.0.1", 8, 77, ""));
  EXPECT_EQ(ends_of(last_bytes(after, "pout")), "1.0.0.1 > 20.0.0.1");
  EXPECT_EQ(before.read("rw.size"), "0");
}

TEST(IPRewriter, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "need 1 argument, one per input port"},
      {"drop, drop", "need 1 argument, one per input port"},
      {"drop 1", "input spec 0: syntax error, expected 'drop'"},
      {"pass 1", "input spec 0: output port out of range"},
      {"pass x", "input spec 0: syntax error, expected 'nochange [OUTPUT]'"},
      {"keep 0", "input spec 0: bad forward port"},
      {"keep 0 x", "input spec 0: bad reply port"},
      {"pattern 1.0.0.1 0 - - 0 0", "input spec 0: bad source port"},
      {"pattern 1.0.0.1 5-4 - - 0 0", "input spec 0: bad source port"},
      {"pattern 1.0.0.1-1.0.0.9 5-9 - - 0 0", "input spec 0: bad source port"},
      {"pattern 1.0.0.9-1.0.0.1 - - - 0 0", "input spec 0: bad source address"},
      {"pattern - - x - 0 0", "input spec 0: bad destination address"},
      {"pattern - - - 65536 0 0", "input spec 0: bad destination port"},
      {"pattern nope 0 0", "input spec 0: no such pattern 'nope'"},
      {"pattern - - - - 0 -1", "input spec 0: output port out of range"},
      {"pattern 0 0", "input spec 0: syntax error, expected a pattern, FOUTPUT and ROUTPUT"},
      {"pattern - - - - - 0 0",
       "input spec 0: syntax error, expected the name of a pattern, SADDR DADDR [SPORT] or SADDR SPORT DADDR DPORT"},
      {"i", "input spec 0: element is not an IPMapper"},
      {"what ever", "input spec 0: unknown specification 'what'"},
      {"drop, MAPPING_CAPACITY 0", "MAPPING_CAPACITY: out of range"},
      {"drop, MAPPING_CAPACITY i", "bad MAPPING_CAPACITY 'i'"},
      {"drop, MAPPING_CAPACITY rw", "MAPPING_CAPACITY: the rewriters refer to each other"},
      {"drop, REPLY_ANNO 48", "REPLY_ANNO: "},
  };
  for (const auto& [arguments, error] : cases) {
    TestRouter r(fmt::format("i :: Idle -> rw :: IPRewriter({}) -> Idle;", arguments));
    EXPECT_FALSE(r.ok()) << arguments;
    EXPECT_NE(r.errors().find(error), std::string::npos) << arguments << "\n" << r.errors();
  }
}

TEST(IPRewriter, ManyThreadsAndTheWayBackOnAnother) {
  // Each worker has a source of packets that go out and one of packets that come back, through the same rewriter.
  std::string text =
      "rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, pattern 1.0.0.1 1024-65535 - - 0 1, drop, drop,"
      " MAPPING_CAPACITY 4096, UDP_GUARANTEE 0); rw[0] -> CheckIPHeader -> CheckUDPHeader -> there :: Counter -> "
      "Discard;"
      "rw[1] -> CheckIPHeader -> CheckUDPHeader -> back :: Counter -> Discard;";
  std::string sched = "StaticThreadSched(";
  for (int thread = 0; thread < 2; ++thread) {
    text += fmt::format(
        "there{0} :: InfiniteSource(DATA \\<{1}>, LIMIT 40000, BURST 32, STOP true) -> MarkIPHeader -> [{0}] rw;"
        "back{0} :: InfiniteSource(DATA \\<{2}>, LIMIT 40000, BURST 32, STOP true) -> MarkIPHeader -> [{3}] rw;",
        thread, to_hex(udp_packet({"10.0.0.9", static_cast<uint16_t>(2000 + thread), "20.0.0.1", 53}, "abc")),
        to_hex(udp_packet({"20.0.0.1", 53, "1.0.0.1", static_cast<uint16_t>(2000 + thread)}, "abc")), 2 + thread);
    sched += fmt::format("there{0} {0}, back{0} {1},", thread, 1 - thread);
  }
  text += sched + "); DriverManager(wait_stop 4);";
  TestRouter r(text, 2);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("there.count"), "80000");
  // What came back before anything had gone out is dropped.
  const auto back = std::stoul(r.read("back.count"));
  EXPECT_GT(back, 0u);
  EXPECT_EQ(r.read("rw.size"), "2");
  const std::string dropped = r.read("rw.drop_reasons");
  EXPECT_EQ(back + (dropped.empty() ? 0 : std::stoul(dropped)), 80000u) << dropped;
}

}  // namespace
}  // namespace headrace::testing
