#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "offload/balance/TotalJudge.hh"
#include "offload/balance/simulator.hh"
#include "unit/offload/balance/simulations.hh"

namespace headrace::balance {
namespace {

/// Steps of 5 ms in which all workers have more to do than they can.
class BalanceTotalJudge : public ::testing::Test {
 protected:
  /// `ms` at a rate, with a part of the packets on devices; `on_cpu`: what the CPU would do by the costs seen there.
  void pass(int ms, double rate, double share, double on_cpu, bool backlogged = true) {
    for (; ms > 0; ms -= 5) {
      now_ += 5e6;
      judge_.see(rate, 5e6, now_, backlogged, share, on_cpu);
    }
  }
  bool refuses() const { return judge_.refuses(now_); }
  /// Devices that lower the rate, until they are refused.
  void lower() {
    for (int ms = 0; !refuses() && ms < 1000; ms += 5) pass(5, 92, 0.8, 84);
    ASSERT_TRUE(refuses());
  }

  TotalJudge judge_;
  double now_ = 5e9;
};

TEST_F(BalanceTotalJudge, LeavesDevicesThatLoweredTheRate) {
  pass(200, 114, 0, 114);
  pass(500, 92, 0.8, 84);
  EXPECT_FALSE(refuses());
  pass(45, 92, 0.8, 84);
  ASSERT_TRUE(refuses());
  EXPECT_NEAR(judge_.before(), 114, 0.1);
  EXPECT_NEAR(judge_.after(), 92, 0.1);
  pass(20, 95, 0, 114);
  pass(60, 113, 0, 114);
  EXPECT_TRUE(refuses());
}

TEST_F(BalanceTotalJudge, KeepsDevicesThatRaisedIt) {
  pass(200, 80, 0, 80);
  pass(1200, 92, 0.8, 84);
  EXPECT_FALSE(refuses());
}

TEST_F(BalanceTotalJudge, OtherPacketsAreNoFaultOfDevices) {
  // So dear on the CPU that it is no use to try.
  pass(200, 114, 0, 114);
  pass(1200, 92, 0.8, 50);
  EXPECT_FALSE(refuses());
}

TEST_F(BalanceTotalJudge, ATryThatFailsIsShortAndTheLast) {
  pass(200, 114, 0, 114);
  lower();
  double tried = 0;
  for (; refuses() && tried < 1000; tried += 5) pass(5, 84, 0, 84);
  EXPECT_LE(tried, 75);
  pass(900, 92, 0.8, 84);
  EXPECT_FALSE(refuses());
}

TEST_F(BalanceTotalJudge, ATryThatFailsByFarEndsAtOnce) {
  pass(200, 114, 0, 114);
  lower();
  pass(20, 50, 0, 50);
  EXPECT_FALSE(refuses());
}

TEST_F(BalanceTotalJudge, PacketsThatBecomeDearerNeedDevicesAgain) {
  pass(200, 114, 0, 114);
  lower();
  pass(90, 113, 0, 113);
  ASSERT_TRUE(refuses());
  // A pause that has become long.
  for (int i = 0; i < 3; ++i) {
    while (refuses()) pass(5, 113, 0, 113);
    lower();
    pass(90, 113, 0, 113);
    ASSERT_TRUE(refuses());
  }
  pass(60, 70, 0, 70);
  EXPECT_FALSE(refuses());
}

TEST_F(BalanceTotalJudge, PausesAreLongerThanTrialsAndGrow) {
  pass(200, 114, 0, 114);
  double last = 0;
  for (int i = 0; i < 3; ++i) {
    lower();
    double refused = 0;
    for (; refuses(); refused += 5) pass(5, 113, 0, 113);
    EXPECT_GE(refused, std::max(1000.0, 1.9 * last));
    last = refused;
  }
}

TEST_F(BalanceTotalJudge, AWorkerWithTimeLeftSaysNothing) {
  pass(200, 114, 0, 114);
  pass(1200, 92, 0.8, 84, false);
  EXPECT_FALSE(refuses());
}

TEST_F(BalanceTotalJudge, TriesTheCpuAgainAfterAWhile) {
  const auto wait_for_try = [this](double rate, double on_cpu) {
    int waited = 0;
    for (; !refuses() && waited < 20000; waited += 5) pass(5, rate, 0.8, on_cpu);
    EXPECT_TRUE(refuses());
    return waited;
  };
  // Beside devices, packets on the CPU are twice as dear.
  pass(200, 80, 0, 80);
  EXPECT_NEAR(wait_for_try(92, 40), 2000, 50);
  pass(75, 90, 0, 90);
  EXPECT_FALSE(refuses()) << "it was worse";
  // Less and less often.
  EXPECT_NEAR(wait_for_try(92, 40), 4000, 100);
  pass(20, 50, 0, 50);
  EXPECT_FALSE(refuses()) << "far worse";
  // Other packets.
  pass(3000, 92, 0.8, 40);
  EXPECT_NEAR(wait_for_try(60, 30), 2000, 100);
  pass(75, 62, 0, 62);
  EXPECT_TRUE(refuses()) << "it was better";
  EXPECT_NEAR(judge_.before(), 62, 0.1);
  EXPECT_NEAR(judge_.after(), 60, 0.1);
}

/// As when one of many workers is not full in a third of the samples.
TEST_F(BalanceTotalJudge, TriesTheCpuThoughSomeRestAtTimes) {
  pass(200, 80, 0, 80);
  std::mt19937 random(1);
  int tries = 0;
  for (int ms = 0; ms < 60000; ms += 5) {
    const bool was = refuses();
    pass(5, 92, was ? 0 : 0.8, 80, random() % 3 != 0);
    tries += !was && refuses();
  }
  EXPECT_GE(tries, 4);
  EXPECT_LE(tries, 12);
}

TEST_F(BalanceTotalJudge, TriesNoCpuThatIsNoHope) {
  pass(200, 60, 0, 60);
  pass(10000, 92, 0.8, 30);
  EXPECT_FALSE(refuses());
}

/// What is new shows in the costs at once, and in the mean of the rates a little later.
TEST_F(BalanceTotalJudge, HopeMustLast) {
  pass(200, 8, 0, 8);
  pass(3000, 10, 0.8, 5);
  ASSERT_FALSE(refuses());
  pass(1500, 30, 0.8, 15);
  EXPECT_FALSE(refuses());
}

/// As where a chain that the balancer does not decide on keeps workers from being idle.
TEST_F(BalanceTotalJudge, ATryThatNobodyFollowsIsNotRepeatedMeanwhile) {
  pass(200, 80, 0, 80);
  int refused = 0;
  for (int ms = 0; ms < 120000; ms += 5) {
    pass(5, 92, 0.8, 80);
    refused += refuses();
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 120000 / 5 / 4);
}

/// IDS rules on 64 bytes, with costs as beside an H200: what goes to the device makes packets on the CPU dearer, so that
/// it saves cycles once it is used.
class BesideDevices : public ::testing::Test {
 protected:
  static std::string chain(int cpu, int beside) {
    return fmt::format(R"("chains": [{{"name": "ids", "cpu": {}, "cpu_beside": {}, "device": 285, "mpps": 75,
                           "link_bytes": 128, "payload": true, "most_job": 256, "most_places": 16}}])",
                       cpu, beside);
  }
  /// \param steps a list in JSON
  static std::vector<Phase> phases(const std::string& chain, const std::string& steps) {
    std::string error;
    std::vector<Phase> all = read_machine(fmt::format(R"({{
      "name": "beside", "workers": 15, "ghz": 2.1, "outside": 28, "mpps": 0, "cold_cycles": 300,
      "devices": [{{"name": "H200", "link_gb": 50, "job_us": 30, "packet_ns": 60, "job_cycles": 2000}}],
      {}, "steps": {}
    }})",
                                                      chain, steps),
                                          error);
    EXPECT_FALSE(all.empty()) << error;
    return all;
  }
};

