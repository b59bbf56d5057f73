#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kUdp = "4500001f 00090000 401177c3 01000001 02000002 00050006000b2966 6f6464";
const std::string kRouted =
    "4800002b 00090000 4011e6a4 01000001 02000002 830b04 03000003 04000004 00 00050006000b2764 6f6464";

constexpr std::string_view kGraph =
    "Idle -> m :: MarkIPHeader -> c :: CheckUDPHeader(DETAILS true) -> good :: Capture; c[1] -> bad :: Capture; Idle "
    "-> c;";

TEST(CheckUDPHeader, GoodPackets) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string unchecked = "4500001f 00090000 401177c3 01000001 02000002 00050006000b0000 6f6464";
  const std::vector<std::string> good = {plain_hex(kUdp), plain_hex(kRouted), plain_hex(unchecked),
                                         plain_hex(kUdp + "ffff")};
  for (const std::string& packet : good) r.push("m", from_hex(packet));
  EXPECT_EQ(captured(r, "good"), good);
  EXPECT_EQ(r.read("c.drops"), "0");
}

TEST(CheckUDPHeader, BadPackets) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push("c", from_hex(kUdp));                                                                    // no network header
  r.push("m", from_hex("4500001f 00090000 400677c3" + kUdp.substr(26)));                          // TCP
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 0005000600072966 6f6464"));  // length 7
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000c2966 6f6464"));  // longer than that
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000b29"));           // no whole header
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000b2967 6f6464"));
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000003 00050006000b2966 6f6464"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "c: UDP header check failed: not UDP\n");
  EXPECT_EQ(captured(r, "good").size(), 0u);
  EXPECT_EQ(captured(r, "bad").size(), 7u);
  EXPECT_EQ(r.read("c.drops"), "7");
  EXPECT_EQ(r.read("c.drop_details"), "2\tnot UDP\n3\tbad packet length\n2\tbad UDP checksum\n");
}

}  // namespace
}  // namespace headrace::testing
