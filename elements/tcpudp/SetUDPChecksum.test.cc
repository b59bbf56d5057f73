#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kChecksumGraph =
    "Idle -> m :: MarkIPHeader -> s :: SetUDPChecksum -> good :: Capture; s[1] -> bad :: Capture;";

TEST(SetUDPChecksum, ChecksumsAreThoseOfOthers) {
  TestRouter r(kChecksumGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000b1234 6f6464"));
  r.push("m",
         from_hex("4800002b 00090000 4011e6a4 01000001 02000002 830b04 03000003 04000004 00 00050006000b0000 6f6464"));
  r.push("m", from_hex("4500001e 00090000 401177c4 01000001 02000002 00050006000a0000 fccc"));  // sum is zero
  EXPECT_EQ(
      captured(r, "good"),
      plain_hex({"4500001f 00090000 401177c3 01000001 02000002 00050006000b2966 6f6464",
                 "4800002b 00090000 4011e6a4 01000001 02000002 830b04 03000003 04000004 00 00050006000b2764 6f6464",
                 "4500001e 00090000 401177c4 01000001 02000002 00050006000affff fccc"}));
}

TEST(SetUDPChecksum, FragmentsAndShortPacketsStayAsTheyAre) {
  TestRouter r(kChecksumGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::vector<std::string> bad =
      plain_hex({"4500001f 00092000 401177c3 01000001 02000002 00050006000b1234 6f6464",
                 "4500001f 00090001 401177c3 01000001 02000002 00050006000b1234 6f6464",
                 "4500001f 00090000 401177c3 01000001 02000002 00050006000c1234 6f6464",
                 "4500001f 00090000 401177c3 01000001 02000002 00050006000712"});
  for (const std::string& packet : bad) r.push("m", from_hex(packet));
  EXPECT_EQ(captured(r, "bad"), bad);
}

}  // namespace
}  // namespace headrace::testing
