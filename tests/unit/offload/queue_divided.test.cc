// Packets that are divided between the CPU and devices: those for the CPU are gathered.

#include <random>
#include <thread>

#include "flow_elements.hh"
#include "headrace/balancer.hh"
#include "headrace/batch_size.hh"
#include "headrace/real_clock.hh"
#include "packets.hh"
#include "queue_fixture.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

/// Parts of the packets to the first device, then all, a part, none, and so on, each for some steps.
class PartsAndOneSide : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    constexpr double kShares[] = {0.5, 0.8, 1, 0.8, 0.5, 0.8, 0};
    const double share = kShares[steps_++ / 2 % 7];
    BalanceDecision decision = everything_on_cpu();
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker) {
        chain.follow = false;
        chain.max_wait_us = 1'000'000;
        if (!chain.shares.empty()) chain.shares[0] = share;
      }
    return decision;
  }

 private:
  int steps_ = 0;
};
HEADRACE_BALANCER(PartsAndOneSide, "for tests: divides packets, and then does not")

/// Half of the flows go to the device, in small jobs, and nothing is left of what was there before they did.
class OffloadDivided : public OffloadQueue {
 protected:
  static constexpr int kBatch = 64;
  static constexpr const char* kTwoChains =
      "Idle -> first :: Strip(14) -> n :: Counter -> Paint(3) -> cap :: Capture; Idle -> second :: Strip(13) -> [1] cap;";
  void SetUp() override {
    OffloadQueue::SetUp();
    batch_before_ = default_batch();
    set_default_batch(kBatch);
  }
  void TearDown() override {
    OffloadQueue::TearDown();
    set_default_batch(batch_before_);
  }

  void make_halves(const std::string& text = kChain, int devices = 1, int max_wait_us = 1'000'000) {
    OffloadOptions o = options(Mode::kFixed, 8, 64);
    o.max_wait_us = max_wait_us;
    make(text, o, devices);
    set_mode("fixed=0.5");
    settle();
  }
  /// Goes on for some milliseconds: now and then the queue looks whether packets still are where flows were before.
  void settle() {
    for (int i = 0; i < 4; ++i) {
      send_flows(kBatch);
      std::this_thread::sleep_for(std::chrono::microseconds(1100));
      for (int k = 0; k < 20; ++k) poll(r());
    }
  }
  /// A batch with a packet of each of `n` flows, of others for each element.
  void send_flows(int n, const std::string& element = "first") {
    std::vector<Packet*> packets;
    const uint32_t first = element == "first" ? 0 : 1000;
    for (uint32_t flow = first; flow < first + static_cast<uint32_t>(n); ++flow)
      packets.push_back(marked(udp_frame(0x0a000000 + flow, 1), flow, next_[flow]++));
    inject(r(), element, packets);
  }
  /// Something arrives at the second of two chains, though no packet.
  void arrive_at_second() {
    Batch none;
    r().router().find("second")->input(0).element()->output(0).push(none);
  }
  /// Sends a batch of which packets for the CPU wait: the second one, if only half of it goes there.
  void gather(const std::string& element = "first") {
    send_flows(kBatch / 4, element);
    const uint64_t before = count(offload::kCpuPackets);
    send_flows(kBatch, element);
    EXPECT_EQ(count(offload::kCpuPackets), before);
    EXPECT_FALSE(queue().idle());
  }

 private:
  int batch_before_ = 0;
};

TEST_F(OffloadDivided, PacketsForTheCpuWaitForOthers) {
  make_halves();
  gather();
  const uint64_t before = count(offload::kCpuPackets);
  poll(r());  // something has just arrived: more may come
  EXPECT_EQ(count(offload::kCpuPackets), before);
  poll(r());
  EXPECT_GT(count(offload::kCpuPackets), before) << "a quiet round";
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, TheyWaitForMaxwaitWhileOthersArrive) {
  make_halves(kTwoChains, 1, 50'000);
  const int64_t begin = now_ns();
  gather();
  const uint64_t before = count(offload::kCpuPackets);
  for (int rounds = 0; count(offload::kCpuPackets) == before && rounds < 50'000'000; ++rounds) {
    arrive_at_second();
    poll(r());
  }
  EXPECT_GT(count(offload::kCpuPackets), before);
  EXPECT_GE(now_ns() - begin, 50'000'000);
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, TheyDoNotWaitForMoreThanABatch) {
  make_halves();
  for (int i = 0; i < 50; ++i) {
    const size_t before = seen().size();
    send_flows(2 * kBatch);
    EXPECT_GT(seen().size(), before) << "half of these are a batch";
    poll(r());
  }
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, NoMoreWaitThanABatchHolds) {
  set_default_batch(Batch::kCapacity);
  make_halves();
  set_mode("fixed=0.1");
  settle();
  send_flows(160);  // that batches come so often is known from the second one on
  for (int i = 0; i < 10; ++i) {
    const uint64_t before = count(offload::kCpuPackets);
    send_flows(160);
    EXPECT_EQ(count(offload::kCpuPackets), before);
    send_flows(Batch::kCapacity);
    EXPECT_GT(count(offload::kCpuPackets), before);
    poll(r());
    poll(r());
  }
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, FewPacketsDoNotWait) {
  make_halves();
  for (int i = 0; i < 50; ++i) {
    const size_t before = seen().size();
    send_flows(kBatch / 4);
    EXPECT_GT(seen().size(), before);
    poll(r());
  }
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, WhatWaitsGoesBeforeWhatTakesAnotherWay) {
  for (const char* const mode : {"fixed=1", "fixed=0.9", "device", "cpu", "auto"}) {
    for (const int devices : {1, 2}) {
      router_.reset();
      next_.clear();
      make_halves(kChain, devices);
      gather();
      set_mode(mode);
      send_flows(kBatch);
      poll(r());
      send_flows(kBatch);
      r().router().drain();
      expect_all_in_order();
      if (HasFailure()) FAIL() << mode << ", devices: " << devices;
    }
  }
}

TEST_F(OffloadDivided, PacketsThatEnterElsewhereDoNotMix) {
  make_halves(
      "Idle -> first :: Strip(14) -> n :: Counter -> Paint(3) -> cap :: Capture;"
      "Idle -> second :: Strip(13) -> m :: Counter -> Strip(1) -> n;");
  const size_t before = seen().size();
  constexpr int kRounds = 10, kSent = kRounds * (kBatch / 4 + kBatch + kBatch);
  for (int i = 0; i < 2 * kRounds; ++i) {
    const char* const elements[] = {"first", "second"};
    gather(elements[i % 2]);
    send_flows(kBatch, elements[1 - i % 2]);
    poll(r());
  }
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("n.count"), std::to_string(before + 2 * kSent));
  EXPECT_EQ(r().read("m.count"), std::to_string(kSent));
}

