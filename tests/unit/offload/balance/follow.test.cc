// How workers move their shares, and how the times of a device are learnt.

#include "offload/balance/follow.hh"

#include <gtest/gtest.h>

#include <numeric>

#include "offload/balance/DeviceTimes.hh"
#include "offload/balance/MoveJudge.hh"

namespace headrace::balance {
namespace {

Lean lean_of(double cpu, double device) {
  Lean lean;
  lean.see_cpu(cpu, 1);
  lean.see_devices(device, 1);
  return lean;
}

TEST(BalanceFollow, ADeviceWithEverythingIsJudgedByWaiting) {
  const Lean lean = lean_of(1000, 100);
  std::vector<double> shares{1};
  follow_shares(shares, {{0.5, 0, 0.05}}, lean, 0.1, 1);
  EXPECT_EQ(shares[0], 1) << "to wait for 0.05 of the time costs less than to divide";
  follow_shares(shares, {{0.5, 0, 0.3}}, lean, 0.1, 1);
  EXPECT_LT(shares[0], 1 - kNothing);
  EXPECT_GT(shares[0], 0.98)
      << "of packets that are ten times dearer on the CPU few are needed to fill 0.3 of the time";
}

TEST(BalanceFollow, DividingIsWorthWhileWhereTheCpuGainsByIt) {
  // One worker of 1000 cycles a second, o = 40, c = 60, d = 20, on a device that takes B packets a second.
  const double all = 1000, o = 40, c = 60, d = 20, dividing = 9;
  for (double device = 1; device < all / (o + d); device += 0.1) {
    const double waiting = 1 - device * (o + d) / all;
    const double gained = (all - device * (o + d + dividing)) / (o + c + dividing);
    EXPECT_EQ(waiting > worth_dividing(dividing, o + d), gained > 0) << device;
  }
  EXPECT_EQ(worth_dividing(0, 100), 0);
}

TEST(BalanceFollow, ADeviceThatIsOftenFullDoesNotGetEverything) {
  const Lean lean = lean_of(1000, 100);
  std::vector<double> shares{0.99};
  for (int ms = 0; ms < 100; ++ms) follow_shares(shares, {{0.05, 0, 0}}, lean, 0, 1);
  EXPECT_FALSE(is_everything(shares[0]));
  for (int ms = 0; ms < 100; ++ms) follow_shares(shares, {{0.001, 0, 0}}, lean, 0, 1);
  EXPECT_TRUE(is_everything(shares[0]));
}

TEST(BalanceFollow, WhereTheCpuHasNothingDevicesExchange) {
  std::vector<double> shares{0.5, 0.5, 0};
  for (int ms = 0; ms < 4; ++ms) follow_shares(shares, {{0.2, 0, 0}, {0, 0.3, 0}, {0, 1, 0}}, lean_of(1000, 100), 0, 1);
  EXPECT_LT(shares[0], 0.45);
  EXPECT_NEAR(shares[0] + shares[1], 1, 1e-9);
  EXPECT_EQ(shares[2], 0) << "only the balancer gives shares to a device that has none";
}

TEST(BalanceFollow, SharesStayShares) {
  std::vector<double> shares{0.6, 0.3};
  const Lean lean = lean_of(100, 90);
  for (int ms = 0; ms < 1000; ++ms) {
    const double a = (ms * 7 % 10) * 0.1, b = (ms * 3 % 10) * 0.1;
    follow_shares(shares, {{a, 1 - a, 0}, {b, 1 - b, 0}}, lean, 0, ms % 5);
    EXPECT_LE(std::accumulate(shares.begin(), shares.end(), 0.0), 1 + 1e-9);
    for (const double share : shares) EXPECT_TRUE(share >= 0 && share <= 1) << share;
  }
}

/// What is judged of one worker, always backlogged. Its samples are 5 ms apart.
class Judged {
 public:
  explicit Judged(size_t devices) : judge_(devices) {}
  void see(double rate, int steps, bool waits = false) {
    for (int i = 0; i < steps; ++i) judge_.see(rate, 5e6, now_ += 5e6, true, waits);
  }
  void decide(const std::vector<bool>& used, double expected, double left) {
    judge_.decide(used, expected, left, now_);
  }
  bool refuses(size_t device) const { return judge_.refuses(device, now_); }

