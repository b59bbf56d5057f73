// What jobs a chain gets on simulated machines: by stream or to the resident kernel, and how large.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "offload/balance/formulas.hh"
#include "offload/balance/simulator.hh"
#include "offload/balance/trace.hh"
#include "unit/offload/balance/simulations.hh"

namespace headrace::balance {
namespace {

/// Payloads, for which the device binds, and some packets of a chain that is dear on the CPU: a resident kernel that waits
/// for those takes a part of the device. After a second there are many more of them.
std::vector<Phase> rare_chain(bool stream) {
  std::string error;
  std::vector<Phase> phases = read_machine(R"({
    "name": "rare-chain", "workers": 4, "ghz": 2.1, "outside": 60, "mpps": 0,
    "devices": [{"name": "H100", "link_gb": 50, "job_us": 6, "packet_ns": 26, "job_cycles": 1500, "stream": true,
                 "resident_idle_us": 10000, "start_us": 10, "start_cycles": 20000, "stream_us": 15,
                 "stream_job_cycles": 15000, "stays": 0.3}],
    "chains": [{"name": "payloads", "part": 0.999999, "cpu": 1800, "device": 150, "mpps": 20, "link_bytes": 520,
                "payload": true, "most_job": 256, "most_places": 16},
               {"name": "rare", "part": 0.000001, "cpu": 400000, "device": 300, "mpps": 50, "link_bytes": 64}],
    "steps": [{"at_s": 1, "change": {
      "chains": [{"name": "payloads", "part": 0.99, "cpu": 1800, "device": 150, "mpps": 20, "link_bytes": 520,
                  "payload": true, "most_job": 256, "most_places": 16},
                 {"name": "rare", "part": 0.01, "cpu": 4000, "device": 300, "mpps": 50, "link_bytes": 64}]}}]
  })",
                                           error);
  EXPECT_FALSE(phases.empty()) << error;
  for (Phase& phase : phases) phase.machine.devices[0].stream = stream;
  return phases;
}

/// What chain `k` had of device 0 in [from_s, to_s).
DeviceSample on_device(const Simulated& r, size_t k, double from_s, double to_s) {
  DeviceSample all;
  TraceReader reader;
  TraceLine line;
  for (const std::string& text : r.trace) {
    EXPECT_TRUE(reader.read(text, line)) << reader.error();
    const auto* const sample = std::get_if<BalanceSample>(&line);
    if (!sample || static_cast<double>(sample->at_ns) < from_s * 1e9 ||
        static_cast<double>(sample->at_ns) >= to_s * 1e9)
      continue;
    for (const WorkerSample& w : sample->workers) {
      const DeviceSample& d = w.chains[k].devices[0];
      all.packets += d.packets;
      all.jobs += d.jobs;
      all.stream_jobs += d.stream_jobs;
    }
  }
  return all;
}

/// The jobs of chain `k` that came back in [from_s, to_s): all, and those by stream.
std::pair<uint64_t, uint64_t> jobs_of(const Simulated& r, size_t k, double from_s, double to_s) {
  const DeviceSample all = on_device(r, k, from_s, to_s);
  return {all.jobs, all.stream_jobs};
}

TEST(BalanceSimulator, AChainWithFewJobsGoesByStream) {
  for (const uint64_t noise : {1u, 2u, 3u}) {
    SCOPED_TRACE(noise);
    const auto model = balancer_of("Model"), without = balancer_of("Model");
    const Simulated r = simulate(rare_chain(true), *model, 1.5, noise, "Model");
    const Simulated resident = simulate(rare_chain(false), *without, 1.5, noise, "Model");
    EXPECT_EQ(r.corrections.all(), 0u);
    const auto [rare, rare_by_stream] = jobs_of(r, 1, 0.5, 1);
    EXPECT_GT(rare, 0u);
    EXPECT_EQ(rare_by_stream, rare);
    // The other chain's jobs, and all of its own once they are many, go to the resident kernel.
    EXPECT_EQ(jobs_of(r, 0, 0, 1.5).second, 0u);
    const auto [many, many_by_stream] = jobs_of(r, 1, 1.1, 1.5);
    EXPECT_GT(many, 1000u);
    EXPECT_EQ(many_by_stream, 0u);
    EXPECT_EQ(jobs_of(resident, 1, 0, 1.5).second, 0u);
    EXPECT_GT(r.phases[0].mpps, 1.01 * resident.phases[0].mpps);
    EXPECT_GE(share_of_optimum(r.phases[0]), 0.98);
    // Now both kernels are there all the time.
    EXPECT_GE(r.phases[1].mpps, 0.99 * resident.phases[1].mpps);
  }
}

