#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(Tee, EveryOutputGetsItsOwnCopy) {
  TestRouter r("Idle -> t :: Tee -> a :: Capture; t[1] -> Strip(1) -> b :: Capture; t[2] -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", std::string_view("xyz"));
  EXPECT_EQ(capture(r, "a").bytes(0), "xyz");
  EXPECT_EQ(capture(r, "b").bytes(0), "yz");
  EXPECT_EQ(capture(r, "c").bytes(0), "xyz");
}

TEST(Tee, CopiesKeepAnnotationsAndHeaders) {
  TestRouter r("Idle -> t :: Tee -> a :: Capture; t[1] -> b :: Capture;");
  Packet* p = Packet::make("0123456789", 10);
  p->set_network_header(2, 4);
  p->set_anno_u8(anno_offset::kPaint, 7);
  r.push("t", p);
  const Packet& copy = *capture(r, "a").seen()[0].packet;
  EXPECT_NE(&copy, p);
  EXPECT_EQ(copy.network_header_offset(), 2);
  EXPECT_EQ(copy.anno_u8(anno_offset::kPaint), 7);
}

TEST(Tee, ArmsMustAgreeWithConnections) {
  EXPECT_NE(TestRouter("Idle -> t :: Tee(3) -> Discard; t[1] -> Discard;").errors().find("2 outputs implies 2 arms"),
            std::string::npos);
}

TEST(PullTee, CopiesWhatIsPulled) {
  TestRouter r(
      "InfiniteSource(DATA q, LIMIT 3) -> t :: PullTee -> d :: Discard; t[1] -> c :: Capture;"
      "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
  EXPECT_EQ(capture(r, "c").seen().size(), 3u);
  EXPECT_EQ(capture(r, "c").bytes(1), "q");
}

}  // namespace
}  // namespace headrace::testing
