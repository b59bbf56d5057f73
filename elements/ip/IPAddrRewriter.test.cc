#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

std::string last(TestRouter& r, const char* name) {
  const Capture& c = capture(r, name);
  return c.seen().empty() ? "none" : c.bytes(c.seen().size() - 1);
}

TEST(IPAddrRewriter, AHostGetsOneAddress) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> rw :: IPAddrRewriter(pattern 3.0.0.1-3.0.0.2# - 0 1) -> out :: Capture;"
      "rw[1] -> in :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", udp_packet({"10.0.0.9", 2000, "20.0.0.1", 53}, "abc"));
  EXPECT_EQ(ends_of(last(r, "out")), "3.0.0.1 2000 > 20.0.0.1 53");
  r.push("m", tcp_packet({"10.0.0.9", 2001, "20.0.0.2", 53}, "abc"));
  EXPECT_EQ(ends_of(last(r, "out")), "3.0.0.1 2001 > 20.0.0.2 53");
  EXPECT_TRUE(checksums_are_right(last(r, "out")));
  r.push("m", ip_packet("10.0.0.8", "20.0.0.1", 47, "any protocol"));
  EXPECT_EQ(ends_of(last(r, "out")), "3.0.0.2 > 20.0.0.1");
  r.push("m", ip_packet("10.0.0.8", "20.0.0.1", 17, "a later fragment", 3));
  EXPECT_EQ(to_hex(last(r, "out")).substr(40), to_hex("a later fragment"));
  r.push("m", tcp_packet({"99.0.0.1", 80, "3.0.0.1", 2001}, "back"));
  EXPECT_EQ(ends_of(last(r, "in")), "99.0.0.1 80 > 10.0.0.9 2001");
  EXPECT_TRUE(checksums_are_right(last(r, "in")));
  const Packet& p = *capture(r, "in").seen()[0].packet;
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp).unparse(), "10.0.0.9");
  r.push("m", ip_packet("10.0.0.7", "20.0.0.1", 47, ""));  // no address left
  EXPECT_EQ(r.read("rw.mapping_failures"), "1");
  EXPECT_EQ(r.read("rw.table"),
            "10.0.0.9 => 3.0.0.1 [*0 1] i0 exp7200\n3.0.0.1 => 10.0.0.9 [0 *1] i0 exp7200\n"
            "10.0.0.8 => 3.0.0.2 [*0 1] i0 exp7200\n3.0.0.2 => 10.0.0.8 [0 *1] i0 exp7200\n");
}

TEST(IPAddrRewriter, PatternsMayOnlyChangeTheSource) {
  TestRouter r("Idle -> m :: MarkIPHeader -> rw :: IPAddrRewriter(pattern 3.0.0.1 4.0.0.1 0 0) -> out :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", ip_packet("10.0.0.8", "20.0.0.1", 47, ""));
  EXPECT_EQ(capture(r, "out").seen().size(), 0u);
  EXPECT_EQ(r.read("rw.mapping_failures"), "1");
}

TEST(IPAddrPairRewriter, AnAddressIsTakenOncePerDestination) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> rw :: IPAddrPairRewriter(pattern 3.0.0.1-3.0.0.2 5.0.0.5 0 1,"
      " pattern 3.0.0.9 - 0 1) -> out :: Capture; rw[1] -> in :: Capture; Idle -> n :: MarkIPHeader -> [1] rw;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", udp_packet({"10.0.0.1", 1, "20.0.0.1", 53}, "abc"));
  r.push("m", udp_packet({"10.0.0.2", 1, "20.0.0.2", 53}, "abc"));
  r.push("m", udp_packet({"10.0.0.3", 1, "20.0.0.3", 53}, "abc"));
  EXPECT_EQ(capture(r, "out").seen().size(), 2u);  // there are two addresses
  EXPECT_TRUE(checksums_are_right(last(r, "out")));
  const std::string out = last(r, "out");
  const std::string src = IpAddress(reinterpret_cast<const Ip4Header*>(out.data())->src).unparse();
  r.push("m", udp_packet({"5.0.0.5", 53, src, 1}, "abc"));
  EXPECT_EQ(ends_of(last(r, "in")), "20.0.0.2 53 > 10.0.0.2 1");
  EXPECT_TRUE(checksums_are_right(last(r, "in")));
  for (const char* dst : {"20.0.0.1", "20.0.0.2"}) {
    r.push("n", ip_packet("10.0.0.7", dst, 47, ""));
    EXPECT_EQ(ends_of(last(r, "out")), std::string("3.0.0.9 > ") + dst);
  }
  EXPECT_EQ(r.read("rw.patterns"), "3.0.0.1-3.0.0.2 5.0.0.5 [2]\n3.0.0.9 - [2]\n");
  EXPECT_NE(r.read("rw.table").find("(10.0.0.7, 20.0.0.1) => (3.0.0.9, 20.0.0.1) [*0 1] i1 exp7200\n"),
            std::string::npos);
}

