// What Model learns of samples that the simulator does not make.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headrace/balancer.hh"
#include "offload/balance/simulator.hh"
#include "support/source_dir.hh"
#include "unit/offload/balance/simulations.hh"

namespace headrace::balance {
namespace {

/// Workers with one chain beside a device, as the engine's samples show them in two states: bursts are full, and jobs
/// too; or a packet comes now and then, and jobs are of a few packets, which take all places for moments.
class Router {
 public:
  explicit Router(int places = 16) : places_(places), model_(balancer_of("Model")) {
    BalanceSetup setup;
    setup.workers = kWorkers;
    setup.cycles_per_second = kCycles;
    setup.chains.resize(1);
    setup.chains[0].most_job = kJob;
    setup.chains[0].most_places = places;
    setup.devices.resize(1);
    setup.first_device.assign(kWorkers, 0);
    model_->set_setup(setup);
    decision_ = model_->everything_on_cpu();
  }

  /// \param first, others packets a second that come for the first worker, and for each of the others
  /// \returns the mean share of the device at the end
  double run(int steps, double first, double others) {
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
      BalanceSample sample;
      sample.at_ns = at_ns_ += kStepNs;
      sum = 0;
      double wanted = 0;
      for (int w = 0; w < kWorkers; ++w) {
        const double share = share_of(w);
        sum += share;
        wanted += std::min(share * std::min(w == 0 ? first : others, rate(share)), let_through());
      }
      for (int w = 0; w < kWorkers; ++w)
        sample.workers.push_back(sample_of(w, w == 0 ? first : others, std::min(kCapacity / wanted, 1.0)));
      decision_ = model_->step(sample);
    }
    return sum / kWorkers;
  }

  const std::string& why() const { return decision_.why; }

  /// Packets a second that a worker's cycles suffice for.
  static double rate(double share) { return kCycles / (kOutside + kCpu - share * (kCpu - kDevice)); }

  static constexpr int kWorkers = 4;
  static constexpr double kCycles = 2e9, kCpu = 1000, kDevice = 100, kOutside = 100, kCapacity = 20e6;

 private:
  static constexpr int64_t kStepNs = 5'000'000;
  static uint64_t count(double v) { return static_cast<uint64_t>(v); }

  /// Packets a second that a worker's places suffice for in a device that has nothing else to do.
  double let_through() const { return 1e9 * places_ * kJob / kJobNs; }
  double share_of(int worker) const { return decision_.workers[static_cast<size_t>(worker)][0].shares[0]; }
  /// \param taken the part of the packets for the device that it takes
  WorkerSample sample_of(int worker, double per_second, double taken) const {
    const ChainDecision& decision = decision_.workers[static_cast<size_t>(worker)][0];
    const double s = static_cast<double>(kStepNs) * 1e-9, share = share_of(worker);
    double there = share * per_second, here = per_second - there, full = 0;
    const bool backlogged = per_second > rate(0);
    double cpu = kCpu, device = kDevice, outside = kOutside, packets_a_job = kJob, job_ns = kJobNs, starved = 0,
           busy = 1;
    if (backlogged) {
      const double sent = share * rate(share);
      there = taken * std::min(sent, let_through());
      here = (kCycles - there * (kOutside + kDevice)) / (kOutside + kCpu);
      full = sent - there;
      if (full > 0)
        job_ns = 1e9 * places_ * kJob / there;  // all places are taken
      else
        starved = 0.1;
    } else {
      // Packets that come alone.
      cpu *= kAlone;
      device *= 4;
      outside *= kAlone;
      packets_a_job = 3;
      job_ns = 18'000;
      full = 0.01 * there;
      busy = std::min((here * cpu + there * device + per_second * outside) / kCycles, 0.9);
    }
    WorkerSample w;
    w.worker = worker;
    w.ns = kStepNs;
    w.cycles = count(kCycles * s);
    w.busy = count(busy * kCycles * s);
    w.waiting = backlogged || there <= 0 ? 0 : count(0.1 * kCycles * s);
    const double arrived = (there + here) * s, burst = backlogged ? 128 : 1.5;
    w.bursts = count(arrived / burst);
    w.full_bursts = backlogged ? w.bursts : 0;
    ChainSample& c = w.chains.emplace_back();
    c.arrived = count(arrived);
    c.bytes = c.arrived * 64;
    c.cpu.packets = c.cpu.timed = count(here * s);
    c.cpu.cycles = count(here * s * cpu);
    add_batches(c.cpu_batches, here * s, cpu, backlogged);
    add_batches(w.outside, arrived, outside, backlogged);
    DeviceSample& d = c.devices.emplace_back();
    d.packets = d.timed = count(there * s);
    d.cycles = count(there * s * device);
    d.jobs = count(there * s / packets_a_job);
    d.job_ns = d.jobs * count(job_ns);
    d.full = count(full * s);
    d.polls = share > 0 ? 1000 : 0;
    d.starved = count(starved * static_cast<double>(d.polls));
    d.share = share;
    if (decision.probe > 0 && decision.probe_device == 0) {
      d.packets = d.timed = static_cast<uint64_t>(decision.probe);
      d.cycles = count(decision.probe * device);
      d.jobs = 1;
      d.job_ns = kJobNs;
    }
    return w;
  }

