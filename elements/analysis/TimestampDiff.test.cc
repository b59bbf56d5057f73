#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// A packet with a number at byte 0.
std::string numbered(uint64_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

TEST(TimestampDiff, MeasuresTheTimeSinceTheRecord) {
  TestRouter r(
      "TimedSource(1, DATA aaaaaaaa, LIMIT 3) -> NumberPacket(0) -> rec :: RecordTimestamp(OFFSET 0) -> Queue"
      " -> DelayUnqueue(0.25) -> diff :: TimestampDiff(rec, OFFSET 0) -> d :: Discard;"
      "TimedSource(5, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("diff.index"), "-1");
  EXPECT_EQ(r.read("diff.avg"), "0");
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
  EXPECT_EQ(r.read("diff.index"), "2");
  for (const char* handler :
       {"avg", "average", "min", "max", "median", "perc99", "perc 50", "avg 1", "avg_tc 0", "last"})
    EXPECT_NEAR(std::stod(r.read(std::string("diff.") + handler)), 250000, 100) << handler;
  EXPECT_LT(std::stod(r.read("diff.stddev")), 100);
  EXPECT_EQ(r.read("diff.avg_tc 1"), "0");
  EXPECT_EQ(r.read("diff.dump").substr(0, 5), "0: 25");
  EXPECT_EQ(r.read("diff.dump_list").substr(0, 2), "25");
}

TEST(TimestampDiff, WhatWasNotRecordedLeavesByOutputOne) {
  TestRouter r(
      "Idle -> rec :: RecordTimestamp(OFFSET 0, N 3) -> Discard;"
      "Idle -> diff :: TimestampDiff(rec, OFFSET 0) -> a :: Capture; diff[1] -> b :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const uint64_t number : {1, 3}) r.push("rec", numbered(number));
  EXPECT_EQ(r.read("rec.lost"), "1");
  for (const uint64_t number : {1, 1, 2, 3}) r.push("diff", numbered(number));
  r.push("diff", "short");
  EXPECT_EQ(capture(r, "a").seen().size(), 1u);
  EXPECT_EQ(capture(r, "b").seen().size(), 4u);
}

TEST(TimestampDiff, SamplesAndLimits) {
  TestRouter r(
      "Idle -> rec :: RecordTimestamp(OFFSET 0, SAMPLE 10, N 3) -> Discard;"
      "Idle -> diff :: TimestampDiff(rec, OFFSET 0, SAMPLE 10, N 2, NANO true, TC_OFFSET 0, TC_MASK 0x0f) -> a :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (uint64_t number = 0; number < 30; ++number) r.push("rec", numbered(number));
  EXPECT_EQ(r.read("rec.lost"), "0");
  for (uint64_t number = 0; number < 30; ++number) r.push("diff", numbered(number));
  EXPECT_EQ(capture(r, "a").seen().size(), 30u);
  EXPECT_EQ(r.read("diff.index"), "1");
  EXPECT_EQ(r.read("diff.lost"), "1");
  EXPECT_NE(r.read("diff.avg_tc 10"), "0");
}

TEST(TimestampDiff, LongDelaysAreNotKept) {
  TestRouter r(
      "TimedSource(1, DATA aaaaaaaa, LIMIT 3) -> c :: NumberPacket(0, NET_ORDER true) -> rec :: RecordTimestamp(COUNTER c,"
      " OFFSET 0) -> Queue -> DelayUnqueue(0.25) -> diff :: TimestampDiff(rec, OFFSET 0, MAXDELAY 200) -> d :: Discard;"
      "TimedSource(5, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
  EXPECT_EQ(r.read("diff.index"), "-1");
}

TEST(TimestampDiff, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("Idle -> TimestampDiff -> Discard;").errors().find("RECORDER: required argument missing"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> x :: Null -> TimestampDiff(x) -> Discard;").errors().find("expected RecordTimestamp"),
            std::string::npos);
  const std::string record = "Idle -> rec :: RecordTimestamp -> Discard; Idle -> TimestampDiff(rec";
  EXPECT_TRUE(TestRouter(record + ") -> Discard;").ok());
  EXPECT_FALSE(TestRouter(record + ", OFFSET -1) -> Discard;").ok());
  EXPECT_FALSE(TestRouter(record + ", SAMPLE 0) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> RecordTimestamp(N -1) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> x :: Null -> RecordTimestamp(COUNTER x) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
