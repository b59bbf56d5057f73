#include "offload/balance/trace.hh"

#include <gtest/gtest.h>

#include "offload/balance/simulator.hh"
#include "unit/offload/balance/random_machines.hh"

namespace headrace::balance {
namespace {

std::string error_of(std::vector<std::string> lines) {
  TraceReader reader;
  TraceLine line;
  for (const std::string& text : lines)
    if (!reader.read(text, line)) return reader.error();
  return "";
}

const char* const kHead =
    R"({"setup":{"workers":1,"chains":[{"name":"a"}],"devices":[{"name":"b"}]},"balancer":"Model"})";

TEST(BalanceTrace, LinesComeBackAsTheyWere) {
  TraceHead head;
  head.balancer = "Fixed=0.4";
  head.setup.workers = 3;
  head.setup.cycles_per_second = 2.1e9 / 3;
  head.setup.chains.resize(2);
  head.setup.chains[1].name = "a \"quoted\" name";
  head.setup.devices.push_back({.name = "gpu", .node = 1});
  head.setup.first_device = {0, 0, 0};
  head.learnt = R"([{"name":"a"}])";
  BalanceSample sample;
  sample.at_ns = -5;
  sample.workers.resize(1);
  sample.workers[0].cycles = UINT64_MAX;
  sample.workers[0].chains.resize(1);
  sample.workers[0].chains[0].devices.resize(1);
  sample.workers[0].chains[0].devices[0].share = 0.1 + 0.2;
  sample.workers[0].chains[0].devices[0].packets = 77;
  BalanceDecision decision;
  decision.workers.resize(1);
  decision.workers[0].resize(1);
  decision.workers[0][0].shares = {1.0 / 3};
  decision.why = "because";

  TraceReader reader;
  TraceLine line;
  ASSERT_TRUE(reader.read(trace_line(head), line)) << reader.error();
  EXPECT_EQ(trace_line(std::get<TraceHead>(line)), trace_line(head));
  ASSERT_TRUE(reader.read(trace_line(sample), line)) << reader.error();
  EXPECT_EQ(trace_line(std::get<BalanceSample>(line)), trace_line(sample));
  EXPECT_EQ(std::get<BalanceSample>(line).workers[0].chains[0].devices[0].share, 0.1 + 0.2);
  EXPECT_EQ(std::get<BalanceSample>(line).workers[0].chains[0].devices[0].packets, 77u);
  EXPECT_EQ(std::get<BalanceSample>(line).workers[0].cycles, UINT64_MAX);
  ASSERT_TRUE(reader.read(trace_line(decision), line)) << reader.error();
  EXPECT_EQ(trace_line(std::get<BalanceDecision>(line)), trace_line(decision));
}

TEST(BalanceTrace, YoungFieldsAreLeftOutWhereTheyHaveTheirDefaults) {
  TraceHead head;
  head.setup.chains.resize(1);
  head.setup.devices.resize(1);
  BalanceSample sample;
  sample.workers.resize(1);
  sample.workers[0].chains.resize(1);
  sample.workers[0].chains[0].devices.resize(1);
  BalanceDecision decision;
  decision.workers.resize(1);
  decision.workers[0].resize(1);
  for (const std::string& text : {trace_line(head), trace_line(sample), trace_line(decision)}) {
    EXPECT_EQ(text.find("stream"), std::string::npos) << text;
    EXPECT_EQ(text.find("resident"), std::string::npos) << text;
    EXPECT_EQ(text.find("learnt"), std::string::npos) << text;
  }
  head.setup.devices[0].resident = false;
  head.setup.devices[0].stream = true;
  head.setup.devices[0].resident_idle_us = 7;
  DeviceSample& device = sample.workers[0].chains[0].devices[0];
  device.stream_jobs = 3;
  device.stream_job_ns = 99;
  decision.workers[0][0].stream = true;
  TraceReader reader;
  TraceLine line;
  ASSERT_TRUE(reader.read(trace_line(head), line)) << reader.error();
  const BalanceSetup::Device& same = std::get<TraceHead>(line).setup.devices[0];
  EXPECT_FALSE(same.resident);
  EXPECT_TRUE(same.stream);
  EXPECT_EQ(same.resident_idle_us, 7);
  ASSERT_TRUE(reader.read(trace_line(sample), line)) << reader.error();
  EXPECT_EQ(std::get<BalanceSample>(line).workers[0].chains[0].devices[0].stream_jobs, 3u);
  EXPECT_EQ(std::get<BalanceSample>(line).workers[0].chains[0].devices[0].stream_job_ns, 99u);
  ASSERT_TRUE(reader.read(trace_line(decision), line)) << reader.error();
  EXPECT_TRUE(std::get<BalanceDecision>(line).workers[0][0].stream);
}

TEST(BalanceTrace, SeveralBalancersOfARouter) {
  const std::string first = R"({"setup":{},"balancer":"Model"})",
                    second = R"({"setup":{},"balancer":"Fixed=0.5","beside":true})", sample = R"({"sample":{}})";
  TraceReader reader;
  TraceLine line;
  for (const std::string& text : {first, second, sample}) ASSERT_TRUE(reader.read(text, line)) << reader.error();
  const std::string decision = trace_line(BalanceDecision(), "Fixed=0.5");
  EXPECT_EQ(decision, R"({"decision":{"workers":[],"why":"","optimum_mpps":0.0},"balancer":"Fixed=0.5"})");
  EXPECT_TRUE(reader.read(decision, line)) << reader.error();
  EXPECT_TRUE(std::holds_alternative<BalanceDecision>(line));
  EXPECT_FALSE(reader.read(trace_line(BalanceDecision()), line));
  EXPECT_EQ(reader.error(), "line 5: balancer: expected one that has a setup, found ''");
  // In the next router there is only one.
  ASSERT_TRUE(reader.read(first, line));
  EXPECT_FALSE(reader.read(decision, line));
  EXPECT_TRUE(reader.read(trace_line(BalanceDecision()), line)) << reader.error();
  const std::string alone = "beside: expected the setup of another balancer in the line before";
  EXPECT_EQ(error_of({second}), "line 1: " + alone);
  EXPECT_EQ(error_of({first, sample, second}), "line 3: " + alone);
  EXPECT_EQ(error_of({first, second, second}), "line 3: " + alone);
}

TEST(BalanceTrace, MistakesNameLineAndField) {
  EXPECT_EQ(error_of({"{"}), "line 1: expected a JSON object");
  EXPECT_EQ(error_of({"[1]"}), "line 1: expected an object");
  EXPECT_EQ(error_of({R"({"sample":{}})"}), R"(line 1: expected the setup: {"setup": ..., "balancer": ...})");
  EXPECT_EQ(error_of({kHead}), "");
  EXPECT_EQ(error_of({kHead, kHead}), "") << "of the next router";
  EXPECT_EQ(error_of({kHead, R"({"smaple":{}})"}), R"(line 2: expected {"sample": ...} or {"decision": ...})");
  EXPECT_EQ(error_of({kHead, R"({"sample":{"workers":[{"cycles":-1}]}})"}),
            "line 2: sample.workers[0].cycles: expected a whole number from 0, found -1");
  EXPECT_EQ(error_of({kHead, R"({"sample":{"workers":[{"chains":[{"cpu":{"packtes":1}}]}]}})"}),
            "line 2: sample.workers[0].chains[0].cpu has no field 'packtes'");
  EXPECT_EQ(error_of({kHead, R"({"decision":{"why":1}})"}), "line 2: decision.why: expected a text, found 1");
  EXPECT_EQ(error_of({R"({"setup":{"workers":0}})"}), "line 1: setup.workers: expected 1 to 4096");
  EXPECT_EQ(error_of({R"({"setup":{"workers":3000000000}})"}),
            "line 1: setup.workers: expected a whole number of 32 bits, found 3000000000");
}

TEST(BalanceTrace, EveryBalancerReplaysByteForByte) {
  for (const char* name : {"Model", "HillClimb", "QueueLength", "Fixed=0.3", "DeviceOnly", "CPUOnly"}) {
    const std::vector<Phase> phases = random_machine(7, 0.1);
    std::string error;
    const auto balancer = make_balancer(name, error);
    ASSERT_TRUE(balancer) << error;
    const std::vector<std::string> trace = simulate(phases, *balancer, 0.3, 1, name).trace;
    ASSERT_EQ(trace.size(), 1 + 2 * 60u);

    TraceReader reader;
    std::unique_ptr<Balancer> again;
    std::string decided;
    for (const std::string& text : trace) {
      TraceLine line;
      ASSERT_TRUE(reader.read(text, line)) << reader.error();
      if (auto* head = std::get_if<TraceHead>(&line)) {
        again = make_balancer(head->balancer, error);
        again->set_setup(head->setup);
      } else if (const auto* sample = std::get_if<BalanceSample>(&line)) {
        decided = trace_line(again->step(*sample));
      } else {
        ASSERT_EQ(decided, text) << name;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::balance
