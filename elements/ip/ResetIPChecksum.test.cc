#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(ResetIPChecksum, SetsTheSumOfTheHeader) {
  TestRouter r("Idle -> m :: MarkIPHeader -> ResetIPChecksum -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001c 00000000 40110000 01000001 02000002 0001 0002 0008 1234"));
  r.push("m", from_hex("46000018 00000000 4001ffff 01000001 02000002 01010101"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"4500001c 00000000 401177cf 01000001 02000002 0001 0002 0008 1234",
                                         "46000018 00000000 400174e1 01000001 02000002 01010101"}));
}

TEST(ResetIPChecksum, L4SetsThatOfTheTransport) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> ResetIPChecksum(true) -> CheckIPHeader -> i :: IPClassifier(udp, tcp, -);"
      "i[0] -> CheckUDPHeader -> c :: Capture; i[1] -> CheckTCPHeader -> [1]c; i[2] -> [2]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001c 00000000 40110000 01000001 02000002 0001 0002 0008 1234"));
  r.push("m", from_hex("45000028 00000000 40060000 01000001 02000002"
                       "00010002 11111111 22222222 50100000 00000000"));
  r.push("m", from_hex("4500001c 00000000 40010000 01000001 02000002 0800 0000 0000 0000"));
  ASSERT_EQ(capture(r, "c").seen().size(), 3u);
  EXPECT_EQ(captured(r, "c")[0].substr(52), "fcd8");
  EXPECT_EQ(capture(r, "c").seen()[1].port, 1);
  EXPECT_EQ(captured(r, "c")[2].substr(40), "0800000000000000");
}

TEST(ResetIPChecksum, FragmentsKeepTheirTransport) {
  TestRouter r("Idle -> m :: MarkIPHeader -> ResetIPChecksum(L4 true) -> CheckIPHeader -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001c 00002000 40110000 01000001 02000002 0001 0002 0008 1234"));
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(captured(r, "c")[0].substr(40), "0001000200081234");
}

TEST(ResetIPChecksum, DropsBadLengths) {
  TestRouter r("Idle -> m :: MarkIPHeader -> s :: ResetIPChecksum(true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("44000014 00000000 40010000 01000001 02000002"));           // header of 16 bytes
  r.push("m", from_hex("46000014 00000000 40010000 01000001 02000002"));           // header beyond the packet
  r.push("m", from_hex("4500001c 00000000 40110000 01000001 02000002 0001"));      // packet shorter than it says
  r.push("m", from_hex("45000018 00000000 40110000 01000001 02000002 00010002"));  // no UDP header
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("s.drops"), "4");
}

TEST(ResetIPChecksum, Errors) {
  TestRouter r("Idle -> ResetIPChecksum(L4 2) -> Discard;");
  EXPECT_NE(r.errors().find("L4: "), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
