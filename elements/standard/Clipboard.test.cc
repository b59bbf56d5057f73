#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Clipboard, CopiesBytesBetweenPackets) {
  TestRouter r("Idle -> b :: Clipboard(0/1, 2/2) -> c :: Capture; Idle -> [1]b; b[1] -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("b", "xxxx", 1);
  r.push("b", "abcdef");
  r.push("b", "abc");  // too short to be remembered
  r.push("b", "123456", 1);
  r.push("b", "123", 1);
  EXPECT_EQ(capture(r, "c").bytes(0), "xxxx");
  EXPECT_EQ(capture(r, "c").bytes(1), "abcdef");
  EXPECT_EQ(capture(r, "c").bytes(3), "a2cd56");
  EXPECT_EQ(capture(r, "c").bytes(4), "123");
}

TEST(Clipboard, PortsMayBePull) {
  TestRouter r(
      "Idle -> b :: Clipboard(0/1) -> c :: Capture;"
      "Idle -> q :: Queue -> [1]b; b[1] -> u :: Unqueue -> [1]c; DriverManager(wait 1ms, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("b", "a");
  r.push("q", "123");
  r.run();
  EXPECT_EQ(capture(r, "c").bytes(1), "a23");
}

TEST(Clipboard, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "expected OFFSET/LENGTH"), std::pair("5", "range 1: expected OFFSET/LENGTH, got '5'"),
        std::pair("0/1, 2/x", "range 2: expected OFFSET/LENGTH"), std::pair("-1/1", "range 1: "),
        std::pair("0/70000", "range 1: ")}) {
    TestRouter r("Idle -> b :: Clipboard(" + std::string(arguments) + ") -> Discard; Idle -> [1]b; b[1] -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
