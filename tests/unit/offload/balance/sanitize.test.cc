#include "offload/balance/sanitize.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headrace::balance {
namespace {

BalanceSetup two_by_two() {
  BalanceSetup setup;
  setup.workers = 2;
  setup.chains.resize(2);
  setup.devices.resize(2);
  setup.chains[1].most_job = 64;
  return setup;
}

BalanceDecision good(const BalanceSetup& setup) {
  BalanceDecision d;
  ChainDecision chain;
  chain.shares = {0.5, 0.25};
  chain.job = 64;
  d.workers.assign(static_cast<size_t>(setup.workers), std::vector<ChainDecision>(setup.chains.size(), chain));
  return d;
}

void expect_sane(const BalanceDecision& decision, const BalanceSetup& setup) {
  ASSERT_EQ(decision.workers.size(), static_cast<size_t>(setup.workers));
  for (const auto& chains : decision.workers) {
    ASSERT_EQ(chains.size(), setup.chains.size());
    for (size_t k = 0; k < chains.size(); ++k) {
      ASSERT_EQ(chains[k].shares.size(), setup.devices.size());
      double sum = 0;
      for (const double share : chains[k].shares) {
        EXPECT_TRUE(share >= 0 && share <= 1) << share;
        sum += share;
      }
      EXPECT_LE(sum, 1 + 1e-12);
      EXPECT_TRUE(chains[k].job >= 1 && chains[k].job <= setup.chains[k].most_job);
      EXPECT_TRUE(chains[k].places >= 1 && chains[k].places <= setup.chains[k].most_places);
    }
  }
}

TEST(BalanceSanitize, LeavesGoodDecisionsAlone) {
  const BalanceSetup setup = two_by_two();
  BalanceDecision d = good(setup);
  Corrections corrections;
  sanitize(d, setup, corrections);
  EXPECT_TRUE(corrections.lines().empty());
  EXPECT_EQ(d.workers[1][1].shares, (std::vector<double>{0.5, 0.25}));
  // Three tenths, added in an order that rounds up.
  d.workers[0][0].shares = {0.7, 0.3 + 1e-16};
  sanitize(d, setup, corrections);
  EXPECT_EQ(corrections.all(), 0u);
}

TEST(BalanceSanitize, StreamOnlyWhereADeviceTakesIt) {
  BalanceSetup setup = two_by_two();
  for (const bool takes : {false, true}) {
    setup.devices[1].stream = takes;
    BalanceDecision d = good(setup);
    d.workers[1][0].stream = true;
    Corrections corrections;
    sanitize(d, setup, corrections);
    EXPECT_EQ(d.workers[1][0].stream, takes);
    if (takes) {
      EXPECT_EQ(corrections.all(), 0u);
      continue;
    }
    ASSERT_EQ(corrections.lines().size(), 1u);
    EXPECT_EQ(corrections.lines()[0],
              "expected a run that a device offers: none takes jobs by stream (1 time, first at worker 1, chain 0)");
  }
}

TEST(BalanceSanitize, NamesAndCountsEachMistake) {
  const BalanceSetup setup = two_by_two();
  BalanceDecision d = good(setup);
  d.workers[0][0].shares = {std::nan(""), 2};
  d.workers[0][1].shares = {0.75, 0.75};
  d.workers[1][0].shares = {1, 0, 0};
  d.workers[1][0].job = 0;
  d.workers[1][1].job = 65;
  d.workers[1][1].places = 1000;
  d.workers[1][1].slice = 0;
  d.workers[1][1].max_wait_us = -1;
  d.workers[1][1].probe_device = 2;
  d.optimum_mpps = std::numeric_limits<double>::infinity();
  Corrections corrections;
  BalanceDecision again = d;
  sanitize(d, setup, corrections);
  expect_sane(d, setup);
  EXPECT_EQ(corrections.all(), 11u);
  EXPECT_EQ(corrections.lines().size(), 10u);
  EXPECT_EQ(corrections.lines()[0], "expected a share that is a number (1 time, first at worker 0, chain 0)");
  // Those of the next decision are added, in the sum and by kind.
  sanitize(again, setup, corrections);
  EXPECT_EQ(corrections.all(), 22u);
  EXPECT_EQ(corrections.lines().size(), 10u);
  EXPECT_EQ(corrections.lines()[0], "expected a share that is a number (2 times, first at worker 0, chain 0)");
  EXPECT_DOUBLE_EQ(d.workers[0][1].shares[0], 0.5);
}

TEST(BalanceSanitize, FillsWhatIsMissing) {
  const BalanceSetup setup = two_by_two();
  for (BalanceDecision d :
       {BalanceDecision(), BalanceDecision{{{}, {}, {}}, "", 0}, BalanceDecision{{{ChainDecision()}}, "", 0}}) {
    Corrections corrections;
    sanitize(d, setup, corrections);
    EXPECT_GT(corrections.all(), 0u);
    EXPECT_FALSE(corrections.lines().empty());
    expect_sane(d, setup);
  }
}

/// Sends all to a device, does not know how much, and throws, in turn.
class Errs : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker) chain.shares[0] = steps_ % 3 == 1 ? std::nan("") : 1;
    if (++steps_ % 3 == 0) throw 1;
    return decision;
  }
  void learn(std::string_view text) override { throw std::string(text); }

 private:
  int steps_ = 0;
};

