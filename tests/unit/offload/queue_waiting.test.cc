// A worker's jobs, step by step: when they are sent, full lanes, parked packets, and settings that change.

#include "flow_elements.hh"
#include "headrace/real_clock.hh"
#include "packets.hh"
#include "queue_fixture.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

// --- Flushing

TEST_F(OffloadQueue, AQuietRoundSendsWhatIsThere) {
  OffloadOptions o = options(Mode::kDevice, 64);
  o.max_wait_us = 1'000'000'000;
  make(kChain, o);
  send(1, 3);
  poll(r());  // something has just arrived: more may come
  EXPECT_EQ(device().submitted, 0);
  poll(r());
  EXPECT_EQ(device().submitted, 1);
  EXPECT_EQ(device().slots, 3);
  poll(r());
  expect_all_in_order();
  EXPECT_FALSE(poll(r()));
  EXPECT_EQ(device().submitted, 1);
}

TEST_F(OffloadQueue, MaxwaitSendsWhileOthersArrive) {
  OffloadOptions o = options(Mode::kDevice, 64);
  o.max_wait_us = 20'000;
  make(kChain, o);
  const int64_t begin = now_ns();
  int rounds = 0;
  while (device().submitted == 0 && rounds < 50'000'000) {
    if (rounds++ < 40) send(1, 1);
    // Arrivals again and again, without packets.
    inject(r(), "first", {});
    Batch none;
    r().router().find("first")->input(0).element()->output(0).push(none);
    poll(r());
  }
  EXPECT_EQ(device().submitted, 1);
  // On a busy machine the time may be over before all have arrived.
  EXPECT_GT(device().slots, 0);
  EXPECT_GE(now_ns() - begin, 20'000'000);
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadQueue, EachEntryHasItsOwnJobAndMaxwait) {
  OffloadOptions o = options(Mode::kDevice, 64, 8);
  o.max_wait_us = 1'000'000'000;
  make(R"(Idle -> oa :: Offload(MODE device, JOB 4) -> first :: Strip(14) -> cap :: Capture;
          Idle -> ob :: Offload(MODE device, MAXWAIT 0) -> second :: Strip(13) -> [1] cap;
          Idle -> third :: Strip(12) -> [2] cap;)",
       o);
  send(1, 9, "oa");
  EXPECT_EQ(device().submitted, 2);
  EXPECT_EQ(device().slots, 8);
  send(2, 1, "ob");
  send(3, 1, "third");
  poll(r());
  EXPECT_EQ(device().submitted, 3) << "MAXWAIT of the second entry";
  r().router().drain();
  expect_all_in_order();
}

// --- Full lanes

TEST_F(OffloadQueue, SourcesRestWhenManyWaitBehindJobs) {
  make(kChain, options(Mode::kFixed, 4, 2));
  device().hold = true;
  send(1, 8);
  send(1, 8);
  EXPECT_EQ(count(offload::kBehind), 8u);
  EXPECT_EQ(queue().closed_gates(), 0u) << "no more than in jobs";
  send(1, 1);
  EXPECT_NE(queue().closed_gates(), 0u);
  EXPECT_EQ(count(offload::kWaits), 1u);
  device().hold = false;
  r().router().drain();
  EXPECT_EQ(queue().closed_gates(), 0u);
  expect_all_in_order();
}

TEST_F(OffloadQueue, FixedTakesTheCpuWhenLanesAreFull) {
  make(kChain, options(Mode::kFixed, 4, 2));
  device().hold = true;
  send(1, 4);
  send(2, 4);
  send(3, 3);
  send(1, 2);
  EXPECT_EQ(count(offload::kFullLane), 5u);
  EXPECT_EQ(count(offload::kCpuPackets), 5u);
  EXPECT_EQ(count(offload::kBehind), 2u);
  EXPECT_EQ(count(offload::kWaits), 0u);
  EXPECT_EQ(seen().size(), 3u);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("n.count"), "13");
}

TEST_F(OffloadQueue, DeviceParksPacketsWhenLanesAreFull) {
  make(kChain, options(Mode::kDevice, 4, 2));
  device().hold = true;
  send(1, 20);
  EXPECT_EQ(device().slots, 8);
  EXPECT_EQ(count(offload::kWaits), 1u);
  send(2, 5);  // behind them
  for (int i = 0; i < 10; ++i) poll(r());
  EXPECT_EQ(device().slots, 8);
  EXPECT_EQ(count(offload::kWaits), 1u) << "the same packets";
  EXPECT_TRUE(seen().empty());
  device().hold = false;
  r().router().drain();
  EXPECT_EQ(device().slots, 25);
  expect_all_in_order();
  EXPECT_EQ(count(offload::kFullLane), 0u);
  EXPECT_EQ(count(offload::kCpuPackets), 0u);
  EXPECT_EQ(count(offload::kJobs), 7u);
  EXPECT_EQ(count(offload::kJobPackets), 25u);
}

