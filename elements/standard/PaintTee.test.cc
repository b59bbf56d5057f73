#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(PaintTee, CopiesTheColorFirst) {
  TestRouter r(
      "Idle -> a :: Paint(1) -> t :: PaintTee(2); Idle -> b :: Paint(2) -> t; t -> c :: Capture; t[1] -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", "one");
  r.push("b", "two");
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].port, 0);
  EXPECT_EQ(seen[1].port, 1);
  EXPECT_EQ(seen[2].port, 0);
  EXPECT_EQ(capture(r, "c").bytes(1), "two");
  EXPECT_EQ(capture(r, "c").bytes(2), "two");
  EXPECT_EQ(seen[1].packet->anno_u8(anno_offset::kPaint), 2);
  EXPECT_NE(seen[1].packet, seen[2].packet);
}

TEST(PaintTee, KeepsOrderWithinABatch) {
  TestRouter r("Idle -> t :: PaintTee(2) -> c :: Capture; t[1] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Batch batch;
  for (int i = 0; i < 6; ++i) {
    const char name = static_cast<char>('a' + i);
    batch.push_back(Packet::make(&name, 1));
    batch[i]->set_anno_u8(anno_offset::kPaint, i % 2 ? 2 : 1);
  }
  r.router().find("t")->push(0, batch);
  EXPECT_EQ(captured(r, "c"), (std::vector<std::string>{"61", "62", "63", "64", "65", "66"}));
  EXPECT_EQ(captured(r, "d"), (std::vector<std::string>{"62", "64", "66"}));
}

TEST(PaintTee, LooksAtTheNamedAnnotation) {
  TestRouter r("Idle -> p :: Paint(5, 3) -> t :: PaintTee(5, 3) -> c :: Capture; t[1] -> [1]c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", "x");
  EXPECT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(r.read("t.color"), "5");
}

}  // namespace
}  // namespace headrace::testing