/// They have become cheaper meanwhile, which nobody sees.
TEST_F(BesideDevices, TheCpuIsTriedAgain) {
  const std::vector<Phase> all =
      phases(chain(350, 380), fmt::format(R"([{{"at_s": 0.5, "change": {{{}}}}}, {{"at_s": 4, "change": {{{}}}}}])",
                                          chain(262, 355), chain(262, 355)));
  ASSERT_EQ(all.size(), 3u);
  const auto model = balancer_of("Model");
  const Simulated r = simulate(all, *model, 5, 1);
  EXPECT_GE(share_of_optimum(r.phases[0]), 0.98);
  EXPECT_GT(r.phases[1].share, 0.3) << "it does not meet what this is about";
  EXPECT_GE(share_of_optimum(r.phases[2]), 0.98);
}

/// For 60 ms all is dearer, and devices seem to save cycles from the beginning.
TEST_F(BesideDevices, CostsDoNotKeepThem) {
  const std::vector<Phase> phases = this->phases(
      chain(262, 355), fmt::format(R"([{{"at_s": 0.3, "change": {{{}}}}}, {{"at_s": 0.36, "change": {{{}}}}},
                                      {{"at_s": 1.1, "change": {{{}}}}}])",
                                   chain(350, 380), chain(262, 355), chain(262, 355)));
  for (const uint64_t noise : {1u, 2u, 3u}) {
    SCOPED_TRACE(noise);
    const auto model = balancer_of("Model");
    const Simulated r = simulate(phases, *model, 1.5, noise);
    EXPECT_GE(share_of_optimum(r.phases[0]), 0.98);
    EXPECT_GT(r.phases[2].share, 0.5) << "it does not meet what this is about";
    EXPECT_GE(share_of_optimum(r.phases[3]), 0.98);
  }
}

}  // namespace
}  // namespace headrace::balance
