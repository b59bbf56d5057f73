#include "elements/icmp/ICMPRewriter.hh"

#include <random>

#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

std::string last(TestRouter& r, const char* name) {
  const Capture& c = capture(r, name);
  return c.seen().empty() ? "none" : c.bytes(c.seen().size() - 1);
}

constexpr const char* kNat =
    "Idle -> m :: MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1) -> out :: Capture;"
    "rw[1] -> in :: Capture;"
    "Idle -> p :: MarkIPHeader -> ping :: ICMPPingRewriter(pattern 1.0.0.1 - 500-600# 0 1, drop) -> pout :: Capture;"
    "Idle -> q :: MarkIPHeader -> [1] ping; ping[1] -> pin :: Capture;"
    "Idle -> e :: MarkIPHeader -> icmp :: ICMPRewriter(rw ping) -> err :: Capture; icmp[1] -> rest :: Capture;";

TEST(ICMPPingRewriter, RewritesIdentifiers) {
  TestRouter r(kNat);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", ping_packet("10.0.0.9", "20.0.0.1", 8, 7, "data", 3));
  EXPECT_EQ(last(r, "pout"), ping_packet("1.0.0.1", "20.0.0.1", 8, 500, "data", 3));
  r.push("p", ping_packet("10.0.0.8", "20.0.0.1", 8, 7, "data"));
  EXPECT_EQ(last(r, "pout"), ping_packet("1.0.0.1", "20.0.0.1", 8, 501, "data"));
  r.push("q", ping_packet("20.0.0.1", "1.0.0.1", 0, 500, "data", 3));
  EXPECT_EQ(last(r, "pin"), ping_packet("20.0.0.1", "10.0.0.9", 0, 7, "data", 3));
  r.push("q", ping_packet("20.0.0.1", "1.0.0.1", 0, 599, ""));  // nobody asked
  r.push("q", ping_packet("20.0.0.1", "1.0.0.1", 8, 500, ""));  // a request is no answer
  EXPECT_EQ(r.read("ping.drop_reasons"), "2\tno flow\n");
  EXPECT_EQ(r.read("ping.table_size"), "2");
  EXPECT_NE(r.read("ping.table").find("(10.0.0.9, 20.0.0.1, 7) => (1.0.0.1, 20.0.0.1, 500) [*0 1] i0 exp300\n"),
            std::string::npos)
      << r.read("ping.table");
}

TEST(ICMPPingRewriter, IdentifiersOfSeveralHostsDiffer) {
  TestRouter r(
      "Idle -> p :: MarkIPHeader -> ping :: ICMPPingRewriter(pattern 1.0.0.1 - 0-299 0 0) -> pout :: Capture;");
  for (uint32_t host = 0; host < 300; ++host)
    r.push("p", ping_packet(IpAddress::from_host_order(0x0a000000 + host).unparse(), "20.0.0.1", 8, 7, ""));
  std::vector<bool> used(300);
  for (const Capture::Seen& seen : capture(r, "pout").seen()) {
    const auto* icmp = reinterpret_cast<const IcmpHeader*>(seen.packet->data() + 20);
    const uint32_t identifier = icmp->rest >> 16;
    ASSERT_LT(identifier, 300u);
    EXPECT_FALSE(used[identifier]) << identifier;
    used[identifier] = true;
  }
  EXPECT_EQ(r.read("ping.table_size"), "300");
}

TEST(ICMPPingRewriter, AllChecksumsStayRight) {
  TestRouter r(
      "Idle -> p :: MarkIPHeader -> ping :: ICMPPingRewriter(pattern 1.0.0.1 - 1 0 1, drop) -> pout :: Capture;"
      "Idle -> q :: MarkIPHeader -> [1] ping; ping[1] -> pin :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (uint32_t word = 0; word < 0x10000; word += 7) {
    const char data[] = {static_cast<char>(word >> 8), static_cast<char>(word)};
    r.push("p", ping_packet("10.0.0.9", "20.0.0.1", 8, 0xfff8, {data, 2}));
    ASSERT_EQ(last(r, "pout"), ping_packet("1.0.0.1", "20.0.0.1", 8, 1, {data, 2})) << word;
  }
  // The sum of a reply with nothing but zeros.
  r.push("p", ping_packet("10.0.0.9", "20.0.0.2", 8, 0, ""));
  r.push("q", ping_packet("20.0.0.2", "1.0.0.1", 0, 1, ""));
  EXPECT_EQ(to_hex(last(r, "pin")).substr(40), "0000ffff00000000");
}

