#include "support/test_router.hh"

namespace headrace::testing {
namespace {

int port(TestRouter& r, const std::string& name, int protocol, const char* seen_from = "top") {
  uint16_t value;
  const ArgContext context(&r.router().scope(r.router().find(seen_from)));
  return TcpUdpPort{protocol}.parse(name, value, context) ? value : -1;
}

constexpr int kTcp = 6, kUdp = 17;

TEST(PortInfo, NamesPorts) {
  TestRouter r("top :: Script(pause); PortInfo(one 1001, two 1002/tcp, three 1003/udp, , # nothing);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(port(r, "one", kTcp), 1001);
  EXPECT_EQ(port(r, "one", kUdp), 1001);
  EXPECT_EQ(port(r, "two", kTcp), 1002);
  EXPECT_EQ(port(r, "two", kUdp), -1);
  EXPECT_EQ(port(r, "three", kUdp), 1003);
  EXPECT_EQ(port(r, "domain", kUdp), 53);
}

TEST(PortInfo, TakesLinesOfEtcServices) {
  TestRouter r("top :: Script(pause); PortInfo(myhttp  8080/tcp  myweb mywww  # for tests, odd 5/nosuchprotocol);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(port(r, "myhttp", kTcp), 8080);
  EXPECT_EQ(port(r, "mywww", kTcp), 8080);
  EXPECT_EQ(port(r, "tests", kTcp), -1);
}

TEST(PortInfo, NamesAreLocal) {
  TestRouter r("top :: Script(pause); x :: { in :: Script(pause); PortInfo(mine 10) };");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(port(r, "mine", kTcp), -1);
  EXPECT_EQ(port(r, "mine", kTcp, "x/in"), 10);
}

TEST(PortInfo, ReportsWhatIsNoPort) {
  for (const char* argument : {"a", "a b", "a 70000", "a 5x/tcp"}) {
    TestRouter r(std::string("PortInfo(") + argument + ");");
    EXPECT_FALSE(r.ok()) << argument;
    EXPECT_NE(r.errors().find("expected 'NAME PORT/PROTO'"), std::string::npos) << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
