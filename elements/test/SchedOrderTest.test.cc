#include <algorithm>

#include "support/test_router.hh"

namespace headrace::testing {
namespace {

TEST(SchedOrderTest, TasksTakeTurnsInProportionToTheirTickets) {
  TestRouter r("a :: SchedOrderTest(1, SIZE 30, STOP true); b :: SchedOrderTest(2); ScheduleInfo(a 2);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const std::string order = r.read("a.order");
  EXPECT_EQ(order, r.read("b.order"));
  EXPECT_EQ(std::count(order.begin(), order.end(), ' '), 29);
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.end(), '1')), 20, 1);
}

TEST(SchedOrderTest, LimitEndsATask) {
  TestRouter r("a :: SchedOrderTest(-5, SIZE 10, STOP true); b :: SchedOrderTest(7, LIMIT 2);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const std::string order = r.read("a.order");
  EXPECT_EQ(std::count(order.begin(), order.end(), '7'), 2);
  EXPECT_EQ(std::count(order.begin(), order.end(), '5'), 8);
}

TEST(SchedOrderTest, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("SchedOrderTest;").errors().find("ID: required argument missing"), std::string::npos);
  EXPECT_FALSE(TestRouter("SchedOrderTest(x);").ok());
  EXPECT_FALSE(TestRouter("SchedOrderTest(1, SIZE -1);").ok());
  TestRouter apart("a :: SchedOrderTest(1); b :: SchedOrderTest(2); StaticThreadSched(a 0, b 1);", 2);
  EXPECT_NE(apart.errors().find("all SchedOrderTests must run on one thread"), std::string::npos) << apart.errors();
}

}  // namespace
}  // namespace headrace::testing
