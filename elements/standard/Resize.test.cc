#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// What is left of "abcdef", or its length if bytes were added.
std::string resized(const std::string& arguments) {
  TestRouter r("Idle -> s :: Resize" + arguments + " -> c :: Capture;");
  EXPECT_TRUE(r.ok()) << r.errors();
  r.push("s", "abcdef");
  return capture(r, "c").seen().empty() ? "dropped" : capture(r, "c").bytes(0);
}

TEST(Resize, RemovesAtBothEnds) {
  EXPECT_EQ(resized(""), "abcdef");
  EXPECT_EQ(resized("(-2)"), "cdef");
  EXPECT_EQ(resized("(0, -2)"), "abcd");
  EXPECT_EQ(resized("(-2, -3)"), "c");
  EXPECT_EQ(resized("(-4, -3)"), "");
  EXPECT_EQ(resized("(HEAD -100)"), "");
}

TEST(Resize, AddsAtBothEnds) {
  EXPECT_EQ(resized("(4)").substr(4), "abcdef");
  EXPECT_EQ(resized("(0, 3)").substr(0, 6), "abcdef");
  EXPECT_EQ(resized("(0, 3)").size(), 9u);
  EXPECT_EQ(resized("(5, -2)").substr(5), "abcd");
}

TEST(Resize, DropsWhereThereIsNoRoom) {
  TestRouter r("Idle -> s :: Resize(0, 65000) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", std::string(1000, 'x'));
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tno room in the buffer\n");
}

TEST(Resize, HandlersChangeIt) {
  TestRouter r("Idle -> s :: Resize(1, 2) -> c :: Capture;");
  EXPECT_EQ(r.read("s.head"), "1");
  ASSERT_TRUE(r.write("s.head", "-1"));
  ASSERT_TRUE(r.write("s.tail", "-4"));
  EXPECT_EQ(r.read("s.config"), "-1, -4");
  r.push("s", "abcdef");
  EXPECT_EQ(capture(r, "c").bytes(0), "b");
  ASSERT_TRUE(r.write("s.config", "TAIL -1"));
  EXPECT_EQ(r.read("s.head"), "0");
  EXPECT_FALSE(r.write("s.tail", "x"));
  EXPECT_FALSE(TestRouter("Idle -> Resize(70000) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> Resize(1, x) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
