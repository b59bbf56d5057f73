// A worker's jobs, step by step: order while buckets move, and where results and packets go. The test holds the
// devices' jobs back, so that nothing depends on time.

#include <fmt/format.h>

#include <random>

#include "flow_elements.hh"
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

TEST_F(OffloadQueue, BytesFillJobsOfPayloads) {
  const char* const scan = "Idle -> first :: OffloadScan(0x41) -> cap :: Capture; first[1] -> [1] cap;";
  struct Case {
    uint32_t length;
    uint64_t packets;  // of a full job
  };
  for (const Case c : {Case{64, 256}, Case{200, 164}, Case{512, 64}, Case{1500, 64}}) {
    SCOPED_TRACE(c.length);
    make(scan, options(Mode::kDevice, 0, 16));
    for (int i = 0; i < 16; ++i) send(1, 32, "first", c.length);
    r().router().drain();
    expect_all_in_order();
    EXPECT_EQ(count(offload::kJobs), (512 + c.packets - 1) / c.packets);
    router_.reset();
    next_.clear();
  }
  // Short packets and long ones: 100 of 64 bytes, and 27 of 1,000 fill a job.
  for (const int n : {27, 28}) {
    SCOPED_TRACE(n);
    make(scan, options(Mode::kDevice, 0, 16));
    send(1, 100);
    send(1, n, "first", 1000);
    r().router().drain();
    expect_all_in_order();
    EXPECT_EQ(count(offload::kJobs), static_cast<uint64_t>(n - 26));
    router_.reset();
    next_.clear();
  }
}

TEST_F(OffloadQueue, BytesDoNotFillJobsThatAUserChose) {
  make("Idle -> first :: OffloadScan(0x41) -> cap :: Capture; first[1] -> [1] cap;", options(Mode::kDevice, 200, 16));
  for (int i = 0; i < 16; ++i) send(1, 25, "first", 512);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(count(offload::kJobs), 2u);
}

TEST_F(OffloadQueue, BytesDoNotFillJobsOfHeaders) {
  make(kChain, options(Mode::kDevice, 0, 16));
  for (int i = 0; i < 16; ++i) send(1, 64, "first", 512);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(count(offload::kJobs), 1u);
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

}  // namespace
}  // namespace headrace::testing
