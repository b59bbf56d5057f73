#include "support/element_test.hh"

namespace headrace::testing {
namespace {

Packet* at(double seconds, double first = 0) {
  Packet* p = Packet::make("x", 1);
  if (seconds != 0) p->set_timestamp(Timestamp::from_double(seconds));
  if (first != 0)
    p->set_anno_u64(anno_offset::kFirstTimestamp, static_cast<uint64_t>(Timestamp::from_double(first).ns));
  return p;
}

double time_of(TestRouter& r, size_t i) { return capture(r, "c").seen()[i].packet->timestamp().to_double(); }

// --- TimeRange

TEST(TimeRange, ShowsFirstAndLast) {
  TestRouter r("Idle -> t :: TimeRange -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("t.range"), "0.000000 0.000000");
  for (const double time : {5., 3.5, 0., 7.25, 4.}) r.push("t", at(time));
  EXPECT_EQ(r.read("t.first"), "3.500000");
  EXPECT_EQ(r.read("t.last"), "7.250000");
  EXPECT_EQ(r.read("t.range"), "3.500000 7.250000");
  EXPECT_EQ(r.read("t.interval"), "3.750000");
  ASSERT_TRUE(r.write("t.reset"));
  EXPECT_EQ(r.read("t.interval"), "0.000000");
  EXPECT_EQ(capture(r, "c").seen().size(), 5u);
}

TEST(TimeRange, SimpleTakesTheLastPacketAsItComes) {
  TestRouter r("Idle -> t :: TimeRange(SIMPLE true) -> c :: Capture;");
  for (const double time : {5., 7., 6.}) r.push("t", at(time));
  EXPECT_EQ(r.read("t.range"), "5.000000 6.000000");
  EXPECT_FALSE(TestRouter("Idle -> TimeRange(SIMPLE x) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> TimeRange(true) -> Discard;").ok());
}

// --- AdjustTimestamp

TEST(AdjustTimestamp, AddsToTimestampsThatAreThere) {
  TestRouter r("Idle -> t :: AdjustTimestamp(-1.5) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", at(5));
  r.push("t", at(0));
  ASSERT_TRUE(r.write("t.time", "10"));
  EXPECT_EQ(r.read("t.time"), "10.000000");
  r.push("t", at(5));
  EXPECT_DOUBLE_EQ(time_of(r, 0), 3.5);
  EXPECT_DOUBLE_EQ(time_of(r, 1), 0);
  EXPECT_DOUBLE_EQ(time_of(r, 2), 15);
}

TEST(AdjustTimestamp, AllAndFirst) {
  TestRouter r(
      "Idle -> t :: AdjustTimestamp(2, ALL true) -> c :: Capture; Idle -> f :: AdjustTimestamp(2, FIRST true) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", at(0));
  r.push("f", at(5, 6));
  EXPECT_DOUBLE_EQ(time_of(r, 0), 2);
  EXPECT_DOUBLE_EQ(time_of(r, 1), 5);
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u64(anno_offset::kFirstTimestamp), 8000000000u);
  EXPECT_FALSE(TestRouter("Idle -> AdjustTimestamp(soon) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> AdjustTimestamp(1, ALL 7) -> Discard;").ok());
}

// --- SetTimestampDelta

TEST(SetTimestampDelta, RangeIsRelativeToTheFirstPacket) {
  TestRouter r("Idle -> t :: SetTimestampDelta -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const double time : {0., 5., 7.5, 4.}) r.push("t", at(time));
  EXPECT_EQ(r.read("t.first"), "5.000000");
  EXPECT_DOUBLE_EQ(time_of(r, 1), 0);
  EXPECT_DOUBLE_EQ(time_of(r, 2), 2.5);
  EXPECT_DOUBLE_EQ(time_of(r, 3), -1);
  ASSERT_TRUE(r.write("t.reset"));
  r.push("t", at(9));
  EXPECT_EQ(r.read("t.first"), "9.000000");
}

TEST(SetTimestampDelta, NowAndFirst) {
  // A test begins at 1000000000 s.
  TestRouter r(
      "Idle -> n :: SetTimestampDelta(TYPE NOW) -> c :: Capture; Idle -> f :: SetTimestampDelta(TYPE FIRST) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("n", at(999999990));
  r.push("f", at(9, 2.5));
  EXPECT_NEAR(time_of(r, 0), 10, 1e-3);
  EXPECT_DOUBLE_EQ(time_of(r, 1), 6.5);
  EXPECT_NE(TestRouter("Idle -> SetTimestampDelta(TYPE LAST) -> Discard;")
                .errors()
                .find("TYPE: unknown value, expected one of: RANGE, NOW, FIRST"),
            std::string::npos);
}

// --- AggregateLength and AggregatePaint, which set the annotation that others count by

uint32_t aggregate(TestRouter& r, size_t i) {
  return capture(r, "c").seen()[i].packet->anno_u32(anno_offset::kAggregate);
}

TEST(AggregateLength, IsTheLengthWithTheExtraLength) {
  TestRouter r("Idle -> a :: AggregateLength -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make(100);
  p->set_anno_u32(anno_offset::kExtraLength, 50);
  r.push("a", p);
  EXPECT_EQ(aggregate(r, 0), 150u);
}

TEST(AggregateLength, CountsFromTheNetworkHeader) {
  TestRouter r("Idle -> a :: AggregateLength(IP true) -> c :: Capture; a[1] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make(100);
  p->set_network_header(14, 20);
  r.push("a", p);
  r.push("a", Packet::make(100));
  EXPECT_EQ(aggregate(r, 0), 86u);
  EXPECT_EQ(capture(r, "d").seen().size(), 1u);
  TestRouter one("Idle -> a :: AggregateLength(IP true) -> c :: Capture;");
  one.push("a", "x");
  EXPECT_EQ(one.read("a.drop_reasons"), "1\tno network header\n");
  EXPECT_FALSE(TestRouter("Idle -> AggregateLength(IP 4) -> Discard;").ok());
}

TEST(AggregatePaint, TakesBitsOfThePaint) {
  TestRouter r(
      "Idle -> p :: Paint(0xab) -> AggregatePaint -> c :: Capture; Idle -> q :: Paint(0xab) -> AggregatePaint(4) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", "x");
  r.push("q", "x");
  EXPECT_EQ(aggregate(r, 0), 0xabu);
  EXPECT_EQ(aggregate(r, 1), 0xbu);
}

TEST(AggregatePaint, CanAddToTheAggregate) {
  TestRouter r("Idle -> p :: Paint(0xab) -> AggregatePaint -> AggregatePaint(4, INCREMENTAL true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", "x");
  EXPECT_EQ(aggregate(r, 0), 0xabbu);
  EXPECT_NE(TestRouter("Idle -> AggregatePaint(9) -> Discard;").errors().find("BITS: out of range, bound 8"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> AggregatePaint(0) -> Discard;").errors().find("BITS: out of range, bound 1"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
