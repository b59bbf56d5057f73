#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// An echo request (8) or reply (0) whose checksums nobody looks at.
std::string ping(const char* type, const char* src, const char* dst, const char* identifier) {
  return from_hex("45000020 00000000 40010000 " + std::string(src) + dst + type + "00 0000 " + identifier +
                  "0001 aabbccdd");
}

TEST(ICMPPingRewriter, OlderFormRewritesRequestsAndTheirReplies) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> w :: ICMPPingRewriter(9.0.0.9, -) -> out :: Capture; w[1] -> back :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  // Two hosts ping the same one with the same identifier.
  r.push("m", ping("08", "0a000001", "02000002", "0007"));
  r.push("m", ping("08", "0a000002", "02000002", "0007"));
  const std::vector<std::string> requests = captured(r, "out");
  ASSERT_EQ(requests.size(), 2u);
  for (const std::string& request : requests) EXPECT_EQ(request.substr(24, 16), "0900000902000002");
  const std::string first = requests[0].substr(48, 4), second = requests[1].substr(48, 4);
  EXPECT_NE(first, second);
  r.push("m", ping("00", "02000002", "09000009", second.c_str()));
  ASSERT_EQ(captured(r, "back").size(), 1u);
  EXPECT_EQ(captured(r, "back")[0].substr(24, 16), "020000020a000002");
  EXPECT_EQ(captured(r, "back")[0].substr(48, 4), "0007");
}

TEST(ICMPPingRewriter, OlderFormWithOneOutput) {
  TestRouter r("Idle -> m :: MarkIPHeader -> w :: ICMPPingRewriter(-, 9.0.0.9, TIMEOUT 10s) -> out :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", ping("08", "0a000001", "02000002", "0007"));
  ASSERT_EQ(captured(r, "out").size(), 1u);
  EXPECT_EQ(captured(r, "out")[0].substr(24, 16), "0a00000109000009");
  r.push("m", ping("00", "09000009", "0a000001", captured(r, "out")[0].substr(48, 4).c_str()));
  ASSERT_EQ(captured(r, "out").size(), 2u);
  EXPECT_EQ(captured(r, "out")[1].substr(24, 16), "020000020a000001");
}

TEST(ICMPPingRewriter, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("9.0.0.9", "unknown specification '9.0.0.9'"), std::pair("9.0.0.9, x", "need 1 argument"),
        std::pair("9.0.0.9, -, drop", "need 1 argument"), std::pair("-, -, TIMEOUT x", "TIMEOUT: ")}) {
    TestRouter r("Idle -> ICMPPingRewriter(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
