// A worker's jobs, step by step: several devices, failure, late jobs, deadlines.

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

TEST_F(OffloadQueue, ABalancerGetsLanesToAllDevices) {
  for (const char* const handler : {"offload_mode", "first.mode", "second.mode"}) {
    router_.reset();
    next_.clear();
    make(
        "Idle -> first :: Offload -> Strip(14) -> n :: Counter -> Paint(3) -> cap :: Capture; Idle -> second :: Offload -> n;",
        options(Mode::kDevice, 4, 4), 3, 4);
    EXPECT_EQ(device(0).lanes + device(1).lanes + device(2).lanes, 4);
    r().write(handler, "fixed=0.5");
    EXPECT_EQ(device(0).lanes + device(1).lanes + device(2).lanes, 4);
    r().write(handler, "auto");
    for (int d = 0; d < 3; ++d) EXPECT_EQ(device(d).lanes, 4) << d << " " << handler;
  }
}

TEST_F(OffloadQueue, WithoutMemoryForALaneAWorkerStaysWhereItIs) {
  make(kChain, options(Mode::kDevice, 4, 4), 2, 2);
  device(1).no_lanes = true;
  EXPECT_TRUE(r().write("offload_tuning", "worker=0 device=1"));
  EXPECT_EQ(r().errors(), "warning: device 1: no lanes for 1 worker (no memory for lanes)\n");
  EXPECT_EQ(device(1).lanes, 1);
  EXPECT_EQ(r().router().engine()->queue(0).device_for(0), 0);
  EXPECT_FALSE(r().router().engine()->queue(0).wants_lanes());
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
