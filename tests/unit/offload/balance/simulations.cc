#include "unit/offload/balance/simulations.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "support/source_dir.hh"

namespace headrace::balance {

std::unique_ptr<Balancer> balancer_of(const char* text) {
  std::string error;
  std::unique_ptr<Balancer> balancer = make_balancer(text, error);
  EXPECT_TRUE(balancer) << error;
  return balancer;
}

std::vector<Phase> machine_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::string error;
  std::vector<Phase> phases = read_machine(text.str(), error);
  EXPECT_FALSE(phases.empty()) << path << ": " << error;
  return phases;
}

std::vector<Phase> machine(const char* name) {
  return machine_file(std::filesystem::path(kSourceDir) / "bench/machines" / fmt::format("{}.json", name));
}

std::vector<Phase> small_bursts(bool matcher) {
  std::vector<Phase> phases = machine(matcher ? "h100-matcher-512" : "h100-ipv4");
  phases.resize(1);
  Machine& m = phases[0].machine;
  m.workers = 2;
  m.burst = matcher ? 64 : 128;
  m.burst_cycles = matcher ? 300 : 130;
  m.chains[0].batch_cycles = matcher ? 600 : 450;
  m.chains[0].cpu = matcher ? 600 : 65;
  m.cold_cycles = 20000;
  return phases;
}

BalanceDecision AllKnowing::step(const BalanceSample& sample) {
  const double now_s = 1e-9 * static_cast<double>(sample.at_ns);
  while (planned_ < phases_.size() && phases_[planned_].at_s <= now_s + 1e-9) plan(phases_[planned_++].machine);
  BalanceDecision d = everything_on_cpu();
  for (size_t w = 0; w < d.workers.size(); ++w)
    for (size_t k = 0; k < d.workers[w].size(); ++k) {
      ChainDecision& chain = d.workers[w][k];
      chain.shares = plan_.shares[w][k];
      // Where the CPU gets what is left, the worker finds out itself what the device takes.
      size_t users = 0, device = 0;
      for (size_t e = 0; e < chain.shares.size(); ++e)
        if (chain.shares[e] > 0) {
          ++users;
          device = e;
        }
      bool alone = users == 1;
      for (const auto& worker : plan_.shares)
        for (size_t j = 0; j < worker.size(); ++j) alone &= j == k || !(worker[j][device] > 0);
      chain.follow = alone;
    }
  return d;
}

void AllKnowing::plan(const Machine& m) {
  // Of a device's time: what is full for moments must not make packets wait.
  constexpr double kUsed = 0.995;
  std::vector<WorkerGroup> groups(static_cast<size_t>(m.workers));
  for (size_t w = 0; w < groups.size(); ++w) {
    constexpr double kAll = 1e9;
    groups[w].cycles = m.ghz * 1e9;
    groups[w].outside = m.outside + m.burst_cycles / m.burst;
    groups[w].arrivals = m.arrivals(w) < kAll ? m.arrivals(w) : 0;
    for (const Machine::Chain& c : m.chains) {
      WorkerGroup::Chain& chain = groups[w].chains.emplace_back();
      chain.part = c.part;
      chain.cpu = c.cpu;
      for (size_t d = 0; d < m.devices.size(); ++d)
        chain.device.push_back(c.device[d] + m.devices[d].job_cycles / c.most_job);
    }
  }
  std::vector<std::vector<double>> device_s(m.chains.size());
  for (size_t k = 0; k < m.chains.size(); ++k)
    for (size_t d = 0; d < m.devices.size(); ++d) device_s[k].push_back(1e-9 * m.device_ns(k, d) / kUsed);
  plan_ = assign(groups, device_s);
}

}  // namespace headrace::balance
