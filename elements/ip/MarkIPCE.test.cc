#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// The checksums are right: a sum over the header gives 0xffff.
constexpr std::string_view kPlainTos = "45000014 00000000 401177d7 01000001 02000002";
constexpr std::string_view kEct1 = "45010014 00000000 401177d6 01000001 02000002";
constexpr std::string_view kCe = "45030014 00000000 401177d4 01000001 02000002";

TEST(MarkIPCE, MarksCapablePacketsAndDropsOthers) {
  TestRouter r("Idle -> m :: MarkIPHeader -> e :: MarkIPCE -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const std::string_view packet : {kPlainTos, kEct1, kCe}) r.push("m", from_hex(packet));
  EXPECT_EQ(captured(r, "c"), plain_hex({kCe, kCe}));
  EXPECT_EQ(r.read("e.drops"), "1");
  EXPECT_EQ(r.read("e.drop_reasons"), "1\tnot ECN-capable\n");
}

TEST(MarkIPCE, ForceMarksAll) {
  TestRouter r("Idle -> m :: MarkIPHeader -> e :: MarkIPCE(true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kPlainTos));
  EXPECT_EQ(captured(r, "c"), plain_hex({kCe}));
  EXPECT_EQ(r.read("e.drops"), "0");
}

TEST(MarkIPCE, Errors) {
  TestRouter r("Idle -> MarkIPCE(FORCE 7) -> Discard;");
  EXPECT_NE(r.errors().find("FORCE: "), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
