#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kIp = "45000031 00090000 400677bc 01000001 02000002";
const std::string kTcp = kIp + "00050006 00000007 00000000 60022000 7b4a0000 020405b4 6461746121";

TEST(CheckTCPHeader, GoodAndBadPackets) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> c :: CheckTCPHeader(VERBOSE true, DETAILS true) -> good :: Capture;"
      "c[1] -> bad :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push("m", from_hex(kTcp));
  r.push("m", from_hex(kTcp + "0000"));
  EXPECT_EQ(captured(r, "good"), plain_hex({kTcp, kTcp + "0000"}));
  r.push("m", from_hex("45000031 00090000 401177bc" + kTcp.substr(26)));                            // UDP
  r.push("m", from_hex(kIp + "00050006 00000007 00000000 40022000 7b4a0000 020405b4 6461746121"));  // offset 4 words
  r.push("m", from_hex(kIp + "00050006 00000007 00000000 80022000 7b4a0000 020405b4 6461746121"));  // offset 8 words
  r.push("m", from_hex(kTcp.substr(0, kTcp.size() - 2)));  // shorter than IP says
  r.push("m", from_hex("45000020" + kTcp.substr(8)));      // no whole header by what IP says
  r.push("m", from_hex(kIp + "00050006 00000007 00000000 60022000 7b4b0000 020405b4 6461746121"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "c: TCP header check failed: not TCP\nc: TCP header check failed: bad packet length\n"
            "c: TCP header check failed: bad packet length\nc: TCP header check failed: bad packet length\n"
            "c: TCP header check failed: bad packet length\nc: TCP header check failed: bad TCP checksum\n");
  EXPECT_EQ(captured(r, "bad").size(), 6u);
  EXPECT_EQ(r.read("c.drop_details"), "1\tnot TCP\n4\tbad packet length\n1\tbad TCP checksum\n");
}

}  // namespace
}  // namespace headrace::testing