  /// Batches of one and of two packets, where each costs the same whether it comes alone or not.
  static void add_batches(BatchSums& sums, double packets, double cycles, bool full) {
    const int n = full ? 128 : 2;
    for (double left = packets; left >= n; left -= full ? n : 3) {
      sums.add(static_cast<uint64_t>(n), count(cycles * n));
      if (!full) sums.add(1, count(cycles));
    }
  }

  /// Times what a packet costs in a full burst, one of a burst of one or two.
  static constexpr double kAlone = 1.9;
  static constexpr int kJob = 64, kJobNs = 60'000;

  const int places_;
  std::unique_ptr<Balancer> model_;
  BalanceDecision decision_;
  int64_t at_ns_ = 0;
};

TEST(BalanceModel, SmallJobsWithoutPlaceDoNotFillADevice) {
  Router router;
  constexpr double kMuch = 1e8;
  const double share = router.run(60, kMuch, kMuch);
  EXPECT_GT(share, 0.5);
  // Near the limit of the CPU a worker stays on the device.
  const double most = Router::rate(0);
  EXPECT_GT(router.run(60, 0.96 * most, 0.2 * most), 0.5 / Router::kWorkers);
  EXPECT_GT(router.run(2, kMuch, kMuch), 0.9 * share);
}

TEST(BalanceModel, WhatPacketsThatComeAloneCostIsNotWhatTheCpuCanDo) {
  Router router;
  EXPECT_GT(router.run(60, 1e8, 1e8), 0.5);
  const double most = Router::rate(0);
  EXPECT_EQ(router.run(20, 0.45 * most, 0.45 * most), 0);
}

TEST(BalanceModel, SaysHowManyPlacesAWorkerLacks) {
  constexpr double kMuch = 1e8;
  const double little = 0.2 * Router::rate(0);
  // All of them keep the device busy. A single one has no more places long before: 20 Mpps are 18.75 jobs in the time that one
  // takes, and one is being filled.
  Router few(8);
  few.run(20, kMuch, kMuch);
  EXPECT_TRUE(few.why().starts_with("device binds")) << few.why();
  few.run(20, kMuch, little);
  EXPECT_EQ(few.why(), "places bind: 8, needs 20 on worker 0");
  Router enough(20);
  enough.run(20, kMuch, kMuch);
  enough.run(20, kMuch, little);
  EXPECT_EQ(enough.why().find("places"), std::string::npos) << enough.why();
}

/// What Model says of two chains, of which the first has more packets, and is over its bound.
std::string words(bool own_first, bool own_second) {
  const std::unique_ptr<Balancer> model = balancer_of("Model");
  BalanceSetup setup;
  setup.cycles_per_second = 2e9;
  setup.chains.resize(2);
  setup.chains[0].balanced = own_first;
  setup.chains[1].balanced = own_second;
  setup.chains[0].p99_us = 100;
  setup.devices.resize(1);
  setup.first_device = {0};
  model->set_setup(setup);
  std::string why;
  for (int i = 1; i <= 10; ++i) {
    BalanceSample sample;
    sample.at_ns = i * 5'000'000;
    WorkerSample& w = sample.workers.emplace_back();
    w.ns = 5'000'000;
    w.cycles = 10'000'000;
    w.busy = 8'000'000;
    w.bursts = 100;
    for (const uint64_t packets : {5000, 1000}) {
      ChainSample& c = w.chains.emplace_back();
      c.devices.resize(1);
      c.arrived = c.cpu.packets = c.cpu.timed = c.delays = packets;
      c.cpu.cycles = 1000 * packets;
      c.delay_p50_ns = c.delay_p99_ns = 1'000'000;
    }
    why = model->step(sample).why;
  }
  return why;
}

TEST(BalanceModel, SaysNothingOfChainsOfOtherBalancers) {
  const std::string late = "p99 bound 100 us out of reach (seen 1000)";
  EXPECT_NE(words(true, true).find(late), std::string::npos) << words(true, true);
  EXPECT_EQ(words(false, true).find("p99"), std::string::npos) << words(false, true);
  EXPECT_EQ(words(false, false), "no chains");
}

TEST(BalanceModel, SanitizersSeeEachMachineForAMoment) {
  // Longer runs take minutes with sanitizers: make test has those in the release build.
  int machines = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(kSourceDir) / "bench" / "machines")) {
    if (entry.path().extension() != ".json") continue;
    const auto model = balancer_of("Model");
    std::vector<Phase> phases = machine_file(entry.path());
    phases.resize(1);
    const Simulated r = simulate(phases, *model, 0.1, 1);
    EXPECT_GT(share_of_optimum(r.phases.at(0)), 0.5) << entry.path();
    ++machines;
  }
  EXPECT_GE(machines, 16);
}

}  // namespace
}  // namespace headrace::balance