TEST(ICMPRewriter, ErrorsFromOutside) {
  TestRouter r(kNat);
  const std::string packets[] = {udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "hello"),
                                 udp_packet({"10.0.0.9", 2001, "20.0.0.1", 53}, "hello", false),
                                 tcp_packet({"10.0.0.9", 2000, "20.0.0.1", 80}, "hello")};
  for (const std::string& packet : packets) {
    r.push("m", packet);
    // A router on the way quotes what it has seen: all of it, or 8 bytes.
    for (const size_t quoted : {packet.size(), size_t{28}}) {
      for (const uint8_t type : {3, 4, 5, 11, 12}) {
        r.push("e", icmp_error("19.0.0.1", "1.0.0.1", type, last(r, "out").substr(0, quoted)));
        EXPECT_EQ(to_hex(last(r, "err")), to_hex(icmp_error("19.0.0.1", "10.0.0.9", type, packet.substr(0, quoted))));
      }
    }
  }
  const Packet& p = *capture(r, "err").seen().back().packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "10.0.0.9");
  r.push("p", ping_packet("10.0.0.9", "20.0.0.1", 8, 7, "ping"));
  r.push("e", icmp_error("20.0.0.1", "1.0.0.1", 3, last(r, "pout")));
  EXPECT_EQ(to_hex(last(r, "err")),
            to_hex(icmp_error("20.0.0.1", "10.0.0.9", 3, ping_packet("10.0.0.9", "20.0.0.1", 8, 7, "ping"))));
  EXPECT_EQ(capture(r, "rest").seen().size(), 0u);
}

TEST(ICMPRewriter, ErrorsFromInside) {
  TestRouter r(kNat);
  r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "hello"));
  const std::string answer = udp_packet({"20.0.0.1", 53, "1.0.0.1", 1024}, "answer");
  r.push("m", answer);
  // The client has closed its socket.
  r.push("e", icmp_error("10.0.0.9", "20.0.0.1", 3, last(r, "in")));
  EXPECT_EQ(to_hex(last(r, "err")), to_hex(icmp_error("1.0.0.1", "20.0.0.1", 3, answer)));
}

TEST(ICMPRewriter, OutputsOfTheRewriterAndAddressRewriters) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> rw :: IPAddrRewriter(pattern 1.0.0.1 - 0 1) -> out :: Capture; rw[1] -> Idle;"
      "Idle -> e :: MarkIPHeader -> icmp :: ICMPRewriter(rw:1) -> Idle; icmp[1] -> Idle; icmp[2] -> err :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string packet = tcp_packet({"10.0.0.9", 2000, "20.0.0.1", 80}, "hello");
  r.push("m", packet);
  r.push("e", icmp_error("19.0.0.1", "1.0.0.1", 3, last(r, "out")));
  EXPECT_EQ(to_hex(last(r, "err")), to_hex(icmp_error("19.0.0.1", "10.0.0.9", 3, packet)));
}

TEST(ICMPRewriter, TheRestLeavesUnchanged) {
  TestRouter r(kNat);
  r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "hello"));
  const std::string known = last(r, "out");
  std::string fragment = known;
  reinterpret_cast<Ip4Header*>(fragment.data())->fragment = 5;
  std::string version = known;
  version[0] = 0x65;
  std::string header = known;
  header[0] = 0x44;
  const std::string others[] = {
      ping_packet("19.0.0.1", "1.0.0.1", 8, 1, known),            // no error
      icmp_error("19.0.0.1", "1.0.0.1", 3, known.substr(0, 19)),  // too short
      icmp_error("19.0.0.1", "1.0.0.1", 3, known.substr(0, 27)),  // without ports
      icmp_error("19.0.0.1", "1.0.0.1", 3, fragment),
      icmp_error("19.0.0.1", "1.0.0.1", 3, version),
      icmp_error("19.0.0.1", "1.0.0.1", 3, header),
      icmp_error("19.0.0.1", "1.0.0.1", 3, udp_packet({"1.0.0.1", 1025, "20.0.0.1", 53}, "hello")),
  };
  for (const std::string& other : others) {
    r.push("e", other);
    EXPECT_EQ(to_hex(last(r, "rest")), to_hex(other));
  }
  EXPECT_EQ(capture(r, "rest").seen().size(), std::size(others));
  r.push("e", known);
  EXPECT_EQ(r.read("icmp.drop_reasons"), "1\tnot ICMP\n");
}

TEST(ICMPRewriter, NoiseDoesNoHarm) {
  TestRouter r(kNat);
  r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "hello"));
  const std::string message = icmp_error("19.0.0.1", "1.0.0.1", 3, last(r, "out"));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string noise = message.substr(0, 20 + random() % (message.size() - 19));
    for (unsigned n = random() % 4; n > 0; --n) noise[random() % noise.size()] = static_cast<char>(random());
    r.push("e", noise);
    r.push("p", noise);
    r.push("m", noise);
  }
  EXPECT_NE(capture(r, "err").seen().size(), 0u);
}

TEST(ICMPRewriter, Errors) {
  for (const auto& [arguments, error] : {std::pair{"", "MAPS: required argument missing"},
                                         {"i", "i not an IP rewriter"},
                                         {"rw:x", "rw not an IP rewriter"},
                                         {"rw:1", "rw:1 port offset requires more than 1 output"}}) {
    TestRouter r(
        fmt::format("i :: Idle -> rw :: IPRewriter(drop) -> Idle; Idle -> ICMPRewriter({}) -> Idle;", arguments));
    EXPECT_FALSE(r.ok());
    EXPECT_NE(r.errors().find(error), std::string::npos) << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
