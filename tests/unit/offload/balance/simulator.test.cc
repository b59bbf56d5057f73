// Balancers on simulated machines: those of bench/machines and random ones.

#include "offload/balance/simulator.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "offload/balance/formulas.hh"
#include "support/source_dir.hh"
#include "unit/offload/balance/random_machines.hh"
#include "unit/offload/balance/simulations.hh"

namespace headrace::balance {
namespace {

TEST(BalanceSimulator, ModelIsNearTheOptimumOnEveryMachine) {
  int machines = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(kSourceDir) / "bench/machines")) {
    const std::vector<Phase> phases = machine_file(file.path());
    if (phases.empty()) continue;
    ++machines;
    for (const uint64_t noise : {1u, 2u, 3u}) {
      const auto model = balancer_of("Model");
      const Simulated r = simulate(phases, *model, phases.back().at_s + 0.4, noise);
      EXPECT_EQ(r.corrections.all(), 0u);
      ASSERT_EQ(r.phases.size(), phases.size());
      for (const SimulatedPhase& p : r.phases) {
        const std::string where =
            fmt::format("{}, noise {} from {} s: {}", phases[0].machine.name, noise, p.at_s, p.why);
        EXPECT_GE(share_of_optimum(p), 0.98) << where;
        EXPECT_TRUE(p.at_95_ms >= 0 && p.at_95_ms <= 100) << where << ": 0.95 after " << p.at_95_ms << " ms";
        EXPECT_TRUE(p.at_98_ms >= 0 && p.at_98_ms <= 100) << where << ": 0.98 after " << p.at_98_ms << " ms";
        EXPECT_LE(p.cycling, 0.02) << where;
        EXPECT_LE(p.over_bound, 0.02) << where;
      }
    }
  }
  EXPECT_GE(machines, 16);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
// The build with sanitizers, in which each takes ten times as long.
constexpr uint64_t kMachines = 100;
#else
constexpr uint64_t kMachines = 1000;
#endif

/// Of the random machines.
struct Score : SimulatedScore {
  std::string worst;
  double least = 2;
  std::string missed;
};

TEST(BalanceSimulator, ModelIsNearTheOptimumOnRandomMachines) {
  const bool all = kMachines == 1000;
  // [several devices or chains][other noise]
  Score scores[2][2];
  for (uint64_t i = 1; i <= kMachines + kMachines / 4; ++i) {
    // Every fourth machine a second time, with other noise.
    const bool again = i > kMachines;
    const uint64_t seed = again ? 4 * (i - kMachines) : i, noise = again ? 100000 + seed : seed;
    const std::vector<Phase> phases = random_machine(seed, 0.4);
    const auto model = balancer_of("Model");
    const Simulated r = simulate(phases, *model, 0.8, noise);
    EXPECT_EQ(r.corrections.all(), 0u) << "seed " << seed;
    Score& score = scores[phases[0].machine.devices.size() > 1 || phases[0].machine.chains.size() > 1][again];
    for (const SimulatedPhase& p : r.phases) {
      if (!score.add(p)) score.missed += fmt::format(" machine {} from {} s,", seed, p.at_s);
      if (share_of_optimum(p) >= score.least) continue;
      score.least = share_of_optimum(p);
      score.worst = fmt::format("machine {}, noise {} from {} s: {:.3f}, {}", seed, noise, p.at_s, score.least, p.why);
    }
  }
  for (const bool several : {false, true})
    for (const bool again : {false, true}) {
      const Score& s = scores[several][again];
      const auto part = [&](int n) { return static_cast<double>(n) / s.phases; };
      fmt::print(
          "{}{}: {} phases, {:.4f} at 0.98, {:.4f} at 0.95 and {:.4f} at 0.98 within 100 ms, {:.4f} without cycling; "
          "missed:{} worst: {}\n",
          several ? "several chains or devices" : "one chain and device", again ? ", other noise" : "", s.phases,
          part(s.near), part(s.soon_95), part(s.soon_98), part(s.steady), s.missed, s.worst);
      // Of the few machines in the build with sanitizers, one phase is a percent, or five with other noise.
      const double some = !several || all ? 0 : again ? 0.1 : 0.03, of_noise = several && again ? 0.01 : 0;
      EXPECT_GE(part(s.near), 1) << s.worst;
      EXPECT_GE(part(s.soon_95), 1 - some);
      EXPECT_GE(part(s.soon_98), 1 - some - of_noise) << s.missed;
      EXPECT_GE(part(s.steady), 1 - some - of_noise) << s.missed;
    }
}

TEST(BalanceSimulator, ModelLosesLittleBesideAPlanThatKnowsAllCosts) {
  SimulatedScore scores[2];
  double parts[2] = {0, 0};
  for (uint64_t seed = 1; seed <= kMachines / 10; ++seed) {
    const std::vector<Phase> phases = random_machine(seed, 0.4);
    AllKnowing knows(phases);
    const auto model = balancer_of("Model");
    Balancer* const balancers[2] = {&knows, model.get()};
    for (size_t i = 0; i < 2; ++i)
      for (const SimulatedPhase& p : simulate(phases, *balancers[i], 0.8, seed).phases) {
        scores[i].add(p);
        parts[i] += std::min(share_of_optimum(p), 1.0);
      }
  }
  const double phases = scores[0].phases;
  fmt::print("of the optimum: {:.5f}, Model {:.5f}; {} and {} phases at 0.98 within 100 ms of {}\n", parts[0] / phases,
             parts[1] / phases, scores[0].soon_98, scores[1].soon_98, phases);
  EXPECT_EQ(scores[0].soon_98, scores[0].phases) << "what it cannot reach, nobody is to be held to";
  EXPECT_GE(parts[1] / phases, parts[0] / phases - 0.001);
}

TEST(BalanceSimulator, ModelFollowsTheLoadOfManyWorkersBesideAGpu) {
  constexpr double kStepS = 0.35;
  // The first of them had forgotten what the device does, because a sample in which the load fell was half full.
  std::vector<uint64_t> seeds{3472};
  for (uint64_t seed = 1; seed <= kMachines / 200; ++seed) seeds.push_back(seed);
  for (const uint64_t seed : seeds) {
    const auto model = balancer_of("Model");
    for (const SimulatedPhase& p : simulate(random_gpu_machine(seed, kStepS), *model, 4 * kStepS, seed).phases) {
      const std::string where =
          fmt::format("machine {} from {} s: {:.3f} of the optimum, {}", seed, p.at_s, share_of_optimum(p), p.why);
      EXPECT_GE(share_of_optimum(p), 0.98) << where;
      EXPECT_TRUE(p.at_98_ms >= 0 && p.at_98_ms <= 100) << where << ": after " << p.at_98_ms << " ms";
      EXPECT_LE(p.cycling, 0.02) << where;
    }
  }
}

/// 15 workers beside a device that scans payloads in jobs of 64.
Machine beside_a_scanner() {
  Machine m;
  m.workers = 15;
  m.chains.resize(1);
  Machine::Chain& chain = m.chains[0];
  chain.cpu = 560;
  chain.link_bytes = 560;
  chain.payload = true;
  chain.most_job = 64;
  m.devices.resize(1);
  return m;
}

void expect_in_time(const SimulatedPhase& p) {
  EXPECT_TRUE(p.at_98_ms >= 0 && p.at_98_ms <= 100) << p.at_98_ms << " ms, " << p.mpps << " Mpps, " << p.why;
}

/// With several devices, probes of the CPU are small and find its caches cold: they make a packet four times as dear as it
/// is in a row. Where devices become dearer than that, the CPU is the better side.
TEST(BalanceSimulator, TheCpuIsNotAsDearAsColdProbesOfIt) {
  Machine m;
  m.workers = 2;
  m.ghz = 1;
  m.outside = 30;
  m.cold_cycles = 20000;
  m.devices.resize(2);
  m.first_device = {0, 1};
  m.chains.resize(1);
  Machine::Chain& chain = m.chains[0];
  chain.cpu = 200;
  chain.device = {60, 60};
  chain.mpps = {50, 50};
  chain.most_places = 16;
  std::vector<Phase> phases{{0, m}};
  chain.device = {260, 260};
  phases.push_back({0.4, m});
  for (const uint64_t noise : {1u, 2u, 3u}) {
    const auto model = balancer_of("Model");
    const Simulated r = simulate(phases, *model, 0.8, noise);
    EXPECT_GE(r.phases[0].share, 0.9) << r.phases[0].why;
    expect_in_time(r.phases[1]);
  }
}

/// Devices that are quick, alike, and found cold by probes, with one chain.
Machine beside_quick_devices(int workers, size_t devices, double cold_cycles) {
  Machine m;
  m.workers = workers;
  m.outside = 30;
  m.burst = 128;
  m.cold_cycles = cold_cycles;
  m.devices.resize(devices);
  for (Machine::Device& device : m.devices) {
    device.job_us = 15;
    device.packet_ns = 2;
    device.job_cycles = 3000;
    device.link_gb = 1e3;
  }
  for (int w = 0; w < workers; ++w) m.first_device.push_back(w % static_cast<int>(devices));
  m.chains.resize(1);
  m.chains[0].most_places = 8;
  return m;
}

/// A worker with two devices that cost the same, and little time for a job to fill: what it sends to each in part goes in
/// small and dear jobs. It must not take that for the device's cost, and leave one of both for it.
TEST(BalanceSimulator, SmallJobsOfTwoDevicesAreNoReasonToLeaveOne) {
  Machine m = beside_quick_devices(8, 2, 20000);
  m.ghz = 0.5;
  Machine::Chain& chain = m.chains[0];
  chain.cpu = 90;
  chain.device = {50, 50};
  chain.mpps = {29, 29};
  chain.most_wait_us = 20;
  std::vector<double> parts;
  for (uint64_t noise = 1; noise <= 8; ++noise) {
    const auto model = balancer_of("Model");
    parts.push_back(share_of_optimum(simulate({{0, m}}, *model, 1, noise).phases[0]));
  }
  // Full jobs, which the optimum has, would have 1,024 packets. Those of such a worker have 256, which allow 0.904.
  std::sort(parts.begin(), parts.end());
  EXPECT_GE(parts[4], 0.88);
}

/// A probe of a device finds caches cold, and costs twice what packets do in a row. That the device is the better side
/// shows in several jobs behind each other.
TEST(BalanceSimulator, ADeviceIsNotAsDearAsColdProbesOfIt) {
  Machine m = beside_quick_devices(4, 1, 60000);
  m.ghz = 0.7;
  Machine::Chain& chain = m.chains[0];
  chain.cpu = 93;
  chain.device = {58};
  chain.mpps = {46};
  chain.most_job = 1024;
  chain.most_wait_us = 200;
  for (const uint64_t noise : {1u, 2u, 3u}) {
    const auto model = balancer_of("Model");
    const SimulatedPhase p = simulate({{0, m}}, *model, 2, noise).phases[0];
    EXPECT_GE(share_of_optimum(p), 0.98) << "noise " << noise << ": " << p.why;
    EXPECT_GE(p.share, 0.9) << p.why;
  }
}

/// The same where looks for jobs are a part of what the device costs, which makes both sides nearer to each other.
TEST(BalanceSimulator, ADeviceWithDearLooksIsNotAsDearAsColdProbesOfIt) {
  Machine m = beside_quick_devices(15, 1, 60000);
  m.ghz = 2.1;
  m.outside = 29;
  m.look_cycles = 1200;
  Machine::Chain& chain = m.chains[0];
  chain.cpu = 72;
  chain.device = {41};
  chain.mpps = {480};
  chain.most_job = 1024;
  const Machine::Device& device = m.devices[0];
  const double most = m.workers * m.ghz * 1e3 /
                      (m.outside + chain.device[0] + device.job_cycles / chain.most_job + m.look_cycles / m.burst);
  for (const uint64_t noise : {1u, 2u, 3u}) {
    const auto model = balancer_of("Model");
    const SimulatedPhase p = simulate({{0, m}}, *model, 2, noise).phases[0];
    EXPECT_GE(p.mpps, 0.95 * most) << "noise " << noise << ": " << p.why;
    EXPECT_GE(p.share, 0.9) << p.why;
  }
}

/// Where many workers begin to send packets to a device, each has few, and its jobs hardly any. How much more the device
/// takes is found out all the same, also if jobs take long.
TEST(BalanceSimulator, ManyWorkersBeginToUseADeviceWithLongJobs) {
  Machine m = beside_a_scanner();
  m.mpps = {18.0 / 15};
  m.chains[0].device = {200};
  m.chains[0].mpps = {63};
  m.chains[0].most_places = 64;
  m.devices[0].job_us = 200;
  m.devices[0].packet_ns = 2000;
  std::vector<Phase> phases{{0, m}, {0.3, m}};
  phases[1].machine.mpps = {87.0 / 15};
  for (const uint64_t noise : {1u, 2u, 3u}) {
    const auto model = balancer_of("Model");
    expect_in_time(simulate(phases, *model, 0.6, noise).phases[1]);
  }
}

TEST(BalanceSimulator, AWorkerWithoutPlacesIsNoFullDevice) {
  // One worker uses a device. When all have more to do than they can, it is the first that fills its places, long before
  // the device has enough to do. Or it alone has filled them for long, and nothing else is known of the device.
  Machine m = beside_a_scanner();
  m.outside = 40;
  m.burst = 128;
  m.mpps = {0};
  m.chains[0].device = {70};
  m.chains[0].mpps = {100};
  m.chains[0].most_places = 16;
  m.devices[0].job_us = 60;
  m.devices[0].packet_ns = 150;
  m.devices[0].link_gb = 100;
  std::vector<Phase> near{{0, m}, {0.5, m}, {1, m}}, alone{{0, m}, {1, m}};
  near[1].machine.mpps = {3.35, 1.2};
  alone[0].machine.mpps = {0, 1.2};
  for (const auto& phases : {near, alone})
    for (const uint64_t noise : {1u, 2u, 3u, 4u, 5u}) {
      const auto model = balancer_of("Model");
      expect_in_time(simulate(phases, *model, 1.3, noise).phases.back());
    }
}

TEST(BalanceSimulator, MachinesThatWereMissed) {
  // Each for one reason: a clamped time that blocked the others, two devices of which one was full and the other
  // starved, jobs that came back in ever longer bursts, a worker that needed what another one had; a device
  // of unknown speed that got everything at once. Then: a sample without the worker that had just begun; a device that was
  // faster for all chains than was known; old costs of small jobs; probes too small to tell a cost. Last:
  // a limit that was taken for an equation; packets that waited for places behind the jobs of another chain; probes put
  // off by times of other packets; a device that still did the packets before. And: a dear probe that cheap ones put off
  // for ever, of the CPU and of a device. And: a device that was faster for one chain only; what nobody did, and was
  // believed to be next to nothing; a trial that barred others.
  int misses = 0;
  std::string missed;
  for (const uint64_t seed :
       {81u,  138u,  337u,  458u,   547u,   695u,   773u,   831u,    848u,   1247u,  306u,   5425u,   529u,    5281u,
        963u, 5822u, 7286u, 32252u, 60429u, 66900u, 65282u, 200601u, 70242u, 78388u, 69981u, 852904u, 853729u, 854525u})
    for (const uint64_t noise : {1u, 2u, 3u}) {
      const auto model = balancer_of("Model");
      const Simulated r = simulate(random_machine(seed, 0.4), *model, 0.8, noise);
      for (const SimulatedPhase& p : r.phases) {
        const std::string where = fmt::format("machine {}, noise {} from {} s: {}", seed, noise, p.at_s, p.why);
        EXPECT_GE(share_of_optimum(p), 0.98) << where;
        if (p.at_95_ms >= 0 && p.at_95_ms <= 100 && p.cycling <= 0.02) continue;
        ++misses;
        missed += fmt::format("{}: 0.95 after {} ms, cycling {:.3f}\n", where, p.at_95_ms, p.cycling);
      }
    }
  // Whatever changes in Model moves some phases by chance: one of 168 may miss.
  EXPECT_LE(misses, 1) << missed;
}

TEST(BalanceSimulator, TwoChainsAreAsGoodAsTheBestOfAGrid) {
  const std::vector<Phase> phases = machine("two-chains");
  double best = 0;
  for (int i = 0; i <= 10; ++i)
    for (int j = 0; j <= 10; ++j) {
      Settings fixed({{0.1 * i}, {0.1 * j}});
      best = std::max(best, simulate(phases, fixed, 0.05, 1).phases[0].mpps);
    }
  const auto model = balancer_of("Model");
  const SimulatedPhase p = simulate(phases, *model, 0.4, 1).phases[0];
  EXPECT_GT(best, 0.9 * p.optimum_mpps);
  EXPECT_GE(p.mpps, 0.98 * best);
}

TEST(BalanceSimulator, AWorkerWithTenTimesTheLoadOfTheOthers) {
  const std::vector<Phase> phases = machine("elephant");
  for (const uint64_t noise : {1u, 2u, 3u}) {
    const auto model = balancer_of("Model");
    const Simulated r = simulate(phases, *model, 0.4, noise);
    EXPECT_GE(share_of_optimum(r.phases[0]), 0.98);
    // Only that one needs the device.
    const double elephant = phases[0].machine.mpps[0] / (phases[0].machine.mpps[0] + 7 * phases[0].machine.mpps[1]);
    EXPECT_LE(r.phases[0].share, elephant + 0.01);
    EXPECT_GT(r.phases[0].share, 0.5 * elephant);
  }
}

TEST(BalanceSimulator, TheModelStatesTheOptimum) {
  for (const char* name : {"h100-ipv4", "h100-matcher-512", "h100-expressions", "two-sockets", "eight-devices"}) {
    std::vector<Phase> phases = machine(name);
    phases.resize(1);
    const auto model = balancer_of("Model");
    const SimulatedPhase p = simulate(phases, *model, 0.3, 1).phases[0];
    EXPECT_NEAR(p.stated_mpps / p.optimum_mpps, 1, 0.05) << name;
  }
}

TEST(BalanceSimulator, LowLoadCostsNothing) {
  std::vector<Phase> phases = machine("h100-matcher-512");
  phases.resize(1);
  phases[0].machine.workers = 4;
  phases[0].machine.mpps = {0.3 * 2100 / 487};
  const auto model = balancer_of("Model"), cpu = balancer_of("CPUOnly");
  const SimulatedPhase a = simulate(phases, *model, 0.3, 1).phases[0], b = simulate(phases, *cpu, 0.3, 1).phases[0];
  EXPECT_EQ(a.share, 0);
  EXPECT_LE(a.p99_us, 1.1 * b.p99_us);
  EXPECT_LE(a.worker_cycles, 1.001 * b.worker_cycles);
  EXPECT_EQ(a.why.substr(0, 12), "CPU suffices");
}

/// What the CPU alone can do, in Mpps of each worker.
double cpu_mpps(const Machine& m) {
  const Machine::Chain& chain = m.chains[0];
  return m.ghz * 1e3 / (m.outside + chain.cpu + (m.burst_cycles + chain.batch_cycles) / m.burst);
}

TEST(BalanceSimulator, SmallBurstsAreNoLoad) {
  for (const bool matcher : {false, true})
    for (const double load : {0.05, 0.3, 0.5, 0.7}) {
      std::vector<Phase> phases = small_bursts(matcher);
      phases[0].machine.mpps = {load * cpu_mpps(phases[0].machine)};
      const auto cpu = balancer_of("CPUOnly");
      const SimulatedPhase alone = simulate(phases, *cpu, 0.2, 1).phases[0];
      for (const double bound : {0.0, 50.0, 100.0, 200.0}) {
        phases[0].machine.chains[0].p99_us = bound;
        const auto model = balancer_of("Model");
        const SimulatedPhase p = simulate(phases, *model, 0.3, 2).phases[0];
        const std::string where = fmt::format("{}, load {}, bound {} us: {}", matcher, load, bound, p.why);
        EXPECT_LE(p.share, load < 0.5 ? 0 : 0.004) << where;
        EXPECT_LE(p.p99_us, 1.1 * alone.p99_us) << where;
        EXPECT_GE(share_of_optimum(p), 0.99) << where;
        EXPECT_EQ(p.why.substr(0, 12), "CPU suffices") << where;
      }
    }
}

TEST(BalanceSimulator, TheCpuTakesOverWhenTheLoadFalls) {
  for (const bool matcher : {false, true})
    for (const double bound : {0.0, 100.0})
      for (const uint64_t noise : {1u, 2u, 3u}) {
        std::vector<Phase> phases = small_bursts(matcher);
        phases[0].machine.chains[0].p99_us = bound;
        phases.push_back({0.2, phases[0].machine});
        phases[1].machine.mpps = {0.3 * cpu_mpps(phases[0].machine)};
        const auto cpu = balancer_of("CPUOnly"), model = balancer_of("Model");
        const SimulatedPhase alone = simulate({{0, phases[1].machine}}, *cpu, 0.2, 1).phases[0];
        const Simulated r = simulate(phases, *model, 0.5, noise);
        const SimulatedPhase& p = r.phases[1];
        const std::string where = fmt::format("{}, bound {} us, noise {}: {}", matcher, bound, noise, p.why);
        EXPECT_GT(r.phases[0].share, 0.3) << where;
        EXPECT_LE(p.share, 0.01) << where;
        EXPECT_LE(p.p99_us, 1.1 * alone.p99_us) << where;
        EXPECT_EQ(p.why.substr(0, 12), "CPU suffices") << where;
      }
}

TEST(BalanceSimulator, ADeviceThatIsNeededIsNotLeftForItsSmallBursts) {
  // With a device a worker has time left, and receives packets one by one.
  for (const bool matcher : {false, true})
    for (const double load : {1.05, 1.2, 1.5})
      for (const double bound : {0.0, 100.0, 200.0}) {
        std::vector<Phase> phases = small_bursts(matcher);
        phases[0].machine.chains[0].p99_us = bound;
        phases[0].machine.mpps = {load * cpu_mpps(phases[0].machine)};
        const auto model = balancer_of("Model");
        const Simulated r = simulate(phases, *model, 0.5, 1);
        const std::string where = fmt::format("{}, load {}, bound {} us", matcher, load, bound);
        EXPECT_GE(share_of_optimum(r.phases[0]), 0.99) << where;
        EXPECT_LE(r.phases[0].over_bound, 0.02) << where;
        for (const SimulatedStep& s : r.steps)
          EXPECT_TRUE(s.at_s <= 0.15 || s.share >= 0.9) << where << " at " << s.at_s << " s: " << s.why;
      }
}

TEST(BalanceSimulator, ProbesStayWithinTheirBudget) {
  // Worth asking again and again, and never worth using: d is far above c.
  std::vector<Phase> phases = machine("slow-gpu");
  phases[0].machine.chains[0].device = {3000};
  phases[0].machine.noise = 0;
  const auto model = balancer_of("Model"), cpu = balancer_of("CPUOnly");
  const double with = simulate(phases, *model, 2, 1).phases[0].mpps,
               without = simulate(phases, *cpu, 2, 1).phases[0].mpps;
  EXPECT_GE(with, 0.996 * without);
}

TEST(BalanceSimulator, ADeviceThatFailsIsLeftAndTriedAgain) {
  std::vector<Phase> phases = machine("slowing-device");
  phases.resize(1);
  phases.push_back({0.3, phases[0].machine});
  phases[1].machine.devices[0].well = false;
  phases.push_back({0.6, phases[0].machine});
  const auto model = balancer_of("Model");
  const Simulated r = simulate(phases, *model, 1.6, 1);
  ASSERT_EQ(r.phases.size(), 3u);
  EXPECT_GE(share_of_optimum(r.phases[1]), 0.98);
  EXPECT_EQ(r.phases[1].share, 0);
  // Back after a pause of at most what it was away.
  EXPECT_TRUE(r.phases[2].at_95_ms >= 0 && r.phases[2].at_95_ms <= 600) << r.phases[2].at_95_ms;
}

/// A device that is emulated on the CPU of each worker: it takes cycles that no sample tells from the worker's own.
Machine machine_with_stolen_cycles() {
  Machine m;
  m.name = "stolen cycles";
  m.workers = 2;
  m.outside = 60;
  m.devices.resize(1);
  m.devices[0].steal_cycles = 2500;
  m.chains.resize(1);
  m.chains[0].cpu = 120;
  m.chains[0].device = {50};
  m.chains[0].mpps = {100};
  return m;
}

TEST(BalanceSimulator, AMoveThatLowersTheRateIsTakenBack) {
  const Machine m = machine_with_stolen_cycles();
  const auto model = balancer_of("Model");
  const Simulated r = simulate({{0, m}}, *model, 4, 1);
  EXPECT_GE(share_of_optimum(r.phases[0]), 0.93);
  // Tries come less and less often.
  int bad[2] = {0, 0};
  bool said = false;
  for (const SimulatedStep& s : r.steps) {
    bad[s.at_s > 2] += s.mpps < 0.9 * r.phases[0].optimum_mpps;
    said |= s.why.find("lowered the rate") != std::string::npos;
  }
  EXPECT_LE(bad[0], 40);
  EXPECT_LE(bad[1], 16);
  EXPECT_TRUE(said);
}

TEST(BalanceSimulator, ADeviceThatNoLongerStealsIsUsed) {
  std::vector<Phase> phases{{0, machine_with_stolen_cycles()}, {0.5, machine_with_stolen_cycles()}};
  phases[1].machine.devices[0].steal_cycles = 0;
  const auto model = balancer_of("Model");
  const SimulatedPhase p = simulate(phases, *model, 2.5, 1).phases[1];
  EXPECT_TRUE(p.at_98_ms >= 0 && p.at_98_ms <= 1000) << p.at_98_ms << " ms, " << p.why;
}

TEST(BalanceSimulator, TrafficThatBecomesDearerIsNoFaultOfTheDevice) {
  // Just as workers have moved to the device, all packets cost four times as much on either side.
  std::vector<Phase> phases = machine("h100-ids");
  phases.resize(1);
  // With steps of 10 ms, in which the rate falls before the new costs are known.
  phases[0].machine.step_ms = 10;
  for (const double at : {0.02, 0.03, 0.04, 0.05, 0.06, 0.08}) {
    std::vector<Phase> two{phases[0], {at, phases[0].machine}};
    two[1].machine.outside *= 4;
    two[1].machine.chains[0].cpu *= 4;
    two[1].machine.chains[0].device = {4 * two[1].machine.chains[0].device[0]};
    const auto model = balancer_of("Model");
    const Simulated r = simulate(two, *model, at + 0.5, 1);
    const SimulatedPhase& p = r.phases[1];
    EXPECT_TRUE(p.at_98_ms >= 0 && p.at_98_ms <= 100) << at << " s: " << p.at_98_ms << " ms, " << p.why;
  }
}

TEST(BalanceSimulator, OtherBalancersDoWhatTheyAreFor) {
  std::vector<Phase> phases = machine("two-sockets");
  phases[0].machine.workers = 4;
  phases[0].machine.mpps = {0};
  const auto run = [&](const char* text, double seconds) {
    const auto balancer = balancer_of(text);
    return simulate(phases, *balancer, seconds, 1).phases[0];
  };
  EXPECT_EQ(run("CPUOnly", 0.1).share, 0);
  EXPECT_GT(run("DeviceOnly", 0.1).share, 0.9);
  EXPECT_NEAR(run("Fixed=0.25", 0.1).share, 0.25, 0.01);
  EXPECT_GT(run("QueueLength", 0.2).share, 0.3) << "the workers are overloaded";
  // It climbs by 4 % each 0.4 s and more.
  const SimulatedPhase climbed = run("HillClimb", 10);
  EXPECT_GT(climbed.share, 0.1);
  EXPECT_GT(climbed.mpps, run("CPUOnly", 0.1).mpps);
}

TEST(BalanceSimulator, TheModelTeachesItsSuccessor) {
  const std::vector<Phase> phases = machine("two-sockets");
  const auto first = balancer_of("Model"), second = balancer_of("Model");
  simulate(phases, *first, 0.2, 1);
  const std::string learnt = first->learnt();
  second->set_setup(phases[0].machine.setup());
  second->learn(learnt);
  EXPECT_EQ(second->learnt(), learnt);
  // Any text is survived.
  for (const char* text : {"", "[]", "{}", "[1,{\"name\":2},{\"name\":\"matcher\",\"devices\":3}]", "[[", "null"})
    second->learn(text);
  EXPECT_EQ(second->learnt(), learnt);
}

/// A new balancer that is taught what another one has learnt, as after a hot swap.
class Taught final : public Balancer {
 public:
  explicit Taught(std::string text) : text_(std::move(text)) {}
  void start() override {
    inner_->set_setup(setup());
    inner_->learn(text_);
  }
  BalanceDecision step(const BalanceSample& sample) override { return inner_->step(sample); }

