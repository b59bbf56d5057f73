#include "offload/balance/formulas.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace headrace::balance {
namespace {

double uniform(std::mt19937_64& bits, double least, double most) {
  return least + (most - least) * static_cast<double>(bits() >> 11) * 0x1p-53;
}

TEST(BalanceFormulas, TheBestShareIsThatOfTrying) {
  std::mt19937_64 bits(1);
  for (int i = 0; i < 500; ++i) {
    Sides s;
    s.cycles = uniform(bits, 1e9, 3e10);
    s.outside = uniform(bits, 10, 200);
    s.cpu = uniform(bits, 20, 3000);
    s.device = uniform(bits, 20, 500);
    s.capacity = uniform(bits, 1e6, 2e8);
    double best = 0;
    for (int x = 0; x <= 10000; ++x) best = std::max(best, rate(s, x / 10000.0));
    EXPECT_GE(best_rate(s), best * (1 - 1e-9));
    // The peak is steep: a step of the grid beside it costs up to c / 10000 packets' worth.
    EXPECT_LE(best_rate(s), best * 1.02);
    if (s.device >= s.cpu) {
      EXPECT_EQ(best_share(s), 0);
    }
  }
}

TEST(BalanceFormulas, TheLargestJobByBytes) {
  BalanceSetup::Chain chain;
  chain.most_job = 256;
  EXPECT_EQ(largest_job(chain, 1500), 256);
  chain.job_bytes = 32768;
  EXPECT_EQ(largest_job(chain, 0), 64);
  EXPECT_EQ(largest_job(chain, 64), 256);
  EXPECT_EQ(largest_job(chain, 128), 256);
  EXPECT_EQ(largest_job(chain, 200), 164);
  EXPECT_EQ(largest_job(chain, 512), 64);
  EXPECT_EQ(largest_job(chain, 9000), 64);
  chain.most_job = 16;
  EXPECT_EQ(largest_job(chain, 64), 16);
}

TEST(BalanceFormulas, TheMeasuredMachine) {
  // Matcher, 512 bytes, 15 workers: ../shared/reference has 0.716 and 116 Mpps.
  const Sides s{31.5e9, 60, 427, 125, 83.3e6};
  EXPECT_NEAR(best_share(s), 0.716, 0.003);
  EXPECT_NEAR(best_rate(s) * 1e-6, 116, 0.5);
  // Never the sum of both sides.
  EXPECT_LT(best_rate(s), s.capacity + s.cycles / (s.outside + s.cpu));
}

TEST(BalanceFormulas, EndsOfTheShare) {
  EXPECT_EQ(best_share({1e9, 50, 100, 100, 1e9}), 0) << "a device that costs as much saves nothing";
  EXPECT_EQ(best_share({1e9, 50, 100, 40, 1e9}), 1) << "workers bind";
  EXPECT_EQ(best_share({1e9, 50, 100, 40, 0}), 0) << "no device";
  EXPECT_EQ(rate({}, 0.5), 0);
}

TEST(BalanceFormulas, ForetoldDelayGrowsWithJobsAndPlaces) {
  DevicePath p;
  p.arrivals = 5e6;
  p.capacity = 6e6;
  p.job_ns = 12e3;
  p.stretch_ns = 5e3;
  p.max_wait_ns = 20e3;
  p.job = 64;
  p.places = 4;
  const double small = foretold_p99_ns(p);
  EXPECT_NEAR(small, 64e9 / 5e6 + 12e3 + 5e3 + (4 * 64e9 / 6e6 - 12e3) * (25.0 / 36), 1);
  p.job = 1024;
  EXPECT_GT(foretold_p99_ns(p), small);
  EXPECT_LE(places_needed(p), 2);
  p.job = 16;
  EXPECT_EQ(places_needed(p), 1 + static_cast<int>(std::ceil(6e6 * 17e-6 / 16)));
  p.capacity = 0;
  EXPECT_EQ(places_needed(p), 1);
}

TEST(BalanceFormulas, WhoSavesMostPerDeviceTimeComesFirst) {
  std::vector<Errand> errands{
      {0, 0, 0, 1e6, 100, 10}, {0, 1, 0, 1e6, 900, 50}, {1, 0, 0, 1e6, -5, 1}, {1, 1, 0, 0, 50, 1}};
  order_by_saving(errands);
  ASSERT_EQ(errands.size(), 2u);
  EXPECT_EQ(errands[0].chain, 1u);
}

Shop random_shop(std::mt19937_64& bits, size_t workers, size_t chains, size_t devices) {
  Shop shop;
  shop.devices = devices;
  for (size_t w = 0; w < workers; ++w) {
    Shop::Worker& worker = shop.workers.emplace_back();
    worker.cycles = uniform(bits, 1e9, 3e9);
    worker.outside = uniform(bits, 20, 200);
    worker.arrivals = uniform(bits, 1e5, 2e7);
    for (size_t k = 0; k < chains; ++k) {
      Shop::Use& use = worker.chains.emplace_back();
      use.packets = 1.0 / static_cast<double>(chains);
      use.cpu = uniform(bits, 50, 2000);
      for (size_t d = 0; d < devices; ++d) {
        use.device.push_back(uniform(bits, 20, 300));
        use.device_ns.push_back(uniform(bits, 5, 500));
      }
    }
  }
  return shop;
}

TEST(BalanceFormulas, TheLinearProgramOfOneWorkerIsTheFormula) {
  std::mt19937_64 bits(2);
  for (int i = 0; i < 200; ++i) {
    Shop shop = random_shop(bits, 1, 1, 1);
    shop.workers[0].arrivals = 1e9;
    const Shop::Use& use = shop.workers[0].chains[0];
    const Sides s{shop.workers[0].cycles, shop.workers[0].outside, use.cpu, use.device[0], 1e9 / use.device_ns[0]};
    EXPECT_NEAR(highest_rate(shop) / best_rate(s), 1, 1e-6);
  }
}

/// The best that a grid of shares finds: two workers, two chains, one device.
double grid_rate(const Shop& shop) {
  constexpr int kSteps = 20;
  double best = 0;
  double share[4];
  for (int i = 0; i < (kSteps + 1) * (kSteps + 1) * (kSteps + 1) * (kSteps + 1); ++i) {
    for (int j = 0, rest = i; j < 4; ++j, rest /= kSteps + 1)
      share[j] = rest % (kSteps + 1) / static_cast<double>(kSteps);
    double sum = 0, time = 0, rates[2];
    for (size_t w = 0; w < 2; ++w) {
      const Shop::Worker& worker = shop.workers[w];
      double cost = worker.outside, device = 0;
      for (size_t k = 0; k < 2; ++k) {
        const Shop::Use& use = worker.chains[k];
        cost += use.packets * (use.cpu + share[2 * w + k] * (use.device[0] - use.cpu));
        device += use.packets * share[2 * w + k] * use.device_ns[0];
      }
      rates[w] = std::min(worker.arrivals, worker.cycles / cost);
      time += rates[w] * device;
      sum += rates[w];
    }
    if (time <= 1e9) best = std::max(best, sum);
  }
  return best;
}

TEST(BalanceFormulas, TheLinearProgramBeatsAnyGrid) {
  std::mt19937_64 bits(3);
  for (int i = 0; i < 10; ++i) {
    const Shop shop = random_shop(bits, 2, 2, 1);
    const double best = highest_rate(shop), grid = grid_rate(shop);
    EXPECT_GE(best, grid * (1 - 1e-9));
    EXPECT_LE(best, grid * 1.25) << "no better than a finer grid could be";
  }
}

TEST(BalanceFormulas, GreedyIsFeasibleAndNearTheLinearProgram) {
  std::mt19937_64 bits(4);
  double sum = 0;
  for (int i = 0; i < 200; ++i) {
    const Shop shop = random_shop(bits, 3, 2, 1);
    double greedy = 0;
    for (const double r : greedy_rates(shop)) greedy += r;
    const double best = highest_rate(shop);
    EXPECT_LE(greedy, best * (1 + 1e-6));
    sum += greedy / best;
  }
  EXPECT_GT(sum / 200, 0.9);
}

TEST(BalanceFormulas, FirstDeviceExists) {
  BalanceSetup setup;
  setup.devices.resize(2);
  setup.first_device = {1, 7, -1};
  EXPECT_EQ(first_device(setup, 0), 1u);
  EXPECT_EQ(first_device(setup, 1), 0u);
  EXPECT_EQ(first_device(setup, 2), 0u);
  EXPECT_EQ(first_device(setup, 99), 0u);
}

}  // namespace
}  // namespace headrace::balance
