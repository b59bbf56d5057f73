// A worker's jobs, step by step: order while buckets move, full lanes, flushing, failure, deadlines. The test holds the
// devices' jobs back, so that nothing depends on time.

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>

#include "flow_elements.hh"
#include "headrace/real_clock.hh"
#include "packets.hh"
#include "queue_fixture.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

TEST_F(OffloadQueue, FromDeviceToCpuWaitsForTheFlow) {
  make(kChain, options(Mode::kFixed));
  device().hold = true;
  send(1, 3);
  send(2, 3);  // a full job, and two packets in an open one
  set_mode("cpu");
  send(1, 2);
  send(2, 2);
  send(3, 2);  // nothing of it is elsewhere
  ASSERT_EQ(seen().size(), 2u);
  EXPECT_EQ(seen()[0].packet->anno_u32(kFlowAnno), 3u);
  EXPECT_EQ(count(offload::kBehind), 4u);
  // Back to the device: no wait, but behind what waits.
  set_mode("fixed=1");
  send(1, 2);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(count(offload::kCpuPackets), 6u);
  EXPECT_EQ(count(offload::kJobPackets), 8u);
  EXPECT_EQ(r().read("n.count"), "14");
}

TEST_F(OffloadQueue, EveryKindOfMoveKeepsOrder) {
  // Each sequence of modes, with jobs under way all the time.
  const char* const modes[] = {"device", "fixed=1", "fixed=0.5", "cpu", "auto"};
  for (int sequence = 0; sequence < 125; ++sequence) {
    router_.reset();
    next_.clear();
    make(kChain, options(Mode::kDevice, 8, 16));
    device().hold = true;
    for (int step = sequence, i = 0; i < 3; ++i, step /= 5) {
      set_mode(modes[step % 5]);
      for (uint32_t flow = 1; flow <= 3; ++flow) send(flow, 3);
    }
    device().hold = false;
    r().router().drain();
    expect_all_in_order();
    if (HasFailure()) FAIL() << "modes " << sequence % 5 << sequence / 5 % 5 << sequence / 25;
  }
}

TEST_F(OffloadQueue, ManyPacketsBehindAnOpenJob) {
  make(kChain, options(Mode::kDevice, 8));
  send(1, 1);  // stays in an open job
  set_mode("cpu");
  send(1, 500);  // more than wait behind one job
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadQueue, ChainsThatShareAllJobs) {
  // The only job is open for the first chain when the second wants one.
  make("Idle -> first :: Strip(14) -> cap :: Capture; Idle -> second :: Strip(13) -> [1] cap;",
       options(Mode::kDevice, 8, 1));
  send(1, 3);
  send(2, 3, "second");
  send(1, 3);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(count(offload::kJobs), 3u);
  EXPECT_EQ(count(offload::kWaits), 2u);
  EXPECT_EQ(count(offload::kCpuPackets), 0u);
}

TEST_F(OffloadQueue, AJobIsNotUsedAgainWhilePacketsBehindItGoOn) {
  make(R"(Idle -> oa :: Offload(MODE fixed, FRACTION 1) -> first :: Strip(1) -> Tee(1)
            -> Offload(MODE fixed, FRACTION 1) -> Strip(1) -> cap :: Capture;)",
       options(Mode::kFixed, 128, 1));
  device().hold = true;
  send(1, 128, "oa");
  dynamic_cast<ChainEntry*>(r().router().find("oa"))->in_effect().mode = Mode::kCpu;
  send(1, 300, "oa");  // behind the job, in two batches
  device().hold = false;
  device().lose = 1;  // the second chain's job takes its time
  poll(r());
  device().lose = -1;
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadQueue, AnyNumberOfPacketsIsHeldBackBehindAJob) {
  OffloadOptions o = options(Mode::kFixed, 4, 2);
  o.deadline_ms = 1000;
  make(kChain, o);
  device().hold = true;
  send(1, 4);
  set_mode("cpu");
  send(1, 100);
  EXPECT_EQ(count(offload::kBehind), 100u);
  EXPECT_EQ(count(offload::kLateJobs), 0u) << "waited for the job";
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
}

// --- Results

