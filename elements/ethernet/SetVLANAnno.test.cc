#include "support/vlan_test.hh"

namespace headrace::testing {
namespace {

TEST(SetVLANAnno, SetsTheAnnotation) {
  TestRouter r("Idle -> s :: SetVLANAnno(2, 1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "x");
  EXPECT_EQ(tci_of(r, "c"), 0x2002);
  EXPECT_TRUE(r.write("s.vlan_tci", "3")) << r.errors();
  EXPECT_EQ(r.read("s.vlan_id"), "3");
  EXPECT_EQ(r.read("s.vlan_pcp"), "1");
  r.push("s", "x");
  EXPECT_EQ(tci_of(r, "c", 1), 0x2003);
}

TEST(SetVLANAnno, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("ANNO", "VLAN_TCI: expected an integer"), std::pair("1, 9", "VLAN_PCP: "),
        std::pair("1, VLAN_ID 2", "exclude each other")}) {
    TestRouter r("Idle -> SetVlanAnno(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
