#include "support/test_router.hh"

namespace headrace::testing {
namespace {

constexpr const char* kTwoCounters =
    "InfiniteSource(LIMIT 5, STOP true) -> a :: Counter -> Discard; g :: { InfiniteSource(LIMIT 8, STOP true) -> b :: "
    "Counter -> Discard; }; h :: HandlerAggregate(ELEMENT a, ELEMENT g/b); DriverManager(wait_stop, wait_stop);";

TEST(HandlerAggregate, AddsAndAverages) {
  TestRouter r(kTwoCounters);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("h.add count"), "13");
  EXPECT_EQ(r.read("h.avg count"), "6.5");
  EXPECT_EQ(r.read("h.add class"), "0");
}

TEST(HandlerAggregate, WritesToAll) {
  TestRouter r(kTwoCounters);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_TRUE(r.write("h.write", "reset")) << r.errors();
  EXPECT_EQ(r.read("h.add count"), "0");
  EXPECT_FALSE(r.write("h.write", "nothing 1"));
}

TEST(HandlerAggregate, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("HandlerAggregate;").errors().find("expected at least one ELEMENT"), std::string::npos);
  EXPECT_FALSE(TestRouter("HandlerAggregate(ELEMENT nobody);").ok());
}

}  // namespace
}  // namespace headrace::testing
