#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kIp6Packet =
    "60000000 0004 3b 40 20010db8000000000000000000000001 20010db8000000000000000000000002 deadbeef";

std::string printed(const std::string& arguments, const std::string& from = "m") {
  TestRouter r("Idle -> m :: MarkIP6Header -> p :: IP6Print(" + arguments + ") -> c :: Capture;");
  EXPECT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push(from, from_hex(kIp6Packet));
  EXPECT_EQ(captured(r, "c"), plain_hex({kIp6Packet}));
  return ::testing::internal::GetCapturedStderr();
}

TEST(IP6Print, PrintsTheHeader) {
  EXPECT_EQ(printed("hop"), "hop: 2001:db8::1 -> 2001:db8::2 plen 4, next 59, hlim 64\n");
  EXPECT_EQ(printed(""), "2001:db8::1 -> 2001:db8::2 plen 4, next 59, hlim 64\n");
}

TEST(IP6Print, PrintsContents) {
  EXPECT_EQ(printed("CONTENTS true, NBYTES 26"),
            "2001:db8::1 -> 2001:db8::2 plen 4, next 59, hlim 64\n"
            "  60000000 00043b40 20010db8 00000000 00000000 00000001\n  2001\n");
}

TEST(IP6Print, PacketsWithoutHeaderPassSilently) { EXPECT_EQ(printed("hop", "p"), ""); }

TEST(IP6Print, Errors) {
  for (const auto& [arguments, message] : {std::pair("CONTENTS hex", "CONTENTS: "), std::pair("NBYTES -1", "NBYTES: "),
                                           std::pair("a, 4", "too many arguments")}) {
    TestRouter r("Idle -> IP6Print(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