TEST(RoundRobinIPMapper, TakesPatternsInTurn) {
  TestRouter r(
      "rr :: RoundRobinIPMapper(- - 5.0.0.1 - 0 1, - - 5.0.0.2 - 0 1, 1.0.0.1 9 5.0.0.3 - 0 1);"
      "Idle -> m :: MarkIPHeader -> rw :: IPRewriter(rr) -> out :: Capture; rw[1] -> in :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  std::string seen;
  for (uint16_t port = 1; port <= 4; ++port) {
    r.push("m", udp_packet({"10.0.0.1", port, "20.0.0.1", 80}, ""));
    seen += ends_of(last(r, "out")) + "\n";
  }
  EXPECT_EQ(seen,
            "10.0.0.1 1 > 5.0.0.1 80\n10.0.0.1 2 > 5.0.0.2 80\n1.0.0.1 9 > 5.0.0.3 80\n10.0.0.1 4 > 5.0.0.1 80\n");
  r.push("m", udp_packet({"5.0.0.2", 80, "10.0.0.1", 2}, ""));
  EXPECT_EQ(ends_of(last(r, "in")), "20.0.0.1 80 > 10.0.0.1 2");
  EXPECT_EQ(r.read("rw.patterns"), "<mapper> [4]\n");
}

TEST(RoundRobinIPMapper, Errors) {
  for (const auto& [text, error] :
       {std::pair{"rr :: RoundRobinIPMapper; Idle -> IPRewriter(rr) -> Idle;", "no patterns given"},
        {"rr :: RoundRobinIPMapper(- - - - 0 1, - - - - 0 0); Idle -> IPRewriter(rr) -> Idle;",
         "output port out of range in rr :: RoundRobinIPMapper pattern 0"},
        {"rr :: RoundRobinIPMapper(- - - - 0 x, - - - - 0 0); Idle -> IPRewriter(rr) -> Idle;",
         "pattern 0: bad reply port"},
        {"IPRewriterPatterns(a - - - -, a - - - -); Idle -> Idle;", "pattern 'a' already defined"},
        {"IPRewriterPatterns(a - - x -); Idle -> Idle;", "a: bad destination address"}}) {
    TestRouter r(text);
    EXPECT_NE(r.errors().find(error), std::string::npos) << r.errors();
  }
}

TEST(IPRewriterPatterns, NamesAreKnownInTheirCompoundAndWithin) {
  TestRouter r(
      "IPRewriterPatterns(p 1.0.0.1 1 - -);"
      "elementclass Inner { input -> rw :: IPRewriter(pattern p 0 0) -> output; }"
      "elementclass Own { IPRewriterPatterns(q 2.0.0.2 2 - -); input -> rw :: IPRewriter(pattern q 0 0) -> output; }"
      "Idle -> a :: Inner -> Idle; Idle -> b :: Own -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a/rw.patterns"), "1.0.0.1 1 - -\n");
  EXPECT_EQ(r.read("b/rw.patterns"), "2.0.0.2 2 - -\n");
  TestRouter outside(
      "elementclass Own { IPRewriterPatterns(q 2.0.0.2 2 - -); input -> output; }"
      "Idle -> Own -> IPRewriter(pattern q 0 0) -> Idle;");
  EXPECT_NE(outside.errors().find("no such pattern 'q'"), std::string::npos) << outside.errors();
}

}  // namespace
}  // namespace headrace::testing
