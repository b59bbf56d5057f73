// A worker's jobs where a balancer decides.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

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

/// Half of the packets to the first device for 50 ms or so, then none.
class HalfThenNone : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker)
        if (steps_ < 10 && !chain.shares.empty()) chain.shares[0] = 0.5;
    ++steps_;
    return decision;
  }

 private:
  int steps_ = 0;
};
HEADRACE_BALANCER(HalfThenNone, "for tests: leaves the device after some steps")

/// Other shares at every fourth step, so that all flows are where they belong meanwhile, and probes now and then.
class MovesAtTimes : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    const bool moves = steps_++ % 4 == 0, probes = random_() % 3 == 0;
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker) {
        const size_t n = chain.shares.size();
        if (n == 0) continue;
        if (moves) {
          shares_.assign(n, 0);
          for (int tenths = 9; tenths > 0; tenths -= 3) shares_[random_() % n] += random_() % 4 == 0 ? 0 : 0.3;
        }
        chain.shares = shares_;
        chain.follow = false;
        chain.probe = probes ? chain.job : 0;
        chain.probe_device = static_cast<int>(random_() % (n + 1)) - 1;
      }
    return decision;
  }

 private:
  unsigned steps_ = 0;
  std::vector<double> shares_;
  std::minstd_rand random_;
};
HEADRACE_BALANCER(MovesAtTimes, "for tests: moves flows after they have stayed for some steps")

TEST_F(OffloadBalanced, BuffersAreInOrderOnceAllStaysOnTheCpu) {
  const int id = std::exchange(detail::t_thread_id, 0);  // so that it has a cache of free buffers
  PacketPool& pool = PacketPool::instance();
  const auto in_order = [&pool] {
    Packet* some[500];
    const uint32_t n = pool.allocate_bulk(some, 500);
    int falls = 0;
    for (uint32_t i = 1; i < n; ++i) falls += some[i] < some[i - 1];
    pool.release_bulk(some, n);
    return n == 500 && falls <= 1;
  };
  make("Idle -> first :: Strip(14) -> Counter -> Discard;", balanced("HalfThenNone", 64, 16));
  std::vector<Packet*> all(pool.reserve(2048));
  all.resize(pool.allocate_bulk(all.data(), static_cast<uint32_t>(all.size())));
  std::shuffle(all.begin(), all.end(), std::mt19937_64(1));
  pool.release_bulk(all.data(), static_cast<uint32_t>(all.size()));
  EXPECT_FALSE(in_order());
  send_until([&] { return count(offload::kJobPackets) > 0; });
  send_until(in_order);
  r().router().drain();
  detail::t_thread_id = id;
}

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

