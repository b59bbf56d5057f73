#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(SetIPDSCP, KeepsTheEcnBitsAndTheChecksumRight) {
  TestRouter r("Idle -> m :: MarkIPHeader -> s :: SetIPDSCP(46) -> CheckIPHeader -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45010014 00000000 401177d6 01000001 02000002"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"45b90014 00000000 4011771e 01000001 02000002"}));
}

TEST(SetIPDSCP, HandlerChangesIt) {
  TestRouter r("Idle -> m :: MarkIPHeader -> s :: SetIPDSCP(DSCP 10) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.dscp"), "10");
  EXPECT_FALSE(r.write("s.dscp", "64"));
  EXPECT_TRUE(r.write("s.dscp", "1")) << r.errors();
  r.push("m", from_hex("45000014 00000000 401177d7 01000001 02000002"));
  EXPECT_EQ(captured(r, "c").at(0).substr(0, 4), "4504");
}

TEST(SetIPDSCP, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "DSCP: required argument missing"), std::pair("64", "DSCP: out of range, bound 63"),
        std::pair("x", "DSCP: expected an integer")}) {
    TestRouter r("Idle -> SetIPDSCP(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