TEST_F(OffloadQueue, ResultsComeOnceAndInOrder) {
  // While modes change, a job is late, lanes are full, and the device fails.
  for (int scenario = 0; scenario < 5; ++scenario) {
    router_.reset();
    next_.clear();
    OffloadOptions o = options(Mode::kDevice, 4, 3);
    if (scenario == 1) o.deadline_ms = 5;
    make(
        "Idle -> first :: Strip(14) -> a :: OffloadLedger(15) -> Paint(3) -> b :: OffloadLedger(15) -> cap :: Capture;",
        o);
    if (scenario == 1) device().lose = 1;
    device().hold = true;
    for (uint32_t flow = 1; flow <= 6; ++flow) send(flow, 3);
    if (scenario == 2) set_mode("fixed=0.5");
    if (scenario == 3) set_mode("cpu");
    for (uint32_t flow = 1; flow <= 6; ++flow) send(flow, 2);
    if (scenario == 4) device().fail_from = 1;
    device().hold = false;
    if (scenario == 2) set_mode("fixed=1");
    for (uint32_t flow = 1; flow <= 6; ++flow) send(flow, 2);
    r().router().drain();
    if (scenario == 1) device().found = true;
    poll(r());
    expect_all_in_order();
    // 7 packets of flows 4; 1 and 5; 2 and 6; 3; 50 bytes each.
    for (const char* handler : {"a.ledger", "b.ledger"})
      EXPECT_EQ(r().read(handler), "7/350 14/700 14/700 7/350 disorder 0") << handler << ", scenario " << scenario;
  }
}

TEST_F(OffloadQueue, AJobWhosePacketsLeaveEverywhere) {
  constexpr uint32_t kOutputs = 40;
  std::string patterns, ways;
  for (uint32_t flow = 1; flow <= kOutputs; ++flow) {
    patterns += fmt::format("{}15/{:02x}", flow == 1 ? "" : ", ", flow);
    ways += fmt::format("c[{}] -> [{}] cap; ", flow - 1, flow - 1);
  }
  make(fmt::format("Idle -> first :: Strip(14) -> c :: Classifier({}); cap :: Capture; {}", patterns, ways),
       options(Mode::kDevice, 500, 2));
  std::mt19937 random(3);
  for (int i = 0; i < 1500; ++i)
    send(1 + static_cast<uint32_t>(random() % kOutputs), 1 + static_cast<int>(random() % 2));
  r().router().drain();
  expect_all_in_order();
  for (const Capture::Seen& s : seen()) EXPECT_EQ(s.port + 1, static_cast<int>(s.packet->anno_u32(kFlowAnno)));
  EXPECT_EQ(count(offload::kResumed), 0u);
}

// --- Tables

TEST_F(OffloadQueue, AJobSeesTheTablesOfTheTimeItWasSubmitted) {
  make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;",
       options(Mode::kDevice, 4, 4));
  int value = 1;
  ASSERT_TRUE(r().write("t.set", "1"));
  for (int round = 0; round < 8; ++round, value += 2) {
    const size_t before = seen().size();
    device().hold = true;
    send(1, 4);
    ASSERT_TRUE(r().write("t.set", std::to_string(value + 1)));
    send(1, 4);
    // The next update needs the memory that the first job reads from.
    device().pending = 100;
    device().hold = false;
    ASSERT_TRUE(r().write("t.set", std::to_string(value + 2))) << r().errors();
    EXPECT_EQ(device().pending, 0);
    r().router().drain();
    ASSERT_EQ(seen().size(), before + 8);
    for (size_t i = 0; i < 8; ++i) {
      const Capture::Seen& s = seen()[before + i];
      EXPECT_EQ(s.port, 0) << "the tables do not agree";
      EXPECT_EQ(s.packet->anno_u8(anno_offset::kPaint), value + static_cast<int>(i / 4));
    }
  }
  expect_all_in_order();
}