TEST_F(OffloadBalanced, HearsNothingOfOtherModes) {
  const auto samples = [this] {
    std::istringstream trace(r().router().engine()->balance()->trace(1000));
    balance::TraceReader reader;
    std::vector<BalanceSample> all;
    for (std::string text; std::getline(trace, text);) {
      balance::TraceLine line;
      EXPECT_TRUE(reader.read(text, line)) << reader.error();
      if (const auto* sample = std::get_if<BalanceSample>(&line)) all.push_back(*sample);
    }
    return all;
  };
  make(kChain, balanced("Fixed=0.5", 8, 16));
  for (const char* const mode : {"cpu", "device", "fixed=0.5"}) {
    SCOPED_TRACE(mode);
    const size_t before = samples().size();
    send_until([&] { return samples().size() > before; });
    ASSERT_TRUE(r().write("offload_mode", mode)) << r().errors();
    const size_t then = samples().size();
    const int64_t began = now_ns();
    for (int i = 0; i < 100; ++i) {
      send(1, 1);
      queue().poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    const int64_t there = now_ns() - began;
    EXPECT_LE(samples().size(), then + 1) << "but for one that was ready";
    ASSERT_TRUE(r().write("offload_mode", "auto")) << r().errors();
    const size_t heard = samples().size();
    send_until([&] { return samples().size() > heard; });
    const WorkerSample sample = samples().at(heard).workers.at(0);
    EXPECT_LT(sample.ns, there);
    EXPECT_GT(sample.chains.at(0).arrived, 0u);
  }
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadBalanced, AnEntryBesideOneOfAnotherMode) {
  make(R"(Idle -> oa :: Offload(MODE cpu) -> Strip(14) -> c :: Counter -> cap :: Capture;
          Idle -> ob :: Offload(MODE auto) -> Strip(14) -> c;)",
       balanced("DeviceOnly", 4, 16));
  ASSERT_EQ(r().router().engine()->describe().find("chain 1:"), std::string::npos) << "both are entries of one chain";
  const int64_t end = now_ns() + 20'000'000'000;
  while (count(offload::kJobPackets) == 0 && now_ns() < end) {
    send(1, 1, "oa");
    send(2, 1, "ob");
    queue().poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  EXPECT_GT(count(offload::kJobPackets), 0u);
  r().router().drain();
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

TEST_F(OffloadBalanced, FlowsThatStayedForAWhileMoveInOrder) {
  using Health = offload::Device::Health;
  std::mt19937 random(7);
  for (const int devices : {1, 2}) {
    SCOPED_TRACE(devices);
    make(kChain, balanced("MovesAtTimes", 8, 16), devices);
    send_until([&] { return count(offload::kJobPackets) > 0; });
    // Jobs are under way for as long as the balancer takes some steps.
    for (int round = 0; round < 40; ++round) {
      for (int d = 0; d < devices; ++d) device(d).hold = random() % 2 == 0;
      offload::Device& ill = r().router().engine()->device(static_cast<int>(random() % 2) % devices);
      const bool falls_ill = random() % 8 == 0;
      for (int i = 0; i < 8; ++i) {
        if (falls_ill && i == 4) ill.move(Health::kWell, Health::kHung);
        for (uint32_t flow = 1; flow <= 24; ++flow)
          if (random() % 2 == 0) send(flow, 1);
        queue().poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      if (falls_ill) ill.move(Health::kHung, Health::kWell);
      for (int d = 0; d < devices; ++d) device(d).hold = false;
      const int64_t end = now_ns() + 10'000'000;
      while (now_ns() < end) queue().poll();
    }
    r().router().drain();
    expect_all_in_order();
    next_.clear();
    router_.reset();
  }
}

// A balancer that sends everything to one device does not note which flows are in which job. A mode that uses another
// device must not overtake them.
TEST_F(OffloadBalanced, OtherModesAndDevicesKeepOrder) {
  for (const char* const mode : {"device", "fixed=0.5"}) {
    SCOPED_TRACE(mode);
    make(kChain, balanced("FlipsRun", 8, 16), 2);
    ASSERT_TRUE(r().write("offload_tuning", "worker=0 device=1"));
    send_until([&] { return device(0).submitted > 4; });
    device(0).hold = true;
    for (uint32_t flow = 1; flow <= 24; ++flow) send(flow, 1);
    queue().poll();
    ASSERT_TRUE(r().write("offload_mode", mode)) << r().errors();
    for (int i = 0; i < 4; ++i) {
      for (uint32_t flow = 1; flow <= 24; ++flow) send(flow, 1);
      queue().poll();
    }
    device(0).hold = false;
    r().router().drain();
    expect_all_in_order();
    next_.clear();
    router_.reset();
  }
}

TEST_F(OffloadBalanced, KindsOfLanesTakeTurns) {
  make(kChain, balanced("FlipsRun", 8, 4), 2);
  send_until([&] {
    const int streamed = device().streamed;
    return streamed > 20 && device().submitted - streamed > 20 &&
           r().read("balance").find(" stream jobs of ") != std::string::npos;
  });
  EXPECT_EQ(r().read("balance").find("corrected: "), std::string::npos) << r().read("balance");
  r().router().drain();
  expect_all_in_order();
}

// Packets on one kind of lane come after those that are still on the other one.
TEST_F(OffloadBalanced, AJobOfTheOtherKindIsWaitedFor) {
  make(kChain, balanced("FlipsRun", 8, 60));
  // A packet, which is a job, each millisecond: there are places for many changes of kind.
  const auto trickle_until = [&](const std::function<bool()>& done) {
    const int64_t end = now_ns() + 20'000'000'000;
    for (uint32_t n = 0; !done() && now_ns() < end; ++n) {
      send(1 + n % 8, 1);
      for (int i = 0; i < 32; ++i) queue().poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(done());
  };
  const auto resident = [&] { return device().submitted - device().streamed; };
  trickle_until([&] { return device().streamed > 0 && resident() > 0; });
  for (const bool stream_first : {false, true}) {
    SCOPED_TRACE(stream_first);
    // The first job of the kind that this is about.
    int before = 0;
    trickle_until([&] {
      const int now = stream_first ? device().streamed.load() : resident();
      const bool is_lost = device().lose >= 0 && now > before;
      if (is_lost) return true;
      device().found = true;
      r().router().drain();
      before = now;
      device().lose = device().submitted.load();
      device().found = false;
      return false;
    });
    const size_t came = seen().size();
    const int of_other = stream_first ? resident() : device().streamed.load();
    trickle_until([&] { return (stream_first ? resident() : device().streamed.load()) > of_other + 2; });
    for (int i = 0; i < 32; ++i) queue().poll();
    EXPECT_EQ(seen().size(), came) << "a packet came out before one of a job that was submitted before it";
    device().found = true;
    r().router().drain();
    EXPECT_GT(seen().size(), came + 2);
    device().lose = -1;
  }
  expect_all_in_order();
}

TEST_F(OffloadBalanced, ADeviceOfOneKind) {
  using Run = OffloadOptions::Run;
  for (const auto run : {Run::kResident, Run::kStream}) {
    OffloadOptions o = balanced("FlipsRun", 8, 4);
    o.run = run;
    SCOPED_TRACE(o.run_text());
    make(kChain, o);
    const uint64_t begin = static_cast<uint64_t>(now_ns());
    send_until([&] { return device().submitted > 20 && static_cast<uint64_t>(now_ns()) > begin + 50'000'000; });
    r().router().drain();
    expect_all_in_order();
    next_.clear();
    EXPECT_EQ(device().streamed, run == Run::kStream ? device().submitted.load() : 0);
    const std::string balance = r().read("balance");
    EXPECT_EQ(balance.find("corrected: expected a run that a device offers") != std::string::npos,
              run == Run::kResident)
        << balance;
    router_.reset();
  }
}

TEST_F(OffloadBalanced, ADeviceFailsWhileKindsChange) {
  for (const bool late : {false, true}) {
    SCOPED_TRACE(late);
    OffloadOptions o = balanced("FlipsRun", 8, 4);
    if (late) o.deadline_ms = 5;
    make(kChain, o, 2);
    send_until([&] { return device().streamed > 5 && device().submitted - device().streamed > 5; });
    const int submitted = device().submitted;
    if (late) {
      device().lose = submitted + 3;
      const int64_t begin = now_ns();
      send_until([&] { return now_ns() > begin + 60'000'000 && count(offload::kLateJobs) > 0; });
      device().found = true;
    } else {
      device().fail_from = submitted + 3;
      send_until([&] { return failed(0); });
    }
    for (uint32_t flow = 1; flow <= 16; ++flow) send(flow, 5);
    r().router().drain();
    expect_all_in_order();
    EXPECT_EQ(failed(0), !late);
    next_.clear();
    router_.reset();
  }
}

TEST_F(OffloadBalanced, ATraceReplays) {
  for (const char* balancer : {"Model", "Rubbish", "Throws", "ThrowsAnything=step"}) {
    SCOPED_TRACE(balancer);
    make(kChain, balanced(balancer, 8, 3));
    const int64_t begin = now_ns();
    send_until([&] { return now_ns() > begin + 100'000'000; });
    r().router().drain();
    expect_all_in_order();
    next_.clear();
    std::istringstream trace(r().router().engine()->balance()->trace(1000));
    router_.reset();
    balance::TraceReader reader;
    std::unique_ptr<Balancer> again;
    BalanceDecision last;
    balance::Corrections corrections;
    std::string decided;
    uint64_t steps = 0;
    int decisions = 0;
    for (std::string text; std::getline(trace, text);) {
      balance::TraceLine line;
      ASSERT_TRUE(reader.read(text, line)) << reader.error();
      if (const auto* head = std::get_if<balance::TraceHead>(&line)) {
        std::string why;
        again = make_balancer(head->balancer, why);
        ASSERT_NE(again, nullptr) << why;
        again->set_setup(head->setup);
      } else if (const auto* sample = std::get_if<BalanceSample>(&line)) {
        last = balance::decide(*again, *sample, last, ++steps, corrections);
        decided = balance::trace_line(last);
      } else {
        EXPECT_EQ(text, decided);
        ++decisions;
      }
    }
    EXPECT_GT(decisions, 3);
  }
}

TEST_F(OffloadBalanced, ABalancerThatIsNone) {
  devices_ = std::make_unique<TestDevices>(1);
  TestRouter bad(kChain, RouterOptions{.profile = false, .offload = balanced("Nobody")});
  EXPECT_FALSE(bad.ok());
  EXPECT_NE(bad.errors().find("--balancer: there is no balancer 'Nobody'; there are CPUOnly, "), std::string::npos)
      << bad.errors();
  TestRouter throws(kChain, RouterOptions{.profile = false, .offload = balanced("ThrowsAnything=start")});
  EXPECT_FALSE(throws.ok());
  EXPECT_NE(throws.errors().find("--balancer: ThrowsAnything=start: start() threw what is no std::exception"),
            std::string::npos)
      << throws.errors();
  TestRouter at_once(kChain, RouterOptions{.profile = false, .offload = balanced("ThrowsAnything=configure")});
  EXPECT_FALSE(at_once.ok());
  EXPECT_NE(at_once.errors().find("--balancer: ThrowsAnything=configure: configure() threw what is no std::exception"),
            std::string::npos)
      << at_once.errors();
  TestRouter worse("Idle -> Offload(BALANCER Fixed=2) -> Strip(14) -> cap :: Capture;", RouterOptions{});
  EXPECT_FALSE(worse.ok());
  EXPECT_NE(worse.errors().find("BALANCER: "), std::string::npos) << worse.errors();
}

}  // namespace
}  // namespace headrace::testing
