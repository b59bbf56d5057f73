#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// Notes the sizes of the batches that reach it.
class BatchSizes final : public Element {
 public:
  static constexpr Ports kPorts{"1/0"};
  static constexpr Processing kProcessing{"h/h"};
  void push(int, Batch& batch) override {
    sizes.push_back(batch.size());
    batch.kill();
  }
  std::vector<int> sizes;
};
HEADRACE_ELEMENT(BatchSizes)

template <typename T>
T& find(TestRouter& r, const char* name) {
  return *dynamic_cast<T*>(r.router().find(name));
}

TEST(InfiniteSource, SendsLimitPacketsAndStops) {
  TestRouter r("s :: InfiniteSource(DATA \\<0a0b0c>, LIMIT 3, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const Capture& c = find<Capture>(r, "c");
  ASSERT_EQ(c.seen().size(), 3u);
  EXPECT_EQ(to_hex(c.bytes(2)), "0a0b0c");
  EXPECT_TRUE(c.seen()[0].packet->timestamp());
  EXPECT_EQ(r.read("s.count"), "3");
}

TEST(InfiniteSource, DefaultDataHas69Bytes) {
  TestRouter r("InfiniteSource(LIMIT 1, STOP true) -> c :: Capture;");
  r.run();
  EXPECT_EQ(find<Capture>(r, "c").bytes(0).size(), 69u);
}

TEST(InfiniteSource, LengthRepeatsOrCutsData) {
  TestRouter r("s :: InfiniteSource(DATA abc, LENGTH 7, LIMIT 1, STOP true) -> c :: Capture;");
  r.run();
  EXPECT_EQ(find<Capture>(r, "c").bytes(0), "abcabca");
  EXPECT_TRUE(r.write("s.length", "2"));
  EXPECT_TRUE(r.write("s.reset"));
  r.run();
  EXPECT_EQ(find<Capture>(r, "c").bytes(1), "ab");
}

TEST(InfiniteSource, BurstIsABatchAndTheLimitCutsTheLast) {
  TestRouter r("InfiniteSource(LIMIT 7, BURST 3, STOP true) -> b :: BatchSizes;");
  r.run();
  EXPECT_EQ(find<BatchSizes>(r, "b").sizes, (std::vector<int>{3, 3, 1}));
}

TEST(InfiniteSource, BurstLargerThanABatchIsSplit) {
  TestRouter r("InfiniteSource(LIMIT 300, BURST 300, STOP true) -> b :: BatchSizes;");
  r.run();
  EXPECT_EQ(find<BatchSizes>(r, "b").sizes, (std::vector<int>{256, 44}));
}

TEST(InfiniteSource, EndCallMustNameAHandler) {
  TestRouter r("InfiniteSource(LIMIT 2, END_CALL d.nothing) -> d :: Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("nothing"), std::string::npos) << r.errors();
}

TEST(InfiniteSource, EndCallIsCalledOnce) {
  TestRouter r(
      "a :: InfiniteSource(LIMIT 2, END_CALL b.active true) -> Discard;"
      "b :: InfiniteSource(DATA b, LIMIT 1, ACTIVE false, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("a.count"), "2");
  EXPECT_EQ(find<Capture>(r, "c").seen().size(), 1u);
}

TEST(InfiniteSource, PulledItGivesLimitPackets) {
  TestRouter r("s :: InfiniteSource(LIMIT 5, STOP true, TIMESTAMP false) -> Unqueue(2) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(find<Capture>(r, "c").seen().size(), 5u);
  EXPECT_FALSE(find<Capture>(r, "c").seen()[0].packet->timestamp());
}

TEST(InfiniteSource, SleepsWhileTheQueueIsFull) {
  TestRouter r("s :: InfiniteSource -> q :: Queue(10) -> Idle; TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("s.count"), "10");
  EXPECT_EQ(r.read("q.drops"), "0");
  EXPECT_EQ(r.read("s.scheduled"), "false");
}

TEST(InfiniteSource, ReportsBadArguments) {
  EXPECT_NE(TestRouter("InfiniteSource(BURST 0) -> Discard;").errors().find("burst size must be >= 1"),
            std::string::npos);
  EXPECT_NE(TestRouter("InfiniteSource(STOP true, END_CALL stop) -> Discard;")
                .errors()
                .find("END_CALL and STOP are mutually exclusive"),
            std::string::npos);
  EXPECT_NE(TestRouter("InfiniteSource(LENGTH 100000) -> Discard;").errors().find("packet too long"),
            std::string::npos);
}

TEST(InfiniteSource, HandlersChangeIt) {
  TestRouter r("s :: InfiniteSource(LIMIT 1, STOP true) -> c :: Capture;");
  r.run();
  EXPECT_TRUE(r.write("s.data", "xyz"));
  EXPECT_TRUE(r.write("s.limit", "3"));
  EXPECT_TRUE(r.write("s.burst", "2"));
  EXPECT_FALSE(r.write("s.burst", "0"));
  r.run();
  EXPECT_EQ(r.read("s.count"), "3");
  EXPECT_EQ(r.read("s.burst"), "2");
  EXPECT_EQ(r.read("s.data"), "xyz");
  EXPECT_EQ(find<Capture>(r, "c").bytes(1), "xyz");
}

}  // namespace
}  // namespace headrace::testing
