#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string sorted_bytes(TestRouter& r) {
  std::string s;
  for (size_t i = 0; i < capture(r, "c").seen().size(); ++i) s += capture(r, "c").bytes(i);
  return s;
}

Packet* letter_at(const char* letter, double seconds) {
  Packet* p = Packet::make(letter, 1);
  p->set_timestamp(Timestamp::from_double(seconds));
  return p;
}

constexpr const char* kTwoStreams =
    "Idle -> a :: Queue -> t :: TimeSortedSched(STOP true) -> u :: Unqueue -> c :: Capture; Idle -> b :: Queue -> [1]t;";

TEST(TimeSortedSched, MergesByTimestamp) {
  TestRouter r(kTwoStreams);
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const auto& [letter, time] : {std::pair{"a", 1.}, {"d", 4.}, {"e", 5.}}) r.push("a", letter_at(letter, time));
  for (const auto& [letter, time] : {std::pair{"b", 2.}, {"c", 3.}, {"f", 6.}}) r.push("b", letter_at(letter, time));
  r.run();
  EXPECT_EQ(sorted_bytes(r), "abcdef");
  EXPECT_EQ(r.read("t.well_ordered"), "true");
}

TEST(TimeSortedSched, TellsWhenAStreamIsNotInOrder) {
  TestRouter r(kTwoStreams);
  for (const auto& [letter, time] : {std::pair{"a", 1.}, {"c", 3.}, {"b", 2.}}) r.push("a", letter_at(letter, time));
  r.run();
  EXPECT_EQ(sorted_bytes(r), "acb");
  EXPECT_EQ(r.read("t.well_ordered"), "false");
}

TEST(TimeSortedSched, ABufferPutsThemInOrder) {
  TestRouter r("Idle -> a :: Queue -> t :: TimeSortedSched(BUFFER 2, STOP true) -> Unqueue -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const auto& [letter, time] : {std::pair{"a", 1.}, {"c", 3.}, {"b", 2.}}) r.push("a", letter_at(letter, time));
  r.run();
  EXPECT_EQ(sorted_bytes(r), "abc");
}

TEST(TimeSortedSched, SleepsAndWakes) {
  TestRouter r(
      "TimedSource(0.5, DATA a, LIMIT 2) -> Queue -> TimeSortedSched -> u :: Unqueue -> c :: Capture;"
      "TimedSource(3, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(sorted_bytes(r), "aa");
  EXPECT_EQ(r.read("u.scheduled"), "false");
}

TEST(TimeSortedSched, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> TimeSortedSched(BUFFER 0) -> Idle;").errors().find("BUFFER: out of range, bound 1"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> TimeSortedSched(STOP x) -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
