#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// Packets of 10000 that leave by outputs 0 and 1.
std::pair<int, int> sampled(const std::string& arguments) {
  TestRouter r("InfiniteSource(LIMIT 10000, BURST 100, STOP true) -> s :: RandomSample(" + arguments +
               ") -> a :: Discard; s[1] -> b :: Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  r.run();
  EXPECT_EQ(r.read("s.drops"), r.read("b.count"));
  return {std::stoi(r.read("a.count")), std::stoi(r.read("b.count"))};
}

TEST(RandomSample, TakesItsShare) {
  // The standard deviation is 43 packets.
  EXPECT_NEAR(sampled("0.25").first, 2500, 400);
  EXPECT_NEAR(sampled("SAMPLE 0.75").first, 7500, 400);
  EXPECT_NEAR(sampled("DROP 0.75").first, 2500, 400);
}

TEST(RandomSample, AllOrNothing) {
  EXPECT_EQ(sampled("1").first, 10000);
  EXPECT_EQ(sampled("0").second, 10000);
  EXPECT_EQ(sampled("0, ACTIVE false").first, 10000);
}

TEST(RandomSample, DropsWithoutOutputOneAlsoWhenPulled) {
  TestRouter r("InfiniteSource(LIMIT 50, STOP true) -> Queue -> s :: RandomSample(0) -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "0");
  EXPECT_EQ(r.read("s.drop_reasons").substr(r.read("s.drop_reasons").find('\t')), "\tnot sampled\n");
}

TEST(RandomSample, HandlersChangeTheProbability) {
  TestRouter r("Idle -> s :: RandomSample(0.25) -> d :: Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.sampling_prob"), "0.25");
  EXPECT_EQ(r.read("s.drop_prob"), "0.75");
  ASSERT_TRUE(r.write("s.drop_prob", "1"));
  EXPECT_EQ(r.read("s.config"), "SAMPLE 0, ACTIVE true");
  r.push("s", "x");
  EXPECT_EQ(r.read("s.drops"), "1");
  ASSERT_TRUE(r.write("s.sampling_prob", "1"));
  r.push("s", "x");
  EXPECT_EQ(r.read("d.count"), "1");
  ASSERT_TRUE(r.write("s.config", "0.5, ACTIVE false"));
  EXPECT_EQ(r.read("s.active"), "false");
  EXPECT_FALSE(r.write("s.sampling_prob", "1.5"));
  EXPECT_FALSE(r.write("s.drop_prob", "-1"));
}

TEST(RandomSample, ArgumentsAreChecked) {
  const auto errors = [](const std::string& arguments) {
    return TestRouter("Idle -> RandomSample" + arguments + " -> Discard;").errors();
  };
  EXPECT_NE(errors("").find("give the sampling probability by P, SAMPLE or DROP"), std::string::npos);
  EXPECT_NE(errors("(SAMPLE 0.1, DROP 0.1)").find("give at most one of SAMPLE and DROP"), std::string::npos);
  EXPECT_NE(errors("(1.5)").find("P: out of range, bound 1"), std::string::npos);
  EXPECT_NE(errors("(DROP -1)").find("DROP: out of range, bound 0"), std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