TEST_F(OffloadQueue, NoPacketSeesHalfOfAnUpdate) {
  // A route is an entry of one table and a next hop of another. Two updates pass while jobs of older states are held.
  make(
      "Idle -> first :: Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 1.1.1.1 0)"
      " -> Paint(0) -> cap :: Capture; rt[1] -> Paint(1) -> cap;",
      options(Mode::kDevice, 1, 8));
  device().hold = true;
  const auto expect_held = [&](int n) {
    poll(r());
    EXPECT_EQ(seen().size(), 0u);
    EXPECT_EQ(device().submitted, n);
  };
  send(1, 1);
  ASSERT_TRUE(r().write("rt.set", "0.0.0.0/0 2.2.2.2 1")) << r().errors();
  expect_held(1);
  send(1, 1);
  ASSERT_TRUE(r().write("rt.set", "0.0.0.0/0 3.3.3.3 0")) << r().errors();
  expect_held(2);
  send(1, 1);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  ASSERT_EQ(seen().size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen()[i].packet->anno_u32(anno_offset::kDstIp), (i + 1) * 0x01010101u);
    EXPECT_EQ(seen()[i].packet->anno_u8(anno_offset::kPaint), i == 1);
  }
  EXPECT_FALSE(failed(0));
}

TEST_F(OffloadQueue, AnUpdateSendsLittleMoreThanWhatChanged) {
  make(
      "Idle -> first :: Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 1.1.1.1 0)"
      " -> q :: Queue -> Discard; rt[1] -> c :: Counter -> cap :: Capture;",
      options(Mode::kDevice));
  ASSERT_TRUE(r().write("rt.add", "10.0.0.0/8 1.1.1.1 1")) << r().errors();
  ASSERT_TRUE(r().write("rt.add", "10.0.0.0/9 1.1.1.1 0")) << r().errors();
  const int allocations = device().allocations;
  size_t sent = device().sent_bytes;
  ASSERT_TRUE(r().write("q.capacity", "50")) << r().errors();
  ASSERT_TRUE(r().write("c.reset", "")) << r().errors();
  EXPECT_EQ(device().sent_bytes, sent) << "nothing that devices have has changed";
  ASSERT_TRUE(r().write("rt.add", "10.1.2.0/24 1.1.1.1 1")) << r().errors();
  EXPECT_GT(device().sent_bytes, sent);
  // That update also brought its generation the /9, half of the table. This one lacks two /24.
  sent = device().sent_bytes;
  ASSERT_TRUE(r().write("rt.add", "10.1.3.0/24 1.1.1.1 1")) << r().errors();
  EXPECT_LT(device().sent_bytes - sent, 4000u);
  EXPECT_EQ(device().allocations, allocations);
  // Each of these routes has a new next hop.
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(r().write("rt.add", fmt::format("10.1.{}.0/24 1.1.2.{} 1", i + 4, i))) << r().errors();
  EXPECT_LT(device().allocations - allocations, 40) << "arrays grow by half";
}

TEST_F(OffloadQueue, ADeviceThatWaitsForJobsKeepsNoOtherWaiting) {
  // An update gives up on the held jobs after half a second, which may pass on a busy machine before we look.
  bool side_by_side = false;
  for (int attempt = 0; attempt < 5 && !side_by_side; ++attempt) {
    router_.reset();
    next_.clear();
    make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;",
         options(Mode::kDevice, 4, 4), 2);
    device(0).hold = true;
    for (const char* value : {"1", "2", "3"}) {
      // Each job keeps a state of the tables.
      ASSERT_TRUE(r().write("t.set", value)) << r().errors();
      send(1, 4);
    }
    Element* t = nullptr;
    Errors errors;
    const Handler* const set = r().router().find_handler("t.set", nullptr, t, errors);
    ASSERT_NE(set, nullptr);
    ASSERT_TRUE(set->write("4", errors)) << errors.str();
    const size_t before = device(1).sent_bytes;
    std::thread updating([&] { (void)r().router().engine()->update(true, errors); });
    while (device(1).sent_bytes == before) std::this_thread::yield();
    side_by_side = !hung(0) && !failed(0);
    device(0).hold = false;
    updating.join();
    r().router().drain();
    expect_all_in_order();
  }
  EXPECT_TRUE(side_by_side);
}

TEST_F(OffloadQueue, AnOpenJobDoesNotGoToADeviceWithOldTables) {
  make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;",
       options(Mode::kDevice, 8, 4), 2);
  ASSERT_TRUE(r().write("t.set", "1"));
  send(1, 3);
  device(0).refuse = true;
  EXPECT_FALSE(r().write("t.set", "2"));
  EXPECT_TRUE(failed(0));
  send(1, 3);
  r().router().drain();
  expect_all_in_order();
  for (const Capture::Seen& s : seen()) EXPECT_EQ(s.packet->anno_u8(anno_offset::kPaint), 2);
  EXPECT_EQ(device(0).submitted, 0);
  send(1, 3);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(device(1).slots, 3);
}

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

