// Routers at work with a balancer: what it does wrong, and what changes beneath it, costs no packet.

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "live_fixture.hh"
#include "offload/balance/trace.hh"

namespace headrace::testing {
namespace {

using Mode = OffloadOptions::Mode;

class BalanceLive : public OffloadLive {
 protected:
  /// With jobs of 64 packets, and devices from the beginning.
  OffloadOptions balanced(std::string balancer) {
    OffloadOptions o = options(Mode::kAuto);
    o.balancer = std::move(balancer);
    o.wait_for_devices = true;
    o.job = 64;
    return o;
  }
};
HEADRACE_OFFLOAD_CARRIERS(BalanceLive);

/// What the last samples say: jobs, and those by stream.
std::pair<uint64_t, uint64_t> sum_jobs(const offload::Engine& engine) {
  uint64_t jobs = 0, stream_jobs = 0;
  const std::string trace = engine.balance()->trace(1000);
  balance::TraceReader reader;
  balance::TraceLine line;
  for (size_t at = 0; at < trace.size(); at = trace.find('\n', at) + 1) {
    EXPECT_TRUE(reader.read(std::string_view(trace).substr(at, trace.find('\n', at) - at), line)) << reader.error();
    const auto* const sample = std::get_if<BalanceSample>(&line);
    if (!sample) continue;
    for (const WorkerSample& worker : sample->workers)
      for (const ChainSample& chain : worker.chains)
        for (const DeviceSample& device : chain.devices) {
          jobs += device.jobs;
          stream_jobs += device.stream_jobs;
        }
  }
  return {jobs, stream_jobs};
}

/// With a balancer, packets flow on the CPU at once. Devices are opened meanwhile, and what was learnt outlives a swap.
TEST_P(BalanceLive, DevicesJoinWhilePacketsFlow) {
  if (on_cpu()) GTEST_SKIP() << "the CPU is no device";
  OffloadOptions o = options(Mode::kAuto);
  o.balancer = "DeviceOnly";
  const std::string text = forwarder("RARE 30");
  const auto r = live(text, o);
  ASSERT_TRUE(r->ok());
  ASSERT_NE(r->engine(), nullptr);
  EXPECT_TRUE(r->engine()->opening());
  const int64_t end = milliseconds() + 60000;
  bool first = true, swapped = false;
  r->run([&] {
    if (std::exchange(first, false)) {
      EXPECT_EQ(r->engine()->event(offload::kJobPackets), 0u);
    }
    const offload::Engine& engine = *r->engine();
    if (milliseconds() > end) return false;
    if (engine.opening() || engine.event(offload::kJobPackets) < 1000) return true;
    if (std::exchange(swapped, true)) return false;
    EXPECT_TRUE(r->swap(text)) << r->errors();
    EXPECT_FALSE(r->engine()->opening()) << "with devices that are open, there is nothing to wait for";
    return true;
  });
  EXPECT_TRUE(swapped);
  find_ends(*r);
  expect_everything_came();
}

/// Workers go on as it said before, and the handler names it.
TEST_P(BalanceLive, ABalancerThatIsSlowerThanItsSteps) {
  if (on_cpu()) GTEST_SKIP() << "the CPU is no device";
  const std::string text = forwarder("RARE 30");
  const auto r = live(text, balanced("Slow"));
  ASSERT_TRUE(r->ok());
  const int64_t end = milliseconds() + 60000;
  bool swapped = false;
  std::string balance;
  r->run([&] {
    if (milliseconds() > end) return false;
    balance = r->read("balance");
    if (balance.find("slow: step() took longer than the 5 ms between steps (") == std::string::npos ||
        balance.find(" times, first at decision 1)\n") == std::string::npos ||
        r->engine()->event(offload::kJobPackets) == 0)
      return true;
    if (std::exchange(swapped, true)) return false;
    EXPECT_TRUE(r->swap(text)) << r->errors();
    return true;
  });
  EXPECT_TRUE(swapped) << balance;
  EXPECT_LT(milliseconds(), end) << balance;
  find_ends(*r);
  expect_everything_came();
}

/// Neither in a step nor at a swap, and the next router's handler names what a function for that threw.
TEST_P(BalanceLive, ABalancerThatThrowsAnythingEndsNothing) {
  if (on_cpu()) GTEST_SKIP() << "the CPU is no device";
  for (const char* where : {"step", "learnt", "learn"}) {
    SCOPED_TRACE(where);
    const std::string text = forwarder("RARE 30");
    const auto r = live(text, balanced(fmt::format("ThrowsAnything={}", where)));
    ASSERT_TRUE(r->ok());
    const int64_t end = milliseconds() + 60000;
    bool swapped = false;
    r->run([&] {
      if (!std::exchange(swapped, true)) {
        EXPECT_TRUE(r->swap(text)) << r->errors();
      }
      const std::string named = fmt::format("corrected: {}() threw what is no std::exception (", where);
      return r->read("balance").find(named) == std::string::npos && milliseconds() < end;
    });
    EXPECT_LT(milliseconds(), end) << r->read("balance");
    find_ends(*r);
    EXPECT_EQ(sink_->missing() + sink_->late() + sink_->damaged() + sink_->stale(), 0u);
    EXPECT_EQ(sink_->received(), source_->sent());
  }
}

TEST_P(BalanceLive, KindsOfLanesChangeWhilePacketsFlow) {
  if (on_cpu()) GTEST_SKIP() << "the CPU is no device";
  const std::string text = forwarder("RARE 30");
  const auto r = live(text, balanced("FlipsRun"));
  ASSERT_TRUE(r->ok());
  const int64_t end = milliseconds() + 60000;
  int swaps = 0;
  r->run([&] {
    if (milliseconds() > end) return false;
    const auto [jobs, stream_jobs] = sum_jobs(*r->engine());
    if (stream_jobs == 0 || jobs == stream_jobs) return true;
    if (++swaps == 3) return false;
    EXPECT_TRUE(r->swap(text)) << r->errors();
    return true;
  });
  EXPECT_EQ(swaps, 3);
  find_ends(*r);
  expect_everything_came();
}

}  // namespace
}  // namespace headrace::testing
