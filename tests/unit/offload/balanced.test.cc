// A worker's jobs where a balancer decides.

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <variant>

#include "headrace/balancer.hh"
#include "headrace/real_clock.hh"
#include "offload/balance/sanitize.hh"
#include "offload/balance/trace.hh"
#include "queue_fixture.hh"

namespace headrace::testing {
namespace {

class OffloadBalanced : public OffloadQueue {
 protected:
  static OffloadOptions balanced(const char* balancer, int job = 4, int jobs = 4) {
    OffloadOptions o = options(Mode::kAuto, job, jobs);
    o.balancer = balancer;
    o.wait_for_devices = true;
    return o;
  }
  /// Sends packets of many flows until `done`, some of each flow at a time. Slowly: they stay in memory.
  void send_until(const std::function<bool()>& done) {
    const int64_t end = now_ns() + 20'000'000'000;
    while (!done() && now_ns() < end) {
      for (uint32_t flow = 1; flow <= 16; ++flow) send(flow, 1 + static_cast<int>(flow % 4));
      r().router().engine()->queue(0).poll();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    EXPECT_TRUE(done());
  }
};

TEST_F(OffloadBalanced, TheCpuAlone) {
  make(kChain, balanced("CPUOnly"));
  send(1, 10);
  EXPECT_EQ(device().submitted, 0);
  EXPECT_EQ(count(offload::kCpuPackets), 10u);
  expect_all_in_order();
}

TEST_F(OffloadBalanced, HalfOfTheFlows) {
  make(kChain, balanced("Fixed=0.5", 64, 16));
  send_until([&] { return count(offload::kJobPackets) > 0; });
  r().router().drain();
  const uint64_t there = count(offload::kJobPackets), here = count(offload::kCpuPackets);
  for (int i = 0; i < 20; ++i)
    for (uint32_t flow = 1; flow <= 200; ++flow) send(flow, 1);
  r().router().drain();
  EXPECT_NEAR(static_cast<double>(count(offload::kJobPackets) - there), 2000, 600);
  EXPECT_EQ(count(offload::kJobPackets) - there + count(offload::kCpuPackets) - here, 4000u);
  expect_all_in_order();
}

TEST_F(OffloadBalanced, PacketsWithoutAPlaceWaitOrTakeTheCpu) {
  make(kChain, balanced("Fixed=0.5", 8, 2));
  send_until([&] { return count(offload::kJobPackets) > 0; });
  r().router().drain();
  device().hold = true;
  const uint64_t here = count(offload::kCpuPackets);
  for (uint32_t flow = 1; flow <= 200; ++flow) send(flow, 1);
  // 16 have places. Of the others none has packets of its flow there, but some may share a bucket with one.
  EXPECT_GT(count(offload::kFullLane), 0u);
  EXPECT_GT(count(offload::kCpuPackets) - here, 150u);
  for (int i = 0; i < 3; ++i)
    for (uint32_t flow = 1; flow <= 200; ++flow) send(flow, 1);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadBalanced, OthersFindTheDeviceIllAndWell) {
  make(kChain, balanced("Fixed=0.5", 64, 16));
  send_until([&] { return count(offload::kJobPackets) > 0; });
  std::atomic<bool> ends{false};
  std::thread other([&, &device = r().router().engine()->device(0)] {
    using Health = offload::Device::Health;
    while (!ends) device.move(Health::kWell, Health::kHung), device.move(Health::kHung, Health::kWell);
  });
  // So many that the pool has buffers for all: they stay in memory.
  for (int i = 0; i < 30; ++i) {
    for (uint32_t flow = 1; flow <= 16; ++flow) send(flow, 20);
    r().router().engine()->queue(0).poll();
  }
  ends = true;
  other.join();
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadBalanced, BadDecisionsCostNoPacket) {
  for (const char* balancer : {"FlipsAll", "Rubbish", "Throws"}) {
    SCOPED_TRACE(balancer);
    make(kChain, balanced(balancer, 8, 3), 2);
    const uint64_t begin = static_cast<uint64_t>(now_ns());
    send_until([&] { return static_cast<uint64_t>(now_ns()) > begin + 200'000'000; });
    r().router().drain();
    expect_all_in_order();
    next_.clear();
    const std::string balance = r().read("balance");
    EXPECT_EQ(balance.find("corrected: ") != std::string::npos, std::string(balancer) != "FlipsAll") << balance;
    EXPECT_EQ(balance.find("step() threw: out of its depth") != std::string::npos, std::string(balancer) == "Throws");
    router_.reset();
  }
}

TEST_F(OffloadBalanced, ATraceReplays) {
  make(kChain, balanced("Model", 8, 3));
  const int64_t begin = now_ns();
  send_until([&] { return now_ns() > begin + 100'000'000; });
  r().router().drain();
  const std::string trace = r().router().engine()->balance()->trace(1000);
  balance::TraceReader reader;
  balance::TraceLine line;
  std::unique_ptr<Balancer> again;
  std::string decided;
  int decisions = 0;
  for (size_t at = 0; at < trace.size();) {
    const size_t end = trace.find('\n', at);
    const std::string text = trace.substr(at, end - at);
    at = end + 1;
    ASSERT_TRUE(reader.read(text, line)) << reader.error();
    if (const auto* head = std::get_if<balance::TraceHead>(&line)) {
      std::string why;
      again = make_balancer(head->balancer, why);
      ASSERT_NE(again, nullptr) << why;
      again->set_setup(head->setup);
    } else if (const auto* sample = std::get_if<BalanceSample>(&line)) {
      BalanceDecision decision = again->step(*sample);
      balance::Corrections corrections;
      balance::sanitize(decision, again->setup(), corrections);
      EXPECT_EQ(corrections.all(), 0u);
      decided = balance::trace_line(decision);
    } else {
      EXPECT_EQ(text, decided);
      ++decisions;
    }
  }
  EXPECT_GT(decisions, 3);
  expect_all_in_order();
}

TEST_F(OffloadBalanced, ABalancerThatIsNone) {
  devices_ = std::make_unique<TestDevices>(1);
  TestRouter bad(kChain, RouterOptions{.profile = false, .offload = balanced("Nobody")});
  EXPECT_FALSE(bad.ok());
  EXPECT_NE(bad.errors().find("--balancer: there is no balancer 'Nobody'; there are CPUOnly, "), std::string::npos)
      << bad.errors();
  TestRouter worse("Idle -> Offload(BALANCER Fixed=2) -> Strip(14) -> cap :: Capture;", RouterOptions{});
  EXPECT_FALSE(worse.ok());
  EXPECT_NE(worse.errors().find("BALANCER: "), std::string::npos) << worse.errors();
}

}  // namespace
}  // namespace headrace::testing