TEST_F(OffloadQueue, ParkedPacketsKeepTheirOrderWhenTheModeChanges) {
  // Each mode in turn, while packets are parked, with more of the same flows behind them.
  for (const char* mode : {"cpu", "auto", "fixed=0.5", "fixed=1", "device"}) {
    router_.reset();
    next_.clear();
    make(kChain, options(Mode::kDevice, 4, 2));
    device().hold = true;
    for (uint32_t flow = 1; flow <= 5; ++flow) send(flow, 7);
    set_mode(mode);
    for (uint32_t flow = 1; flow <= 5; ++flow) send(flow, 3);
    poll(r());
    for (uint32_t flow = 1; flow <= 5; ++flow) send(flow, 3);
    device().hold = false;
    r().router().drain();
    expect_all_in_order();
    if (HasFailure()) FAIL() << "then " << mode;
  }
}

TEST_F(OffloadQueue, ParkedPacketsGoToTheCpuWhenTheDeviceFails) {
  make(kChain, options(Mode::kDevice, 4, 2));
  device().hold = true;
  send(1, 100);
  device().fail_from = 0;
  r().router().drain();
  expect_all_in_order();
  EXPECT_TRUE(failed(0));
  EXPECT_EQ(r().read("n.count"), "100");
}

TEST_F(OffloadQueue, ARouterThatGoesTakesParkedPacketsAlong) {
  make(kChain, options(Mode::kDevice, 4, 2));
  device().hold = true;
  send(1, 100);
  // TearDown counts the packets.
}

TEST_F(OffloadQueue, ARouterThatStoppedWithParkedPacketsRunsAgain) {
  make("src :: InfiniteSource(LENGTH 60, LIMIT 100, BURST 50, STOP true) -> first :: Strip(14) -> cap :: Capture;",
       options(Mode::kDevice, 4, 2));
  r().run();
  EXPECT_EQ(seen().size(), 100u);
  EXPECT_GE(count(offload::kWaits), 1u);
  ASSERT_TRUE(r().write("src.reset", "")) << r().errors();
  r().run();
  EXPECT_EQ(seen().size(), 200u);
}

TEST_F(OffloadQueue, AGateThatOnePollClosesAndOpensRestsNobody) {
  // What a poll releases from the first chain finds no place in the second, whose job the same poll then releases.
  make(
      "src :: InfiniteSource(LENGTH 60, LIMIT 1000, BURST 4, STOP true) -> first :: Strip(14) -> twice :: Tee"
      " -> second :: Strip(1) -> cap :: Capture; twice[1] -> second;",
      options(Mode::kDevice, 4, 2));
  r().run();
  EXPECT_EQ(seen().size(), 2000u);
  EXPECT_GE(count(offload::kWaits), 1u);
}

TEST_F(OffloadQueue, RewrittenPacketsOfALateJob) {
  // The late job's packets are rewritten on the CPU, once. What the device writes much later is nobody's packet.
  OffloadOptions o = options(Mode::kDevice, 4, 2);
  o.deadline_ms = 30;
  make("Idle -> first :: OffloadEcho(0x5a, 2, 2) -> cap :: Capture; first[1] -> [1] cap;", o);
  device().lose = 0;
  send(1, 4);
  send(1, 4);
  while (count(offload::kLateJobs) == 0) poll(r());
  send(1, 6);
  while (seen().size() < 14) poll(r());
  const std::string before = capture().bytes(0);
  for (size_t i = 0; i < seen().size(); ++i) EXPECT_EQ(capture().bytes(i), before);
  device().found = true;
  while (r().router().engine()->queue(0).has_late_jobs()) poll(r());
  for (int round = 0; round < 20; ++round) {
    send(1, 3);
    poll(r());
  }
  r().router().drain();
  expect_all_in_order();
  for (size_t i = 0; i < seen().size(); ++i) {
    EXPECT_EQ(capture().bytes(i), before);
    EXPECT_EQ(seen()[i].packet->anno_u8(anno_offset::kPaint), 1);
  }
}

TEST_F(OffloadQueue, WithoutOutputBuffersTheCpuRewrites) {
  make("Idle -> first :: OffloadEcho(0x5a, 2, 2) -> cap :: Capture; first[1] -> [1] cap;", options(Mode::kDevice));
  send(1, 2);
  r().router().drain();
  // The job's place keeps the buffers of these two.
  std::vector<Packet*> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(marked(udp_frame(0x0a000001, 1), 1, next_[1]++));
  std::vector<Packet*> all;
  for (Packet* p; PacketPool::instance().allocate_bulk(&p, 1) == 1;) all.push_back(p);
  inject(r(), "first", sent);
  r().router().drain();
  for (Packet* p : all) p->kill();
  expect_all_in_order();
  EXPECT_EQ(count(offload::kNoBuffer), 2u);
  EXPECT_EQ(count(offload::kResumed), 2u);
  for (size_t i = 0; i < seen().size(); ++i) EXPECT_EQ(capture().bytes(i), capture().bytes(0));
}