// --- Several devices

TEST_F(OffloadQueue, ASlowDeviceHoldsOnlyItsFlows) {
  make(kChain, options(Mode::kDevice, 4, 4), 2);
  device(0).hold = true;
  send(1, 8);
  queue().tuning(0).device = 1;
  send(2, 8);
  EXPECT_EQ(device(1).submitted, 2) << "nothing of this flow is on the slow device";
  send(1, 4);
  EXPECT_EQ(device(0).submitted, 3) << "this flow stays";
  while (came(2) < 8) poll(r());
  // More of the slow flow than the slow device takes rests no source while they are few.
  send(1, 8);
  EXPECT_EQ(device(0).submitted, 4);
  EXPECT_EQ(queue().closed_gates(), 0u);
  send(3, 4);
  while (came(3) < 4) poll(r());
  EXPECT_EQ(came(1), 0u);
  send(1, 20);
  EXPECT_NE(queue().closed_gates(), 0u) << "they are many";
  device(0).hold = false;
  r().router().drain();
  EXPECT_EQ(queue().closed_gates(), 0u);
  expect_all_in_order();
  send(1, 4);
  EXPECT_EQ(device(1).slots, 16) << "now the flow goes where the others go";
  EXPECT_EQ(device(0).slots, 40);
  EXPECT_EQ(count(offload::kCpuPackets), 0u);
  r().router().drain();
}

TEST_F(OffloadQueue, ParkedPacketsGoToTheNewDevice) {
  make(kChain, options(Mode::kDevice, 4, 2), 2);
  device(0).hold = true;
  send(1, 8);
  send(2, 3);
  send(1, 3);
  send(3, 3);
  EXPECT_NE(queue().closed_gates(), 0u);
  queue().tuning(0).device = 1;
  while (came(2) + came(3) < 6) poll(r());
  EXPECT_EQ(came(1), 0u);
  EXPECT_EQ(device(1).slots, 6);
  EXPECT_EQ(queue().closed_gates(), 0u);
  device(0).hold = false;
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(device(0).slots, 11);
}

