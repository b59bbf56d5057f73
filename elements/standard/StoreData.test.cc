#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string stored(const std::string& arguments, const std::string& bytes = "abcdef") {
  TestRouter r("Idle -> s :: StoreData(" + arguments + ") -> c :: Capture;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  r.push("s", bytes);
  return capture(r, "c").seen().empty() ? "dropped" : capture(r, "c").bytes(0);
}

TEST(StoreData, WritesBytes) {
  EXPECT_EQ(stored("0, XY"), "XYcdef");
  EXPECT_EQ(stored("2, XY"), "abXYef");
  EXPECT_EQ(stored("1, \\<41 42>"), "aABdef");
  EXPECT_EQ(stored("OFFSET 5, DATA XY"), "abcdeX");
  EXPECT_EQ(stored("6, XY"), "abcdef");
}

TEST(StoreData, ChangesOnlyBitsOfTheMask) {
  EXPECT_EQ(to_hex(stored("0, \\<FFFF>, \\<0F>", from_hex("a0b0"))), "afff");
  EXPECT_EQ(to_hex(stored("1, \\<00>, MASK \\<02>", from_hex("ffffff"))), "fffdff");
}

TEST(StoreData, GrowsPackets) {
  EXPECT_EQ(stored("5, XYZ, GROW true"), "abcdeXYZ");
  EXPECT_EQ(stored("6, XYZ, GROW true"), "abcdef");
}

TEST(StoreData, DropsWhatHasNoRoomToGrow) {
  TestRouter r("Idle -> s :: StoreData(1999, " + std::string(65000, 'x') + ", GROW true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", std::string(2000, 'a'));
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tno room at the end\n");
}

TEST(StoreData, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> StoreData(1) -> Discard;").errors().find("DATA: required argument missing"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> StoreData(1, a, bc) -> Discard;").errors().find("MASK must be no longer than DATA"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> StoreData(-1, a) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