 private:
  std::string text_;
  std::unique_ptr<Balancer> inner_ = balancer_of("Model");
};

TEST(BalanceSimulator, ASuccessorIsThereSooner) {
  // Mpps of the first 60 ms, in which a balancer learns.
  const auto early = [](const Simulated& r) {
    double sum = 0, steps = 0;
    for (const SimulatedStep& s : r.steps) {
      if (s.at_s > 0.06) break;
      sum += s.mpps;
      ++steps;
    }
    return sum / steps;
  };
  for (const char* const name : {"h100-ipv4", "h100-matcher-512", "h100-ids", "h100-expressions", "two-chains",
                                 "two-unlike-devices", "eight-devices", "two-sockets", "elephant", "h100-bound"}) {
    std::vector<Phase> phases = machine(name);
    phases.resize(1);
    const auto first = balancer_of("Model");
    const Simulated before = simulate(phases, *first, 0.4, 1);
    Taught second(first->learnt());
    const Simulated after = simulate(phases, second, 0.2, 2);
    EXPECT_GT(early(after), early(before)) << name;
    EXPECT_GE(after.phases[0].at_98_ms, 0) << name;
    EXPECT_LT(after.phases[0].at_98_ms, before.phases[0].at_98_ms) << name;
  }
}

TEST(BalanceSimulator, RareStepsAreEnough) {
  // Each tenth of a second, in place of each 5 ms, as where somebody's own loop is slow.
  for (const char* const name :
       {"h100-matcher-512", "h100-expressions", "two-chains", "two-sockets", "elephant", "h100-bound"}) {
    std::vector<Phase> phases = machine(name);
    phases.resize(1);
    phases[0].machine.step_ms = 100;
    const auto model = balancer_of("Model");
    const Simulated r = simulate(phases, *model, 2, 1);
    EXPECT_EQ(r.corrections.all(), 0u) << name;
    // The same number of steps as otherwise.
    EXPECT_GE(r.phases[0].at_98_ms, 0) << name;
    EXPECT_LE(r.phases[0].at_98_ms, 500) << name;
    double sum = 0, steps = 0;
    for (const SimulatedStep& s : r.steps) {
      if (s.at_s <= 0.5) continue;
      sum += s.mpps;
      ++steps;
    }
    EXPECT_GE(sum, 0.98 * steps * r.phases[0].optimum_mpps) << name << ": " << r.phases[0].why;
  }
}

TEST(BalanceSimulator, AStepIsQuick) {
  Machine m;
  m.workers = 64;
  m.mpps = {0.5};
  m.devices.resize(8);
  m.chains.resize(4);
  for (int w = 0; w < m.workers; ++w) m.first_device.push_back(w % 8);
  for (size_t k = 0; k < m.chains.size(); ++k) {
    Machine::Chain& chain = m.chains[k];
    chain.part = 0.25;
    chain.cpu = 1000 + 800 * static_cast<double>(k);
    chain.most_job = 64;
    chain.most_places = 4;
    for (size_t d = 0; d < m.devices.size(); ++d) {
      chain.device.push_back(150 + 20 * static_cast<double>((d + k) % 5));
      chain.mpps.push_back(1.5 + 0.3 * static_cast<double>((3 * d + 5 * k) % 7));
    }
  }
  // There is a step each 5 ms.
  const double most_us = kMachines < 1000 ? 20000 : 2000;
  const auto some_arrive = balancer_of("Model"), more_arrive = balancer_of("Model");
  EXPECT_LT(simulate({{0, m}}, *some_arrive, 0.05, 1).step_us, most_us);
  // All devices and all workers bind.
  m.mpps = {0};
  EXPECT_LT(simulate({{0, m}}, *more_arrive, 0.15, 1).step_us, most_us);
}

TEST(BalanceSimulator, MistakesInMachineFilesAreNamed) {
  const auto error_of = [](const char* text) {
    std::string error;
    EXPECT_TRUE(read_machine(text, error).empty());
    return error;
  };
  EXPECT_EQ(error_of("{"), "the file: expected JSON");
  EXPECT_EQ(error_of("{}"), "chains: expected at least one");
  EXPECT_EQ(error_of(R"({"workers": 0, "chains": [{}]})"), "workers: expected a number from 1 to 256");
  EXPECT_EQ(error_of(R"({"chains": [{"cpus": 1}]})"), "chains[0]: expected no field 'cpus'");
  EXPECT_EQ(error_of(R"({"devices": [{}], "chains": [{}]})"), "chains[0].device: expected a number for each device");
  EXPECT_EQ(error_of(R"({"chains": [{"part": 0.5}]})"), "chains: expected parts that add up to 1");
  EXPECT_EQ(error_of(R"({"chains": [{}], "steps": [{"at_s": 1, "change": {"workers": 2}}]})"),
            "steps[0]: expected as many workers, chains and devices as before, and the same clock");
}

TEST(BalanceRegistry, NamesAndArguments) {
  std::string error;
  EXPECT_EQ(make_balancer("Modle", error), nullptr);
  EXPECT_EQ(error.substr(0, 47), "there is no balancer 'Modle'; there are CPUOnly");
  EXPECT_EQ(make_balancer("Fixed", error), nullptr);
  EXPECT_EQ(error, "the balancer Fixed needs an argument: Fixed=ARGUMENT");
  EXPECT_EQ(make_balancer("Fixed=1.5", error), nullptr);
  EXPECT_EQ(make_balancer("Model=1", error), nullptr);
  EXPECT_EQ(error, "the balancer Model does not take the argument '1'");
  EXPECT_NE(make_balancer("Fixed=0.5", error), nullptr);
  EXPECT_GE(all_balancers().size(), 6u);
  EXPECT_FALSE(register_balancer({"Model", "", nullptr}));
}

}  // namespace
}  // namespace headrace::balance