 private:
  MoveJudge judge_;
  double now_ = 0;
};

TEST(BalanceMoveJudge, WhatIsAsLowWithoutTheDeviceIsNoFaultOfIt) {
  Judged judge(1);
  judge.see(100, 20);
  judge.decide({true}, 200, 1);
  judge.see(40, 10);
  EXPECT_TRUE(judge.refuses(0));
  judge.decide({false}, 200, 1);
  judge.see(40, 10);
  EXPECT_FALSE(judge.refuses(0));
}

TEST(BalanceMoveJudge, AWorkerThatWaitsHasTimeToLearn) {
  Judged judge(1);
  judge.see(100, 20, true);
  judge.decide({true}, 200, 1);
  judge.see(40, 15, true);
  EXPECT_FALSE(judge.refuses(0)) << "it gives the device too much, which shows soon";
  judge.see(40, 10, true);
  EXPECT_TRUE(judge.refuses(0)) << "it does not";
}

TEST(BalanceMoveJudge, WhatOthersLoseAWorkerWithoutSampleMayLose) {
  // Packets became dearer, and its sample is missing: what it did last is of those before.
  for (const double left : {0.5, 1.0}) {
    Judged judge(1);
    judge.see(100, 20);
    judge.decide({true}, 200, left);
    judge.see(50, 10);
    EXPECT_EQ(judge.refuses(0), left == 1);
  }
}

TEST(BalanceMoveJudge, AnotherDeviceTellsWhetherTheFirstWasAtFault) {
  Judged judge(2);
  judge.see(100, 20);
  judge.decide({true, false}, 200, 1);
  judge.see(40, 10);
  EXPECT_TRUE(judge.refuses(0));
  // What the first one had goes to the second, and it is as slow: packets have become dearer.
  judge.decide({false, true}, 200, 1);
  judge.see(40, 8);
  EXPECT_FALSE(judge.refuses(0));
  EXPECT_FALSE(judge.refuses(1));
}

TEST(BalanceMoveJudge, ASecondDeviceIsJudgedBesideTheFirst) {
  Judged judge(2);
  judge.see(100, 20);
  judge.decide({true, false}, 200, 1);
  judge.see(60, 10);
  EXPECT_TRUE(judge.refuses(0));
  judge.decide({false, true}, 200, 1);
  judge.see(30, 10);
  EXPECT_TRUE(judge.refuses(1)) << "it is slower than the first";
  judge.decide({false, false}, 200, 1);
  judge.see(100, 10);
  EXPECT_TRUE(judge.refuses(1)) << "and the CPU is not";
}

TEST(BalanceDeviceTimes, ATimeAtItsLeastDoesNotHoldTheOthersBack) {
  // What came back, in millions a second, while a device that takes 0.1 and 0.68 us was found. The first sample makes
  // the errors of both times opposite: what one takes more, the other takes less, down to next to nothing.
  DeviceTimes times(2);
  const auto busy = [&](double first, double second) {
    DeviceTimes::Seen seen(2);
    seen.per_second = {first * 1e6, second * 1e6};
    times.busy(seen, 1, true);
  };
  for (const auto& [first, second] : {std::pair(1.451, 1.809), std::pair(0.670, 1.387), std::pair(0.428, 1.414),
                                      std::pair(0.221, 1.436), std::pair(0.145, 1.426)})
    busy(first, second);
  for (int i = 0; i < 5; ++i) busy(0.150, 1.440);
  EXPECT_NEAR(times.used({0.150e6, 1.440e6}), 1, 0.03);
  EXPECT_NEAR(times.seconds(1), 0.68e-6, 0.04e-6);
}

TEST(BalanceDeviceTimes, TriesThatWereMistakesBecomeRare) {
  DeviceTimes times(1);
  DeviceTimes::Seen seen(1);
  seen.per_second = {1e6};
  times.busy(seen, 1, true);
  // The device takes all that comes, until it is believed to be so fast that it gets more, and is full again.
  int since = 0, longest = 0;
  for (int step = 0; step < 1000; ++step, ++since) {
    if (times.used(seen.per_second) > 0.9) {
      times.calm(false);
      continue;
    }
    longest = std::max(longest, since);
    since = 0;
    times.busy(seen, 1, true);
  }
  EXPECT_GE(longest, 100);
}

}  // namespace
}  // namespace headrace::balance
