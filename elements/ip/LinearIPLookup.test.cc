#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(LinearIPLookup, ListsRoutesInTheOrderInWhichTheyWereAdded) {
  TestRouter r(
      "Idle -> rt :: LinearIPLookup(1.2.3.4/32 0, 1.2.0.0/20 1, 1.2.15.255/32 2);"
      "rt[0] -> Discard; rt[1] -> Discard; rt[2] -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("rt.table"), "1.2.3.4/32\t\t-\t\t0\n1.2.0.0/20\t\t-\t\t1\n1.2.15.255/32\t\t-\t\t2\n");
  EXPECT_TRUE(r.write("rt.add", "1.0.0.0/8 2"));
  EXPECT_TRUE(r.write("rt.remove", "1.2.3.4/32"));
  EXPECT_TRUE(r.write("rt.set", "1.2.15.255/32 1"));
  EXPECT_EQ(r.read("rt.table"), "1.2.0.0/20\t\t-\t\t1\n1.2.15.255/32\t\t-\t\t1\n1.0.0.0/8\t\t-\t\t2\n");
  const std::string before = r.read("rt.table");
  EXPECT_FALSE(r.write("rt.ctrl", "add 9.0.0.0/8 0\nadd 1.0.0.0/8 1\n"));
  EXPECT_EQ(r.read("rt.table"), before);
  EXPECT_TRUE(r.write("rt.flush"));
  EXPECT_TRUE(r.write("rt.add", "2.0.0.0/8 0"));
  EXPECT_EQ(r.read("rt.table"), "2.0.0.0/8\t\t-\t\t0\n");
}

}  // namespace
}  // namespace headrace::testing
