#include "elements/standard/Switch.hh"

#include "support/test_router.hh"

namespace headrace::testing {
namespace {

size_t count(TestRouter& r, const char* name) { return dynamic_cast<Capture*>(r.router().find(name))->seen().size(); }

TEST(Switch, SendsToItsOutputAndCanBeChanged) {
  TestRouter r("Idle -> s :: Switch(1); s[0] -> a :: Capture; s[1] -> b :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.switch"), "1");
  r.push("s", "x");
  EXPECT_EQ(count(r, "b"), 1u);
  EXPECT_TRUE(r.write("s.switch", "0"));
  r.push("s", "x");
  EXPECT_EQ(count(r, "a"), 1u);
  EXPECT_EQ(r.read("s.config"), "0");
  EXPECT_TRUE(r.write("s.config", "OUTPUT 1"));
  EXPECT_EQ(r.read("s.switch"), "1");
}

TEST(Switch, DropsWithoutOutput) {
  TestRouter r("Idle -> s :: Switch -> a :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.switch", "-1"));
  r.push("s", "x");
  EXPECT_TRUE(r.write("s.switch", "7"));
  EXPECT_EQ(r.read("s.switch"), "-1");
  r.push("s", "x");
  EXPECT_EQ(count(r, "a"), 0u);
  EXPECT_EQ(r.read("s.drop_reasons"), "2\tdropped\n");
}

TEST(Switch, Errors) {
  TestRouter bad("Idle -> s :: Switch(1) -> a :: Capture;");
  EXPECT_FALSE(bad.ok());
  EXPECT_NE(bad.errors().find("  output must be < 1\n"), std::string::npos) << bad.errors();
  TestRouter r("Idle -> s :: Switch -> a :: Capture;");
  EXPECT_FALSE(r.write("s.switch", "x"));
  EXPECT_EQ(r.errors(), "Switch output must be integer\n");
}

}  // namespace
}  // namespace headrace::testing
