#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string annotation(TestRouter& r, size_t i, int offset = anno_offset::kDstIp) {
  return IpAddress::from_bytes(capture(r, "c").seen().at(i).packet->anno() + offset).unparse();
}

TEST(GetIPAddress, FromAnOffset) {
  TestRouter r("Idle -> g :: GetIPAddress(16) -> c :: Capture; Idle -> h :: GetIPAddress(0, 4) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string packet = from_hex("45000014 00000000 4011 0000 01000001 02000002");
  r.push("g", packet);
  r.push("h", packet);
  r.push("g", packet.substr(0, 19));
  EXPECT_EQ(annotation(r, 0), "2.0.0.2");
  EXPECT_EQ(annotation(r, 1), "0.0.0.0");
  EXPECT_EQ(annotation(r, 1, 4), "69.0.0.20");
  EXPECT_EQ(annotation(r, 2), "0.0.0.0");
}

TEST(GetIPAddress, FromTheHeader) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader(2) -> g :: GetIPAddress(IP src) -> c :: Capture;"
      "Idle -> n :: MarkIPHeader(2) -> h :: GetIPAddress(IP dst) -> c; Idle -> h;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string packet = from_hex("ffff 45000014 00000000 4011 0000 01000001 02000002");
  r.push("m", packet);
  r.push("n", packet);
  r.push("h", packet);
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(annotation(r, 0), "1.0.0.1");
  EXPECT_EQ(annotation(r, 1), "2.0.0.2");
  EXPECT_EQ(r.read("h.drop_reasons"), "1\tno IP header\n");
}

TEST(GetIPAddress, ArgumentsAreChecked) {
  for (const char* arguments : {"", "16, IP src", "IP both", "-1"}) {
    TestRouter r(std::string("Idle -> GetIPAddress(") + arguments + ") -> Idle;");
    EXPECT_FALSE(r.ok()) << arguments;
  }
}

}  // namespace
}  // namespace headrace::testing