TEST_F(OffloadDivided, AFailureOfTheDeviceKeepsOrder) {
  make_halves();
  gather();
  device().fail_from = 0;
  for (int i = 0; i < 5; ++i) {
    send_flows(kBatch);
    poll(r());
  }
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, ARouterThatGoesTakesThemAlong) {
  make_halves();
  gather();
  router_.reset();
}

TEST_F(OffloadDivided, WhatWaitsGoesBeforeWhatABalancerMoves) {
  constexpr int kFew = 16;
  set_default_batch(kFew);
  OffloadOptions o = options(Mode::kAuto, 4, 64);
  o.balancer = "PartsAndOneSide";
  o.wait_for_devices = true;
  o.max_wait_us = 1'000'000;
  make(kTwoChains, o);
  // Something arrives at any time, so that what waits does so for as long as it may.
  const int64_t end = now_ns() + 20'000'000'000;
  for (int i = 0; (i < 3000 || count(offload::kJobPackets) == 0) && now_ns() < end; ++i) {
    if (i / 32 % 2 == 0 || i % 32 == 0) send_flows(kFew);
    arrive_at_second();
    if (i % 5 != 0) poll(r());  // decisions come at any place
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_GT(count(offload::kJobPackets), 0u);
  EXPECT_GT(count(offload::kCpuPackets), 0u);
  r().router().drain();
  expect_all_in_order();
}

// Of a job's number the last 16 bits are noted for each bucket. When that many jobs are done, a bucket that has stayed on the CPU
// since seems to have packets in the next one.
TEST_F(OffloadDivided, ABucketWhoseJobNumberComesAgainKeepsOrder) {
  make("Idle -> first :: OffloadFan -> cap :: Capture; first[1] -> gone :: Counter -> Discard; first[2] -> Discard;",
       options(Mode::kFixed, 1, 4));
  const auto send_one = [&](uint32_t flow, bool stays) {
    std::string frame = udp_frame(0x0a000000 + flow, 1);
    frame[0] = stays ? 0 : 1;
    inject(r(), "first", {marked(frame, flow, stays ? next_[flow]++ : 0)});
  };
  const auto find_flow = [&](const char* mode, bool on_cpu) {
    set_mode(mode);
    for (uint32_t flow = 1; flow < 1000; ++flow) {
      const uint64_t before = count(offload::kCpuPackets);
      send_one(flow, false);
      while (!queue().idle()) poll(r());
      if ((count(offload::kCpuPackets) > before) == on_cpu) return flow;
    }
    ADD_FAILURE() << "all flows take the same way";
    return 0u;
  };
  const uint32_t here = find_flow("fixed=0.7", true), there = find_flow("fixed=0.3", false);
  set_mode("fixed=1");
  send_one(here, false);
  while (!queue().idle()) poll(r());
  set_mode("fixed=0.5");
  for (uint32_t jobs = 1; jobs < 1u << 16; ++jobs) {
    send_one(there, false);
    while (!queue().idle()) poll(r());
  }
  EXPECT_EQ(count(offload::kBehind), 0u);
  device().hold = true;
  set_mode("fixed=0.45");  // so that all look where others of their flows are
  send_one(there, false);
  send_one(here, true);
  EXPECT_EQ(count(offload::kBehind), 1u) << "in vain";
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(1100));
    for (int k = 0; k < 20; ++k) poll(r());
  }
  send_one(here, true);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadDivided, AnyModesAtAnyTimesKeepOrder) {
  std::mt19937 random(1);
  const auto one_of = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const char* const modes[] = {"device", "fixed=1", "fixed=0.5", "fixed=0.75", "fixed=0.1", "cpu", "auto"};
  for (int round = 0; round < 12; ++round) {
    router_.reset();
    next_.clear();
    make_halves(kChain, 1 + round % 2);
    for (int step = 0; step < 400; ++step) {
      const uint32_t what = one_of(100);
      if (what < 3)
        set_mode(modes[one_of(7)]);
      else if (what < 6)
        device(0).hold = !device(0).hold;
      else if (what < 8)
        std::this_thread::sleep_for(std::chrono::microseconds(1100));
      else if (what < 50)
        poll(r());
      else
        send_flows(what < 60 ? 7 : what < 80 ? kBatch : 2 * kBatch);
    }
    device(0).hold = false;
    r().router().drain();
    expect_all_in_order();
    if (HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace headrace::testing
