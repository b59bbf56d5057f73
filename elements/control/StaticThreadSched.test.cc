#include "support/test_router.hh"

namespace headrace::testing {
namespace {

TEST(StaticThreadSched, AssignsElements) {
  TestRouter r("a, b, c :: Script(pause); StaticThreadSched(a 1, b 0);", 2);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.home_thread"), "1");
  EXPECT_EQ(r.read("b.home_thread"), "0");
  EXPECT_EQ(r.read("c.home_thread"), "0");
}

TEST(StaticThreadSched, CompoundsStandForTheirElements) {
  TestRouter r("StaticThreadSched(x 1); x, y :: { a, b :: Script(pause); StaticThreadSched(b 0); };", 2);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("x/a.home_thread"), "1");
  EXPECT_EQ(r.read("x/b.home_thread"), "0");
  EXPECT_EQ(r.read("y/a.home_thread"), "0");
}

TEST(StaticThreadSched, MinusOneLeavesTheChoice) {
  TestRouter r("a :: Script(pause); StaticThreadSched(a 1, a -1);", 2);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.home_thread"), "0");
}

TEST(StaticThreadSched, WarnsOfThreadsThatDoNotExist) {
  TestRouter r("a :: Script(pause); StaticThreadSched(a 2);", 2);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.home_thread"), "0");
  EXPECT_EQ(r.errors(),
            "config:1: While configuring 'StaticThreadSched@2 :: StaticThreadSched':\n"
            "  warning: thread preference 2 out of range\n");
}

TEST(StaticThreadSched, ReportsNamesThatDoNotExist) {
  TestRouter r("StaticThreadSched(nothing 0, too many words);");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("  'nothing' does not name an element\n"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("  THREAD: "), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