TEST(BalanceSanitize, WhatABalancerThrowsIsAMistake) {
  Errs balancer;
  balancer.set_setup(two_by_two());
  Corrections corrections;
  teach(balancer, "", corrections);
  EXPECT_EQ(corrections.all(), 0u) << "there is nothing to learn";
  teach(balancer, "something", corrections);
  BalanceDecision last;
  std::vector<double> shares;
  for (uint64_t number = 1; number <= 6; ++number) {
    Corrections later;
    last = decide(balancer, BalanceSample(), last, number, later);
    expect_sane(last, balancer.setup());
    shares.push_back(last.workers[1][1].shares[0]);
    corrections.add(later);
  }
  EXPECT_EQ(shares, (std::vector<double>{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(corrections.lines(), (std::vector<std::string>{
                                     "learn() threw what is no std::exception (1 time, first at the start)",
                                     "expected a share that is a number (8 times, first at worker 0, chain 0)",
                                     "step() threw what is no std::exception (2 times, first at decision 3)",
                                 }));
  EXPECT_EQ(corrections.all(), 11u);
}

TEST(BalanceSanitize, KindsAreBoundedAndAllAreCounted) {
  Corrections corrections, together;
  for (int i = 0; i < 40; ++i) corrections.add(std::to_string(i), "worker 0");
  corrections.add("39", "worker 0");
  corrections.add("0", "worker 0");
  for (int i = 0; i < 2; ++i) together.add(corrections);
  EXPECT_EQ(corrections.all(), 42u);
  EXPECT_EQ(together.all(), 84u);
  EXPECT_EQ(together.lines().size(), 32u);
  EXPECT_EQ(together.lines()[0], "0 (4 times, first at worker 0)");
  EXPECT_EQ(together.kinds()[31], "31, first at worker 0");
}

TEST(BalanceSanitize, ABalancerThatThrowsAtOnceUsesTheCpu) {
  Errs balancer;
  balancer.set_setup(two_by_two());
  Corrections corrections;
  for (int i = 0; i < 2; ++i) (void)balancer.step(BalanceSample());
  const BalanceDecision decision = decide(balancer, BalanceSample(), BalanceDecision(), 1, corrections);
  EXPECT_EQ(decision.workers[0][0].shares, (std::vector<double>{0, 0}));
  EXPECT_EQ(corrections.all(), 1u);
}

}  // namespace
}  // namespace headrace::balance
