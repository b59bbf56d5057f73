#include "support/vlan_test.hh"

namespace headrace::testing {
namespace {

TEST(EtherRewrite, ReplacesTheAddresses) {
  TestRouter r("Idle -> m :: MarkMACHeader -> e :: EtherRewrite(3:3:3:3:3:3, 4:4:4:4:4:4) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kPlainFrame));
  EXPECT_EQ(captured(r, "c"), plain_hex({"040404040404 030303030303 0800 aabb"}));
  EXPECT_EQ(r.read("e.src"), "03-03-03-03-03-03");
  EXPECT_TRUE(r.write("e.dst", "5:5:5:5:5:5")) << r.errors();
  EXPECT_EQ(r.read("e.dst"), "05-05-05-05-05-05");
}

TEST(EtherRewrite, DropsWhatHasNoHeader) {
  TestRouter r(
      "Idle -> m :: MarkMACHeader -> e :: EtherRewrite(3:3:3:3:3:3, 4:4:4:4:4:4) -> c :: Capture;"
      "Idle -> n :: EtherRewrite(3:3:3:3:3:3, 4:4:4:4:4:4) -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("0202"));
  r.push("n", from_hex(kPlainFrame));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("e.drop_reasons"), "1\tno Ethernet header\n");
}

TEST(EtherRewrite, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "SRC: required argument missing"), std::pair("1:1:1:1:1:1", "DST: required argument missing"),
        std::pair("1:1:1:1:1:1, 2", "DST: ")}) {
    TestRouter r("Idle -> EtherRewrite(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
