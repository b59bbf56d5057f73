#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(SetIPECN, SetsTheBitsByNumberOrName) {
  const std::pair<const char*, const char*> kBits[] = {{"no", "b8"},     {"-", "b8"},      {"0", "b8"},  {"1", "b9"},
                                                       {"ect1", "b9"},   {"ECT(1)", "b9"}, {"2", "ba"},  {"ect2", "ba"},
                                                       {"ECT(0)", "ba"}, {"3", "bb"},      {"ce", "bb"}, {"CE", "bb"}};
  for (const auto& [name, tos] : kBits) {
    TestRouter r("Idle -> m :: MarkIPHeader -> s :: SetIPECN(" + std::string(name) +
                 ") -> CheckIPHeader -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.push("m", from_hex("45b90014 00000000 4011771e 01000001 02000002"));
    ASSERT_EQ(capture(r, "c").seen().size(), 1u) << name;
    EXPECT_EQ(captured(r, "c")[0].substr(2, 2), tos) << name;
    EXPECT_EQ(r.read("s.ecn"), name);
  }
}

TEST(SetIPECN, HandlerChangesThem) {
  TestRouter r("Idle -> m :: MarkIPHeader -> s :: SetIPECN(ect1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_FALSE(r.write("s.ecn", "4"));
  EXPECT_TRUE(r.write("s.ecn", "ce")) << r.errors();
  r.push("m", from_hex("45b80014 00000000 4011771f 01000001 02000002"));
  EXPECT_EQ(captured(r, "c").at(0).substr(0, 4), "45bb");
}

TEST(SetIPECN, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "ECN: required argument missing"), std::pair("4", "ECN: unknown value"),
        std::pair("ect", "ECN: unknown value")}) {
    TestRouter r("Idle -> SetIPECN(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
