#include "support/element_test.hh"

namespace headrace::testing {
namespace {

void push_many(TestRouter& r, const std::string& element, int n, uint32_t length) {
  Batch batch;
  const std::string bytes(length, 'x');
  for (int i = 0; i < n; ++i) batch.push_back(Packet::make(bytes.data(), length));
  r.router().find(element)->push(0, batch);
}

void wait_ms(int ms) { clock::jump_steady(clock::steady() + Timestamp::from_ms(ms)); }

TEST(Counter, CountsPacketsAndBytes) {
  TestRouter r("Idle -> n :: Counter -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "n", 3, 100);
  push_many(r, "n", 2, 50);
  EXPECT_EQ(r.read("n.count"), "5");
  EXPECT_EQ(r.read("n.byte_count"), "400");
  EXPECT_TRUE(r.write("n.reset"));
  EXPECT_EQ(r.read("n.count"), "0");
  push_many(r, "n", 1, 10);
  EXPECT_EQ(r.read("n.byte_count"), "10");
  EXPECT_TRUE(r.write("n.reset_counts"));
  EXPECT_EQ(r.read("n.byte_count"), "0");
  EXPECT_EQ(capture(r, "c").seen().size(), 6u);
}

TEST(Counter, RatesAreMovingAverages) {
  TestRouter r("Idle -> n :: Counter -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("n.rate"), "0");
  // 8 packets of 25 bytes in each millisecond.
  for (int i = 0; i < 400; ++i) {
    push_many(r, "n", 8, 25);
    wait_ms(1);
  }
  EXPECT_NEAR(std::stod(r.read("n.rate")), 8000, 1);
  EXPECT_NEAR(std::stod(r.read("n.byte_rate")), 200000, 1);
  EXPECT_NEAR(std::stod(r.read("n.bit_rate")), 1600000, 1);
  // Ten milliseconds of silence leave (15/16)^10.
  wait_ms(10);
  EXPECT_NEAR(std::stod(r.read("n.rate")), 8000 * 0.52446, 2);
  wait_ms(1000);
  EXPECT_NEAR(std::stod(r.read("n.rate")), 0, 1e-3);
  r.write("n.reset");
  EXPECT_EQ(r.read("n.rate"), "0");
}

TEST(Counter, CallsAtTheExactPacket) {
  TestRouter r("Idle -> n :: Counter(COUNT_CALL 5 p.color 7) -> p :: Paint(1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "n", 8, 10);
  std::vector<int> colors;
  for (const auto& seen : capture(r, "c").seen()) colors.push_back(seen.packet->anno_u8(anno_offset::kPaint));
  EXPECT_EQ(colors, (std::vector<int>{1, 1, 1, 1, 7, 7, 7, 7}));
  // Only once.
  r.write("p.color", "2");
  push_many(r, "n", 8, 10);
  EXPECT_EQ(capture(r, "c").seen().back().packet->anno_u8(anno_offset::kPaint), 2);
  // Again after a reset.
  r.write("n.reset");
  push_many(r, "n", 5, 10);
  EXPECT_EQ(capture(r, "c").seen().back().packet->anno_u8(anno_offset::kPaint), 7);
  EXPECT_EQ(r.read("n.count"), "5");
}

TEST(Counter, CallsWhenBytesAreReached) {
  TestRouter r("Idle -> n :: Counter(BYTE_COUNT_CALL 25 p.color 7) -> p :: Paint(1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "n", 4, 10);
  std::vector<int> colors;
  for (const auto& seen : capture(r, "c").seen()) colors.push_back(seen.packet->anno_u8(anno_offset::kPaint));
  EXPECT_EQ(colors, (std::vector<int>{1, 1, 7, 7}));
}

TEST(Counter, CallsCanBeSetWhileItRuns) {
  TestRouter r("Idle -> n :: Counter -> p :: Paint(1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "n", 3, 10);
  EXPECT_EQ(r.read("n.count_call"), "");
  ASSERT_TRUE(r.write("n.count_call", "5 p.color 9"));
  EXPECT_EQ(r.read("n.count_call"), "5");
  push_many(r, "n", 1, 10);
  EXPECT_EQ(capture(r, "c").seen().back().packet->anno_u8(anno_offset::kPaint), 1);
  push_many(r, "n", 1, 10);
  EXPECT_EQ(capture(r, "c").seen().back().packet->anno_u8(anno_offset::kPaint), 9);
  ASSERT_TRUE(r.write("n.byte_count_call", "60 p.color 3"));
  ASSERT_TRUE(r.write("n.count_call", "100"));
  push_many(r, "n", 1, 10);
  EXPECT_EQ(capture(r, "c").seen().back().packet->anno_u8(anno_offset::kPaint), 3);
  EXPECT_FALSE(r.write("n.count_call", "nonsense"));
}

TEST(Counter, MistakesInCalls) {
  TestRouter bad_number("Idle -> Counter(COUNT_CALL x p.color 7) -> p :: Paint(1) -> Idle;");
  EXPECT_NE(bad_number.errors().find("COUNT_CALL type mismatch"), std::string::npos);
  TestRouter bad_handler("Idle -> Counter(BYTE_COUNT_CALL 5 p.nothing 7) -> p :: Paint(1) -> Idle;");
  EXPECT_FALSE(bad_handler.ok());
}

TEST(AverageCounter, RateFromFirstToLast) {
  TestRouter r("Idle -> n :: AverageCounter -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "n", 3, 100);
  wait_ms(2000);
  push_many(r, "n", 5, 100);
  EXPECT_EQ(r.read("n.count"), "8");
  EXPECT_EQ(r.read("n.byte_count"), "800");
  EXPECT_NEAR(std::stod(r.read("n.rate")), 4, 1e-3);
  EXPECT_NEAR(std::stod(r.read("n.byte_rate")), 400, 1e-1);
  r.write("n.reset");
  EXPECT_EQ(r.read("n.count"), "0");
}

TEST(AverageCounter, CountsBitsAlsoOnTheLink) {
  TestRouter r(
      "RatedSource(RATE 100, LENGTH 100, LIMIT 201, STOP true) -> n :: AverageCounterIMP -> m :: AverageCounterMP(0, "
      "false) -> c :: CounterMP -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("c.count"), "201");
  EXPECT_EQ(r.read("n.bit_count"), std::to_string(201 * 800));
  EXPECT_EQ(r.read("n.link_count"), std::to_string(201 * 124 * 8));
  EXPECT_EQ(r.read("m.link_count"), std::to_string(201 * 120 * 8));
  EXPECT_NEAR(std::stod(r.read("n.time")), 2, 0.05);
  EXPECT_NEAR(std::stod(r.read("n.link_rate")), 100 * 124 * 8, 4000);
  ASSERT_TRUE(r.write("n.reset_now"));
  EXPECT_EQ(r.read("n.count"), "0");
}

TEST(AverageCounter, CountsNothingAfterMax) {
  TestRouter r("RatedSource(RATE 100, LIMIT 500, STOP true) -> n :: AverageCounter(MAX 2) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("n.count")), 200, 3);
  EXPECT_NEAR(std::stod(r.read("n.time")), 2, 0.05);
}

TEST(AverageCounter, BeginsAnewAboveTheThreshold) {
  TestRouter r(
      "RatedSource(RATE 100, LIMIT 500, STOP true) -> n :: AverageCounter(THRESHOLD 50) -> m :: AverageCounter(THRESHOLD "
      "5000) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  // The first second is left out.
  EXPECT_NEAR(std::stoi(r.read("n.count")), 400, 5);
  EXPECT_EQ(r.read("m.count"), "500");
}

TEST(AverageCounter, ArgumentsAreChecked) {
  EXPECT_FALSE(TestRouter("Idle -> AverageCounter(-1) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> AverageCounterMP(0, 7) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> AverageCounter(MAX x) -> Discard;").ok());
  EXPECT_FALSE(TestRouter("Idle -> AverageCounter(THRESHOLD -1) -> Discard;").ok());
}

TEST(AverageCounter, IgnoresTheBeginning) {
  TestRouter r("Idle -> n :: AverageCounter(1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_many(r, "n", 3, 100);
  wait_ms(3000);
  push_many(r, "n", 4, 100);
  EXPECT_EQ(r.read("n.count"), "4");
  EXPECT_NEAR(std::stod(r.read("n.rate")), 2, 1e-3);
}

}  // namespace
}  // namespace headrace::testing