TEST_F(OffloadQueue, APlanWithoutPlacesLeavesOtherPlansTheirs) {
  make("Idle -> first :: Strip(14) -> cap :: Capture; Idle -> second :: Strip(13) -> [1] cap;",
       options(Mode::kDevice, 4, 6));
  device().hold = true;
  send(1, 100);
  EXPECT_EQ(device().slots, 16) << "two places are the other plan's";
  send(2, 8, "second");
  EXPECT_EQ(device().slots, 24);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  const offload::Engine& engine = *r().router().engine();
  EXPECT_EQ(engine.arrival_latency(0).count(), 25u);
  EXPECT_EQ(engine.arrival_latency(1).count(), 2u);
  EXPECT_EQ(engine.doorbell_latency().count(), 27u);
  EXPECT_NE(r().read("offload_latency").find("\nchain 1 arrival: p50 "), std::string::npos);
}

TEST_F(OffloadQueue, TuningsChangeWhilePacketsFlow) {
  make(kChain, options(Mode::kDevice, 64, 8));
  device().hold = true;
  // The handler would wait for the jobs that are held.
  offload::Tuning& tuning = queue().tuning(0);
  tuning.job = 2;
  tuning.places = 3;
  send(1, 10);
  EXPECT_EQ(device().submitted, 3);
  EXPECT_EQ(device().slots, 6);
  tuning.places = 4;
  poll(r());
  EXPECT_EQ(device().slots, 8);
  tuning.job = 64;
  tuning.places = 100;
  tuning.at_quiet = false;
  tuning.max_wait_us = 1'000'000;
  for (int i = 0; i < 10; ++i) poll(r());
  EXPECT_EQ(device().submitted, 4) << "the fifth job waits for more, quiet or not";
  tuning.max_wait_us = 0;
  send(1, 1);
  poll(r());
  EXPECT_EQ(device().submitted, 5);
  EXPECT_EQ(device().last_size, 3);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadQueue, ModesThatAreNone) {
  make(kChain, options(Mode::kDevice));
  set_mode("auto");
  EXPECT_EQ(r().read("offload_mode"), "auto");
  EXPECT_FALSE(r().write("offload_mode", "fixed=1.5"));
  EXPECT_FALSE(r().write("offload_mode", "gpu"));
  EXPECT_EQ(r().read("offload_mode"), "auto");
}

TEST_F(OffloadQueue, AFractionOfTheFlows) {
  make(kChain, options(Mode::kFixed, 64, 16));
  set_mode("fixed=0.25");
  for (uint32_t flow = 1; flow <= 2000; ++flow) send(flow, 1);
  r().router().drain();
  const uint64_t there = count(offload::kJobPackets);
  EXPECT_NEAR(static_cast<double>(there), 500, 80);
  EXPECT_EQ(there + count(offload::kCpuPackets), 2000u);
  // The same flows go the same way.
  for (uint32_t flow = 1; flow <= 2000; ++flow) send(flow, 1);
  r().router().drain();
  EXPECT_EQ(count(offload::kJobPackets), 2 * there);
  expect_all_in_order();
}

TEST_F(OffloadQueue, TuningsAreReadAndWritten) {
  make("Idle -> first :: Strip(14) -> cap :: Capture; Idle -> second :: Strip(13) -> [1] cap;",
       options(Mode::kDevice, 64, 8));
  ASSERT_TRUE(r().write("offload_tuning", "chain=1 job=16 places=2 maxwait=5 quiet=false")) << r().errors();
  ASSERT_TRUE(r().write("offload_tuning", "worker=0 maxwait=7"));
  const std::string tunings =
      "worker=0 chain=0 places=6 job=64 maxwait=7 quiet=true device=0\n"
      "worker=0 chain=1 places=2 job=16 maxwait=7 quiet=false device=0\n";
  EXPECT_EQ(r().read("offload_tuning"), tunings);
  for (const char* wrong : {"chain=2 job=1", "worker=1 job=1", "job=0", "job=x", "quiet=maybe", "jobs=3", "job",
                            "maxwait=-1", "job=8 places=0", "device=1", "device=x"})
    EXPECT_FALSE(r().write("offload_tuning", wrong)) << wrong;
  EXPECT_EQ(r().read("offload_tuning"), tunings);
}

}  // namespace
}  // namespace headrace::testing
