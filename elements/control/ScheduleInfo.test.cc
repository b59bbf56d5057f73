#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// An element with a task, as ScheduleInfo sees it.
class TaskOwner final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  Status initialize(Errors&) override {
    task_.initialize(false);
    return {};
  }

 private:
  Task task_{this};
};
HEADRACE_ELEMENT(TaskOwner)

TEST(ScheduleInfo, SetsTickets) {
  TestRouter r("ScheduleInfo(a 2, b 0.5); a, b, c :: TaskOwner;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.tickets"), "2048");
  EXPECT_EQ(r.read("b.tickets"), "512");
  EXPECT_EQ(r.read("c.tickets"), "1024");
}

TEST(ScheduleInfo, SharesOfCompoundsMultiply) {
  TestRouter r("ScheduleInfo(x 4); x, y :: { a, b :: TaskOwner; ScheduleInfo(a 0.5); };");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("x/a.tickets"), "2048");
  EXPECT_EQ(r.read("x/b.tickets"), "4096");
  EXPECT_EQ(r.read("y/a.tickets"), "512");
}

TEST(ScheduleInfo, TheOutermostCounts) {
  TestRouter r("x :: { a :: TaskOwner; ScheduleInfo(a 0.5); }; ScheduleInfo(x/a 3);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("x/a.tickets"), "3072");
}

TEST(ScheduleInfo, TooMuchIsReduced) {
  TestRouter r("ScheduleInfo(a 1000); a :: TaskOwner;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.tickets"), "32768");
  EXPECT_NE(r.errors().find("warning: share of 'a' too high; reduced to 32"), std::string::npos) << r.errors();
}

TEST(ScheduleInfo, ReportsWhatIsNoShare) {
  for (const char* argument : {"a", "a b", "a 1 2", "a -1", "a 0"}) {
    TestRouter r(std::string("ScheduleInfo(") + argument + ");");
    EXPECT_FALSE(r.ok()) << argument;
    EXPECT_NE(r.errors().find("expected 'ELEMENTNAME PARAM'"), std::string::npos) << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
