// What probes cost at a time, on simulated machines.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "offload/balance/simulator.hh"
#include "offload/balance/trace.hh"
#include "unit/offload/balance/simulations.hh"

namespace headrace::balance {
namespace {

/// A worker that has devices for all that it does, but no time to spare, and dear packets on the CPU.
Machine all_on_devices(size_t chains, size_t devices) {
  Machine m;
  m.workers = 1;
  m.ghz = 0.4;
  m.outside = 50;
  m.burst = 64;
  m.noise = 0.01;
  m.missing = m.late = 0;
  m.mpps = {0};
  m.devices.resize(devices);
  m.chains.resize(chains);
  for (Machine::Chain& chain : m.chains) {
    chain.part = 1.0 / static_cast<double>(chains);
    chain.cpu = 2400;
    chain.most_job = 256;
    chain.most_places = 16;
    chain.most_wait_us = 1000;
    for (size_t d = 0; d < devices; ++d) {
      chain.device.push_back(60 + 60 * static_cast<double>(d));
      chain.mpps.push_back(20);
    }
  }
  return m;
}

struct Probe {
  double at_s;
  size_t chain;
  double cycles;  ///< that it costs beyond what its packets cost on the cheapest device
  bool on_cpu;
};

/// Those that were sent to the only worker of the machine, in their order.
std::vector<Probe> probes_of(const Machine& m, double seconds) {
  const auto model = balancer_of("Model");
  std::vector<Probe> probes;
  TraceReader reader;
  TraceLine line;
  double at_s = 0;
  for (const std::string& text : simulate({{0, m}}, *model, seconds, 1, "Model").trace) {
    EXPECT_TRUE(reader.read(text, line)) << reader.error();
    if (const auto* const sample = std::get_if<BalanceSample>(&line)) at_s = static_cast<double>(sample->at_ns) * 1e-9;
    const auto* const decision = std::get_if<BalanceDecision>(&line);
    if (!decision) continue;
    for (size_t k = 0; k < m.chains.size(); ++k) {
      const ChainDecision& chain = decision->workers[0][k];
      if (chain.probe == 0) continue;
      const std::vector<double>& device = m.chains[k].device;
      const double cost = chain.probe_device < 0 ? m.chains[k].cpu : device[static_cast<size_t>(chain.probe_device)];
      probes.push_back(
          {at_s, k, chain.probe * (cost - *std::min_element(device.begin(), device.end())), chain.probe_device < 0});
    }
  }
  return probes;
}

TEST(BalanceProbes, WhatAProbeOfTheCpuSaysIsWaitedFor) {
  // It comes with the next step but one if the sample is late. After that it is lost, and asked for again.
  Machine m = all_on_devices(1, 1);
  for (const auto& [late, missing] : {std::pair{0.5, 0.0}, std::pair{0.0, 0.5}}) {
    m.late = late;
    m.missing = missing;
    int probes = 0;
    double last_s = -1;
    for (const Probe& probe : probes_of(m, 2)) {
      if (!probe.on_cpu || probe.at_s < 0.1) continue;
      ++probes;
      EXPECT_GT(probe.at_s - last_s, 0.0075);
      last_s = probe.at_s;
    }
    EXPECT_GT(probes, 15);
  }
}

TEST(BalanceProbes, TheyCostLittleOfAnyThirtyMilliseconds) {
  // Two chains that are to be probed on three devices and the CPU, and none of them is left out.
  const Machine m = all_on_devices(2, 3);
  const std::vector<Probe> probes = probes_of(m, 2);
  double most = 0;
  std::vector<int> on_cpu(m.chains.size(), 0);
  for (const Probe& first : probes) {
    if (first.at_s < 0.1) continue;
    double sum = 0;
    for (const Probe& probe : probes)
      if (probe.at_s >= first.at_s && probe.at_s < first.at_s + 0.03) sum += probe.cycles;
    most = std::max(most, sum);
    on_cpu[first.chain] += first.on_cpu;
  }
  EXPECT_LE(most, 0.015 * m.ghz * 1e9 * 0.03);
  for (const int n : on_cpu) EXPECT_GE(n, 5);
}

TEST(BalanceProbes, ADearOneIsNotPutOffForEver) {
  // To ask the CPU for the second chain costs nearly all that may be spent at a time. The first chain, which costs less,
  // must not be asked instead.
  Machine m = all_on_devices(2, 1);
  m.chains[0].cpu = 10400;
  m.chains[1].cpu = 12800;
  std::vector<int> on_cpu(m.chains.size(), 0);
  for (const Probe& probe : probes_of(m, 1))
    if (probe.at_s > 0.1) on_cpu[probe.chain] += probe.on_cpu;
  EXPECT_GE(on_cpu[0], 4);
  EXPECT_GE(on_cpu[1], on_cpu[0] - 1);
}

TEST(BalanceProbes, WhenACostChangesEachWorkerAsksItsCpu) {
  // While all is on the device, packets of the second chain become cheap on the CPU, and dear on the device, which shows.
  Machine m = all_on_devices(2, 1);
  m.chains[0].cpu = 1700;
  m.chains[1].cpu = 3200;
  std::vector<Phase> phases{{0, m}, {0.3, m}};
  phases[1].machine.chains[1].cpu = 60;
  phases[1].machine.chains[1].device = {200};
  const auto model = balancer_of("Model");
  const SimulatedPhase p = simulate(phases, *model, 0.6, 1).phases[1];
  EXPECT_TRUE(p.at_98_ms >= 0 && p.at_98_ms <= 100) << p.at_98_ms << " ms, " << p.why;
}

}  // namespace
}  // namespace headrace::balance
