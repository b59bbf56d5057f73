#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kIpWithTcp = "45000031 00090000 400677bc 01000001 02000002";

TEST(SetTCPChecksum, ChecksumIsThatOfOthers) {
  TestRouter r("Idle -> m :: MarkIPHeader -> s :: SetTCPChecksum -> good :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kIpWithTcp + "00050006 00000007 00000000 60022000 ffff0000 020405b4 6461746121"));
  EXPECT_EQ(captured(r, "good"),
            plain_hex({kIpWithTcp + "00050006 00000007 00000000 60022000 7b4a0000 020405b4 6461746121"}));
}

TEST(SetTCPChecksum, BadLengthsAreDropped) {
  TestRouter r("Idle -> m :: MarkIPHeader -> s :: SetTCPChecksum -> good :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kIpWithTcp + "00050006 00000007 00000000 60022000 ffff0000 020405b4 64617461"));
  r.push("m", from_hex("45000027 00090000 400677bc 01000001 02000002 00050006 00000007 00000000 60022000 ffff00"));
  EXPECT_EQ(captured(r, "good").size(), 0u);
  EXPECT_EQ(r.read("s.drop_reasons"), "2\tbad lengths\n");
}

TEST(SetTCPChecksum, FixoffRepairsTheDataOffset) {
  TestRouter r("Idle -> m :: MarkIPHeader -> SetTCPChecksum(true) -> c :: CheckTCPHeader -> good :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kIpWithTcp + "00050006 00000007 00000000 40022000 ffff0000 020405b4 6461746121"));
  r.push("m", from_hex(kIpWithTcp + "00050006 00000007 00000000 f0022000 ffff0000 020405b4 6461746121"));
  ASSERT_EQ(captured(r, "good").size(), 2u);
  EXPECT_EQ(captured(r, "good")[0].substr(64, 2), "50");
  EXPECT_EQ(captured(r, "good")[1].substr(64, 2), "70");
}

}  // namespace
}  // namespace headrace::testing