TEST_F(OffloadQueue, AnyWayBetweenDevicesKeepsOrder) {
  // Random flows, devices that stop and go on, hang and come back, and changes of device and mode.
  std::mt19937 random(5);
  const char* const modes[] = {"device", "device", "fixed=1", "fixed=0.5", "cpu"};
  for (int round = 0; round < 60; ++round) {
    router_.reset();
    next_.clear();
    const int devices = 2 + round % 2;
    OffloadOptions o = options(Mode::kDevice, 1 + static_cast<int>(random() % 8), 1 + static_cast<int>(random() % 4));
    if (round % 3 == 0) o.deadline_ms = 1;
    make(kChain, o, devices);
    for (int step = 0; step < 200; ++step) {
      const auto d = static_cast<int>(random() % static_cast<unsigned>(devices));
      switch (random() % 12) {
        case 0:
          queue().tuning(0).device = d;
          break;
        case 1:
          device(d).hold = !device(d).hold;
          break;
        case 2:
          set_mode(modes[random() % 5]);
          break;
        case 3:
          if (round % 4 == 1 && random() % 8 == 0) device(d).fail_from = device(d).submitted.load();
          break;
        case 4:
        case 5:
          poll(r());
          break;
        default:
          send(1 + static_cast<uint32_t>(random() % 8), 1 + static_cast<int>(random() % 20));
      }
    }
    for (int d = 0; d < devices; ++d) device(d).hold = false;
    r().router().drain();
    expect_all_in_order();
    EXPECT_EQ(queue().closed_gates(), 0u);
    for (int d = 0; d < devices; ++d) EXPECT_EQ(device(d).reused, 0);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST_F(OffloadQueue, WorkersOfADeviceThatFailsSpreadOverTheOthers) {
  make(kChain, options(Mode::kDevice, 4, 4), 3, 6);
  const auto of_workers = [&] {
    std::vector<int> all;
    for (int w = 0; w < 6; ++w) all.push_back(r().router().engine()->queue(w).device_for(0));
    return all;
  };
  EXPECT_EQ(of_workers(), (std::vector<int>{0, 1, 2, 0, 1, 2}));
  device(0).fail_from = 0;
  send(1, 4);
  r().router().drain();
  expect_all_in_order();
  // They get lanes there at the next occasion.
  r().write("offload_mode", "device");
  EXPECT_EQ(of_workers(), (std::vector<int>{1, 1, 2, 2, 1, 2}));
}

// --- Lanes

TEST_F(OffloadQueue, ALaneIsOpenedWhenAWorkerNeedsIt) {
  make(kChain, options(Mode::kDevice, 4, 4), 2, 4);
  EXPECT_EQ(device(0).lanes, 2);
  EXPECT_EQ(device(1).lanes, 2);
  r().write("offload_tuning", "worker=0 device=1");
  EXPECT_EQ(device(0).lanes, 2);
  EXPECT_EQ(device(1).lanes, 3);
  EXPECT_EQ(r().router().engine()->queue(0).device_for(0), 1);
  send(1, 8);
  EXPECT_EQ(device(0).submitted, 0);
  EXPECT_EQ(device(1).submitted, 2);
  r().router().drain();
  expect_all_in_order();
}

TEST_F(OffloadQueue, WithoutMemoryForALaneAWorkerStaysWhereItIs) {
  make(kChain, options(Mode::kDevice, 4, 4), 2, 2);
  device(1).no_lanes = true;
  r().write("offload_tuning", "worker=0 device=1");
  EXPECT_EQ(device(1).lanes, 1);
  EXPECT_EQ(r().router().engine()->queue(0).device_for(0), 0);
  EXPECT_EQ(r().router().engine()->queue(0).wanted_lane(), -1);
  send(1, 8);
  poll(r());
  EXPECT_EQ(device(0).submitted, 2);
  r().router().drain();
  expect_all_in_order();
}

// --- Failure

TEST_F(OffloadQueue, ADeviceThatFailsAtAnyJob) {
  for (const bool under_way : {false, true}) {
    for (int job = 0; job < 8; ++job) {
      for (const Mode mode : {Mode::kDevice, Mode::kFixed}) {
        router_.reset();
        next_.clear();
        make(kChain, options(mode, 4, 4));
        device().hold = under_way;
        if (!under_way) device().fail_from = job;
        for (int i = 0; i < 16; ++i) {
          if (under_way && i == job / 2) {
            device().fail_from = job / 2;
            device().hold = false;
          }
          send(1 + static_cast<uint32_t>(i) % 3, 3);
          if (i % 2 == 0) poll(r());
        }
        r().router().drain();
        expect_all_in_order();
        EXPECT_TRUE(failed(0));
        EXPECT_EQ(r().read("n.count"), "48");
        EXPECT_GT(count(offload::kFailedJobs), 0u);
        const int before = device().submitted;
        send(1, 20);
        EXPECT_EQ(device().submitted, before) << "a failed device gets nothing";
        r().router().drain();
        expect_all_in_order();
        if (HasFailure()) FAIL() << "failed at job " << job << (under_way ? ", under way" : "");
      }
    }
  }
}

TEST_F(OffloadQueue, TheOtherDeviceGoesOn) {
  make(kChain, options(Mode::kDevice, 4, 4), 2);
  device(0).hold = true;
  send(1, 8);
  EXPECT_EQ(device(0).submitted, 2);
  device(0).fail_from = 1;
  device(0).hold = false;
  send(1, 8);
  send(2, 8);
  r().router().drain();
  expect_all_in_order();
  EXPECT_TRUE(failed(0));
  EXPECT_FALSE(failed(1));
  EXPECT_GT(device(1).submitted, 0);
  send(3, 8);
  r().router().drain();
  EXPECT_EQ(device(1).slots + device(0).slots, 28) << "all but the job that was refused";
  // Tables go on reaching the device that is left.
  ASSERT_TRUE(r().write("n.reset", ""));
  send(3, 8);
  r().router().drain();
  expect_all_in_order();
  EXPECT_FALSE(failed(1));
  EXPECT_EQ(r().read("n.count"), "8");
}

// --- Deadlines

TEST_F(OffloadQueue, ALateJobRunsOnTheCpuAndItsPlaceRests) {
  OffloadOptions o = options(Mode::kDevice, 4, 2);
  o.deadline_ms = 10;
  make(kChain, o);
  device().lose = 0;
  send(1, 8);
  r().router().drain();  // returns although the first job is lost
  expect_all_in_order();
  EXPECT_EQ(count(offload::kLateJobs), 1u);
  EXPECT_EQ(count(offload::kJobs), 1u);
  EXPECT_EQ(r().read("n.count"), "8");
  EXPECT_FALSE(failed(0));
  // One place is left.
  device().hold = true;
  set_mode("fixed=1");
  send(1, 4);
  send(2, 4);
  EXPECT_EQ(count(offload::kFullLane), 4u);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  // The late result is not counted; its place is free again.
  device().found = true;
  poll(r());
  EXPECT_EQ(r().read("n.count"), "16");
  device().hold = true;
  send(1, 4);
  send(2, 4);
  EXPECT_EQ(count(offload::kFullLane), 4u);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("n.count"), "24");
}

TEST_F(OffloadQueue, WhenEveryPlaceRestsTheCpuDoesTheWork) {
  OffloadOptions o = options(Mode::kDevice, 4, 1);
  o.deadline_ms = 5;
  make(kChain, o);
  device().lose = 0;
  send(1, 20);  // waits for the deadline, not for ever
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(count(offload::kLateJobs), 1u);
  EXPECT_EQ(device().submitted, 1);
}

TEST_F(OffloadQueue, ADeviceThatHangsIsGivenUp) {
  OffloadOptions o = options(Mode::kDevice, 4, 2);
  o.deadline_ms = 5;
  make(kChain, o, 2);
  device(0).hold = true;
  send(1, 100);
  while (device(1).submitted == 0) poll(r());  // the other device works
  for (int i = 0; i < 5000 && !hung(0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    poll(r());
  }
  EXPECT_TRUE(hung(0));
  EXPECT_FALSE(hung(1));
  r().router().drain();
  expect_all_in_order();
  // Nobody waits for it any more.
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(r().write("n.reset", "")) << r().errors();
  }
  send(1, 20);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("n.count"), "20");
}