/// Payloads of 64, 512 and 200 bytes, a second each. A job costs much by itself.
std::vector<Phase> lengths() {
  std::string error;
  std::vector<Phase> phases = read_machine(R"({
    "name": "lengths", "workers": 4, "ghz": 2.1, "outside": 60, "mpps": 0,
    "devices": [{"name": "H100", "link_gb": 50, "job_us": 6, "packet_ns": 26, "job_cycles": 3000}],
    "chains": [{"name": "payloads", "cpu": 200, "device": 70, "mpps": 80, "link_bytes": 64, "payload": true,
                "most_job": 256, "job_bytes": 32768, "most_places": 16}],
    "steps": [{"at_s": 1, "change": {
      "chains": [{"name": "payloads", "cpu": 1200, "device": 110, "mpps": 20, "link_bytes": 512, "payload": true,
                  "most_job": 256, "job_bytes": 32768, "most_places": 16}]}},
              {"at_s": 2, "change": {
      "chains": [{"name": "payloads", "cpu": 500, "device": 80, "mpps": 50, "link_bytes": 200, "payload": true,
                  "most_job": 256, "job_bytes": 32768, "most_places": 16}]}}]
  })",
                                           error);
  EXPECT_FALSE(phases.empty()) << error;
  return phases;
}

TEST(BalanceSimulator, JobsOfPayloadsFollowTheirLengths) {
  for (const uint64_t noise : {1u, 2u, 3u}) {
    SCOPED_TRACE(noise);
    const auto model = balancer_of("Model");
    const Simulated r = simulate(lengths(), *model, 3, noise, "Model");
    EXPECT_EQ(r.corrections.all(), 0u);
    for (const SimulatedPhase& p : r.phases) EXPECT_GE(share_of_optimum(p), 0.98) << p.at_s;
  }
}

TEST(BalanceSimulator, ABoundLeavesJobsOfShortPayloadsLarge) {
  std::vector<Phase> phases = lengths();
  for (Phase& phase : phases) {
    phase.machine.chains[0].p99_us = 400;
    phase.machine.mpps = {12};
  }
  for (const uint64_t noise : {1u, 2u, 3u}) {
    SCOPED_TRACE(noise);
    const auto model = balancer_of("Model");
    const Simulated r = simulate(phases, *model, 3, noise, "Model");
    const auto packets_per_job = [&r](double from_s) {
      const DeviceSample all = on_device(r, 0, from_s, from_s + 0.5);
      return ratio(all.packets, all.jobs);
    };
    EXPECT_GT(packets_per_job(0.5), 100);
    EXPECT_GT(packets_per_job(1.5), 40);
    EXPECT_LE(packets_per_job(1.5), 65);
  }
}

TEST(BalanceSimulator, WhereJobsAreManyStreamIsNoChoice) {
  for (const char* name : {"two-chains", "h100-ids"}) {
    SCOPED_TRACE(name);
    std::vector<std::string> decisions[2];
    for (const bool stream : {false, true}) {
      std::vector<Phase> phases = machine(name);
      for (Phase& phase : phases)
        for (Machine::Device& device : phase.machine.devices) {
          device.stream = stream;
          device.resident_idle_us = 10000;
        }
      const auto model = balancer_of("Model");
      const Simulated r = simulate(phases, *model, 0.3, 1, "Model");
      EXPECT_EQ(r.stream_jobs, 0u);
      EXPECT_GT(r.jobs, 0u);
      decisions[stream].assign(r.trace.begin() + 1, r.trace.end());
    }
    EXPECT_EQ(decisions[0], decisions[1]);
  }
}

}  // namespace
}  // namespace headrace::balance