TEST_F(OffloadQueue, ADeviceThatWasSlowForAWhileIsUsedAgain) {
  OffloadOptions o = options(Mode::kDevice, 4, 2);
  o.deadline_ms = 5;
  make(kChain, o, 2);
  device(0).hold = true;
  send(1, 20);
  r().router().drain();
  device(0).hold = false;
  poll(r());
  const int before = device(0).submitted;
  send(1, 20);
  r().router().drain();
  expect_all_in_order();
  EXPECT_GT(device(0).submitted, before);
  EXPECT_FALSE(failed(0));
}

TEST_F(OffloadQueue, ADeviceThatHungIsUsedAgainWithNewTables) {
  OffloadOptions o = options(Mode::kDevice, 4, 2);
  o.deadline_ms = 5;
  make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;", o, 2);
  ASSERT_TRUE(r().write("t.set", "1"));
  device(0).hold = true;
  send(1, 8);
  const int64_t begin = now_ns();
  while (!hung(0) && now_ns() - begin < 20'000'000'000) poll(r());
  ASSERT_TRUE(hung(0));
  ASSERT_TRUE(r().write("t.set", "2")) << r().errors();
  ASSERT_TRUE(r().write("t.set", "3")) << r().errors();
  send(2, 8);
  r().router().drain();
  EXPECT_EQ(device(0).submitted, 2);
  EXPECT_EQ(device(1).slots, 8);
  device(0).hold = false;
  while (is(0, "hung") && now_ns() - begin < 40'000'000'000) {
    poll(r());
    // The worker's task does this.
    ASSERT_TRUE(r().write("t.set", "3")) << r().errors();
  }
  EXPECT_FALSE(hung(0));
  send(3, 8);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(device(0).submitted, 4);
  EXPECT_EQ(device(1).slots, 8);
  for (const Capture::Seen& s : seen()) {
    EXPECT_EQ(s.port, 0) << "the tables do not agree";
    EXPECT_EQ(s.packet->anno_u8(anno_offset::kPaint), s.packet->anno_u32(kFlowAnno) == 1 ? 1 : 3);
  }
}

TEST_F(OffloadQueue, ARouterThatGoesTakesItsPacketsAlong) {
  make(kChain, options(Mode::kFixed));
  device().hold = true;
  send(1, 11);
  set_mode("cpu");
  send(1, 5);
  // TearDown counts the packets.
}

}  // namespace
}  // namespace headrace::testing
