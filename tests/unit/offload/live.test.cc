// Routers at work, on threads of their own: modes and tables change while packets of many flows stream.

#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <utility>
#include <variant>

#include "live_fixture.hh"

namespace headrace::testing {
namespace {

using Mode = OffloadOptions::Mode;

HEADRACE_OFFLOAD_CARRIERS(OffloadLive);

/// A worker whose device takes no more goes on with everything else.
TEST_P(OffloadLive, AFullDeviceStopsOnlyItsSources) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that can be held";
  OffloadOptions o = options();
  o.job = 64;
  const auto r = live(forwarder("RARE 0, LIMIT 200000, STOP true") + R"(
InfiniteSource(LENGTH 64, LIMIT -1, BURST 1) -> others :: Discard;
TimedSource(0.001) -> ticks :: Discard;
)",
                      o);
  ASSERT_TRUE(r->ok());
  DeviceControls& device = (*devices_)[0];
  device.hold = true;
  const auto number = [&r](const char* handler) { return std::strtoull(r->read(handler).c_str(), nullptr, 10); };
  const int64_t begin = milliseconds();
  uint64_t sent = 0, others = 0, ticks = 0;
  int phase = 0;
  r->run([&] {
    const int64_t now = milliseconds() - begin;
    if (phase == 0 && (number("others.count") > 0 && r->engine()->event(offload::kWaits) == kWorkers)) {
      phase = 1;
      sent = source_->sent(), others = number("others.count"), ticks = number("ticks.count");
    } else if (phase == 1 && number("others.count") > others + 1000 && number("ticks.count") > ticks + 10) {
      phase = 2;
      EXPECT_EQ(source_->sent(), sent) << "the sources rest";
      const int64_t before = milliseconds();
      EXPECT_TRUE(r->write("offload_mode", "device")) << r->errors();
      EXPECT_LT(milliseconds() - before, 5000) << "a handler waits for no job";
      device.hold = false;
    }
    return now < 60000;
  });
  EXPECT_EQ(phase, 2);
  expect_everything_came();
}

/// Packets for the CPU that wait for others of their flows on a slow device do not take all buffers.
TEST_P(OffloadLive, ASlowDeviceLeavesBuffersWhereFlowsAreDivided) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that can be held";
  OffloadOptions o = options(Mode::kFixed);
  o.fraction = 0.5;
  o.job = 64;
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  DeviceControls& device = (*devices_)[0];
  device.hold = true;
  const int64_t begin = milliseconds();
  bool rested = false;
  r->run([&] {
    if (!rested && r->engine()->event(offload::kWaits) == kWorkers) {
      rested = true;
      EXPECT_LT(PacketPool::instance().in_use(), PacketPool::kDefaultBuffers / 2);
      device.hold = false;
    }
    return milliseconds() - begin < (rested ? 300 : 60000);
  });
  EXPECT_TRUE(rested);
  expect_everything_came();
}

TEST_P(OffloadLive, StopsWithNothingUnderWay) {
  OffloadOptions o = options();
  o.reference.delay_us = 300;
  o.job = 64;
  for (const int limit : {1, 37, 20000}) {
    const auto r = live(forwarder(fmt::format("LIMIT {}, STOP true, RARE 50", limit)), o);
    ASSERT_TRUE(r->ok());
    // The control thread notices at once what a sleeping worker would notice late.
    r->run([&] { return r->router().run_count() > 0; });
    expect_everything_came();
    EXPECT_EQ(source_->sent(), static_cast<uint64_t>(kWorkers * limit));
    EXPECT_EQ(r->read("n.count"), std::to_string(kWorkers * limit));
    for (int w = 0; r->engine() && w < kWorkers; ++w) EXPECT_TRUE(r->engine()->queue(w).idle());
  }
}

/// Lanes are full, packets are parked, and the device does not answer: all packets leave on the CPU all the same.
TEST_P(OffloadLive, StopsWithPacketsParked) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that can be held";
  OffloadOptions o = options();
  o.job = 64;
  o.deadline_ms = 50;
  const auto r = live(forwarder("RARE 50"), o);
  ASSERT_TRUE(r->ok());
  (*devices_)[0].hold = true;
  const int64_t end = milliseconds() + 60000;
  r->run([&] { return r->engine()->event(offload::kWaits) < kWorkers && milliseconds() < end; });
  EXPECT_GE(r->engine()->event(offload::kWaits), uint64_t{kWorkers});
  expect_everything_came();
  EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
  for (int w = 0; w < kWorkers; ++w) EXPECT_TRUE(r->engine()->queue(w).idle());
}

TEST_P(OffloadLive, ModesChangeWhilePacketsStream) {
  OffloadOptions o = options(Mode::kFixed);
  o.fraction = 0.5;
  o.reference.delay_us = 200;
  o.job = 32;
  const auto r = live(
      "src :: FlowSource(RARE 40) -> o :: Offload -> Strip(14) -> CheckIPHeader -> n :: Counter"
      " -> IPGWOptions(10.0.0.1) -> IPFragmenter(100) -> sink :: FlowSink;",
      o);
  ASSERT_TRUE(r->ok());
  const char* const modes[] = {"cpu", "fixed=0.5", "device", "fixed=0.9", "auto", "fixed=0.1", "cpu", "device"};
  const int64_t begin = milliseconds();
  int writes = 0;
  r->run([&] {
    if (!on_cpu()) {
      const bool here = writes % 3 == 0;
      EXPECT_TRUE(r->write(here ? "o.mode" : "offload_mode", modes[writes % 8]));
      ++writes;
    }
    // On a busy machine until enough has happened.
    const int64_t time = milliseconds() - begin;
    return time < 400 || (!on_cpu() && writes < 24 && time < 20000);
  });
  expect_everything_came();
  EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
  if (on_cpu()) return;
  EXPECT_GT(writes, 16);
  EXPECT_GT(r->engine()->event(offload::kJobPackets), 0u);
  EXPECT_GT(r->engine()->event(offload::kCpuPackets), 0u);
  EXPECT_EQ(r->engine()->event(offload::kJobPackets) + r->engine()->event(offload::kCpuPackets), source_->sent());
  EXPECT_EQ(r->engine()->event(offload::kLateJobs), 0u);
}

TEST_P(OffloadLive, RoutesChangeWhilePacketsStream) {
  OffloadOptions o = options(Mode::kDevice);
  o.reference.delay_us = 100;
  o.job = 64;
  const auto r = live(forwarder("FLOWS 50", "0.0.0.0/7 0, 1.0.0.0/8 0"), o);
  ASSERT_TRUE(r->ok());
  std::vector<std::atomic<int>> ports(10000);
  std::atomic<uint32_t> epoch{0};
  sink_->expect_ports(&ports, &epoch);
  const int64_t begin = milliseconds();
  std::mt19937 random(3);
  int route_count = 2;
  r->run([&] {
    const uint32_t e = epoch.load() + 1;
    const int port = static_cast<int>(random() % 3);
    ports[e].store(port);
    epoch.store(e);  // from now on its port is right too
    bool ok = true;
    switch (on_cpu() ? 2 : random() % 3) {
      case 0:
        ok = r->write("rt.set", fmt::format("1.0.0.0/8 {}", port));
        break;
      case 1:  // several changes by one handler
        ok = r->write("rt.ctrl", fmt::format("remove 1.0.0.0/8\nset 0.0.0.0/7 {0}\nadd 1.0.0.0/8 {0}", port));
        break;
      default:  // tables get larger meanwhile
        ok = r->write("rt.add", fmt::format("2.{}.{}.0/24 1", route_count / 250, route_count % 250));
        ++route_count;
        ok &= r->write("rt.set", fmt::format("1.0.0.0/8 {}", port));
    }
    EXPECT_TRUE(ok) << r->errors();
    source_->set_epoch(e);  // what is sent now must go there, or where later epochs say
    const int64_t time = milliseconds() - begin;
    return (time < 500 || (e < 20 && time < 120000)) && e + 2 < ports.size();
  });
  expect_everything_came();
  EXPECT_GT(epoch.load(), 10u);
  if (on_cpu()) return;
  EXPECT_EQ(r->engine()->describe().find("failed"), std::string::npos) << r->engine()->describe();
}

TEST_P(OffloadLive, TwoDevices) {
  if (!has_controls()) GTEST_SKIP() << "needs devices that fail when told";
  TestDevices& two = devices(2);
  OffloadOptions o = options(Mode::kDevice);
  o.reference.delay_us = 100;
  o.job = 32;
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  const int64_t begin = milliseconds();
  r->run([&] {
    // Amid the jobs of all workers.
    if (milliseconds() - begin > 150 && two[0].fail_from < 0) two[0].fail_from = two[0].submitted + 5;
    return milliseconds() - begin < 300;
  });
  expect_everything_came();
  EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
  EXPECT_GT(two[0].submitted, 0);
  EXPECT_GT(two[1].submitted, 0);
  EXPECT_EQ(two[0].reused + two[1].reused, 0);
  EXPECT_NE(r->engine()->describe().find("device 0: failed"), std::string::npos);
  EXPECT_EQ(r->engine()->describe().find("device 1: failed"), std::string::npos);
}

/// Its worker has nothing else to do when the device answers at last.
TEST_P(OffloadLive, ALateJobOfAWorkerWithoutTrafficDoesNotHoldUpdatesBack) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that loses a job";
  (*devices_)[0].lose = 0;
  OffloadOptions o = options(Mode::kDevice);
  o.deadline_ms = 5;
  const auto r = live(forwarder("LIMIT 10"), o);
  ASSERT_TRUE(r->ok());
  const int64_t begin = milliseconds();
  r->run([&] {
    if (sink_->received() < 10 * kWorkers && milliseconds() - begin < 20000) return true;
    (*devices_)[0].found = true;
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(r->write("rt.set", "1.0.0.0/8 0")) << r->errors();
    }
    return false;
  });
  // On a busy machine others are late, too.
  EXPECT_GE(r->engine()->event(offload::kLateJobs), 1u);
  EXPECT_EQ(r->engine()->describe().find("failed"), std::string::npos) << r->engine()->describe();
  expect_everything_came();
}

TEST_P(OffloadLive, ADeviceThatHangsForAWhileIsUsedAgain) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that hangs when told";
  OffloadOptions o = options(Mode::kDevice);
  o.deadline_ms = 5;
  o.reference.hang_at = 20;
  o.reference.hang_ms = 150;
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  const int64_t end = milliseconds() + 20000;
  bool hung = false;
  uint64_t before = 0;
  r->run([&] {
    const bool hangs = r->engine()->describe().find("device 0: hung") != std::string::npos;
    if (hangs) {
      hung = true;
      before = r->engine()->event(offload::kJobs);
      // It has to be brought up to date.
      r->write("rt.set", "1.0.0.0/8 0");
    }
    return milliseconds() < end && !(hung && !hangs && r->engine()->event(offload::kJobs) > before + 20);
  });
  EXPECT_TRUE(hung);
  EXPECT_GT(r->engine()->event(offload::kJobs), before + 20);
  EXPECT_EQ((*devices_)[0].reused, 0);
  expect_everything_came();
  EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
}

/// The handler says so, and the router goes on with the CPU and the new routes.
TEST_P(OffloadLive, TablesThatOutgrowADevice) {
  if (!emulated()) GTEST_SKIP() << "needs a device with little memory";
  OffloadOptions o = options(Mode::kDevice);
  o.job = 64;
  o.reference.memory_mb = 72;  // two generations of the first level of a table take 67 of them
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  const int64_t end = milliseconds() + 60000;
  bool refused = false;
  int routes = 0;
  uint64_t received = 0;
  r->run([&] {
    if (!refused) {
      std::string changes;
      for (int i = 0; i < 500; ++i, ++routes)
        changes += fmt::format("add 9.{}.{}.1/32 1\n", routes / 256, routes % 256);
      refused = !r->write("rt.ctrl", changes);
      received = sink_->received();
    }
    return milliseconds() < end && routes < 65000 && !(refused && sink_->received() > received + 2000);
  });
  EXPECT_TRUE(refused) << routes << " routes";
  EXPECT_NE(r->errors().find("device memory does not suffice: "), std::string::npos) << r->errors();
  EXPECT_NE(r->engine()->describe().find("device 0: failed"), std::string::npos) << r->engine()->describe();
  EXPECT_NE(r->read("rt.table").find("9.0.0.1"), std::string::npos) << "the handler's change holds all the same";
  expect_everything_came();
  EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
}

/// Each handler waits until its change is in force, and the packets do not wait for the handlers.
TEST_P(OffloadLive, UpdatesFasterThanADeviceTakesThem) {
  if (!emulated()) GTEST_SKIP() << "needs a device that is slow when told";
  OffloadOptions o = options(Mode::kDevice);
  o.job = 64;
  o.reference.delay_us = 3000;
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  std::vector<std::atomic<int>> ports(10000);
  std::atomic<uint32_t> epoch{0};
  sink_->expect_ports(&ports, &epoch);
  const int64_t begin = milliseconds();
  int64_t longest = 0;
  r->run([&] {
    for (int i = 0; i < 20; ++i) {
      const uint32_t e = epoch.load() + 1;
      ports[e].store(static_cast<int>(e % 3));
      epoch.store(e);
      const int64_t before = milliseconds();
      EXPECT_TRUE(r->write("rt.set", fmt::format("1.0.0.0/8 {}", e % 3))) << r->errors();
      longest = std::max(longest, milliseconds() - before);
      source_->set_epoch(e);
    }
    return (milliseconds() - begin < 400 || sink_->received() < 1000) && epoch.load() + 25 < ports.size();
  });
  EXPECT_GE(epoch.load(), 20u);
  EXPECT_LT(longest, 5000);
  EXPECT_EQ(r->engine()->describe().find("failed"), std::string::npos) << r->engine()->describe();
  expect_everything_came();
}

TEST_P(OffloadLive, AJobThatNeverComesBackOnEachOfTwoDevices) {
  if (!has_controls()) GTEST_SKIP() << "needs devices that lose a job";
  TestDevices& two = devices(2);
  OffloadOptions o = options(Mode::kDevice);
  o.job = 32;
  o.deadline_ms = 20;
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  two[0].lose = 7;
  two[1].lose = 3;
  const int64_t end = milliseconds() + 20000;
  int updates = 0;
  r->run([&] {
    // Their tables are in use for ever.
    if (++updates % 10 == 0) {
      EXPECT_TRUE(r->write("rt.set", "1.0.0.0/8 0")) << r->errors();
    }
    return milliseconds() < end && (updates < 300 || two[0].submitted < 100 || two[1].submitted < 100 ||
                                    r->engine()->event(offload::kLateJobs) < 2);
  });
  EXPECT_GE(r->engine()->event(offload::kLateJobs), 2u);
  EXPECT_GE(two[0].submitted, 100);
  EXPECT_GE(two[1].submitted, 100);
  EXPECT_EQ(two[0].reused + two[1].reused, 0);
  EXPECT_EQ(r->engine()->describe().find("failed"), std::string::npos) << r->engine()->describe();
  expect_everything_came();
  EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
}

/// What the machine has, or two: every worker uses the one it was given, and all packets come back in order.
TEST_P(OffloadLive, AllDevices) {
  if (on_cpu()) GTEST_SKIP() << "the CPU is no device";
  if (has_controls()) devices(2);
  OffloadOptions o = options(Mode::kDevice);
  o.devices = 0;
  o.job = 64;
  const auto r = live(forwarder("RARE 30"), o);
  ASSERT_TRUE(r->ok());
  const std::string about = r->engine()->describe();
  if (about.find("device 1:") == std::string::npos) GTEST_SKIP() << "there is one device only";
  const int64_t begin = milliseconds();
  int updates = 0;
  r->run([&] {
    if (++updates % 20 == 0) {
      EXPECT_TRUE(r->write("rt.set", "1.0.0.0/8 0"));
    }
    return milliseconds() - begin < 300;
  });
  expect_everything_came();
  EXPECT_NE(about.find("first for workers: 0"), std::string::npos) << about;
  EXPECT_EQ(about.find("first for workers: none"), std::string::npos) << about;
  EXPECT_EQ(r->engine()->describe().find("failed"), std::string::npos);
}

/// Configurations follow one another while packets are on the device: none is lost, doubled or out of order.
TEST_P(OffloadLive, HotSwap) {
  // Only one of them with a route table, which takes ThreadSanitizer seconds to fill.
  const auto by_rules = [](const char* source, const char* rules) {
    std::string text = forwarder(source);
    const std::string lookup = "RadixIPLookup(1.0.0.0/8 0)";
    return text.replace(text.find(lookup), lookup.size(), fmt::format("IPClassifier({})", rules));
  };
  // With all packets or some on a device; beside a worker that sleeps; with jobs that are late, on two devices.
  for (const int variant : {0, 1, 2, 3}) {
    const char* const source = variant == 2 ? "RARE 30, WORKERS 2" : "RARE 30";
    const std::string first = forwarder(source);
    std::string second = by_rules(source, "dst net 1.0.0.0/8, tcp, -");
    second.replace(second.find("n :: Counter"), 12, "p :: Paint(7)");
    const std::string third = by_rules(source, "tcp, dst net 1.0.0.0/8, -");
    OffloadOptions o = options(variant == 1 ? Mode::kFixed : Mode::kDevice);
    o.fraction = 0.5;
    o.reference.delay_us = 50;
    o.job = 64;
    if (variant == 3) {
      if (!has_controls()) break;
      devices(2);
      o.devices = 2;
      o.deadline_ms = 5;
      o.reference.late_every = 20;
      o.reference.late_ms = 30;
    }
    const auto r = live(first, o);
    ASSERT_TRUE(r->ok());
    int swaps = 0;
    r->run([&] {
      const std::string* const all[] = {&second, &third, &first};
      EXPECT_TRUE(r->swap(*all[swaps % 3])) << r->errors();
      return ++swaps < 9;
    });
    find_ends(*r);
    std::string drops;
    for (const Router::Drop& d : r->router().drops())
      drops += fmt::format("\n{} dropped {}: {}", d.element, d.packets, d.reason);
    SCOPED_TRACE(fmt::format("variant {}{}\n{}", variant, drops, r->read("offload_counts")));
    expect_everything_came();
  }
}

/// Everything at once: packets and jobs of random sizes, rewritten twice, delays, lost jobs, deadlines, devices that hang
/// for a while or for ever, or fail, modes, devices and tables that change, swaps. HEADRACE_STRESS_PACKETS makes it long:
/// so many have to pass.
TEST_P(OffloadLive, Stress) {
  const char* const wanted = std::getenv("HEADRACE_STRESS_PACKETS");
  const double packets = wanted ? std::atof(wanted) : 0;
  const int64_t round_ms = wanted ? 3000 : 300;
  std::mt19937 random(wanted ? std::random_device()() : 17);
  const int64_t end = milliseconds() + 1200;
  double passed = 0;
  int rounds = 0;
  uint64_t swaps = 0, late = 0, failed = 0;
  while (wanted ? passed < packets : milliseconds() < end) {
    constexpr Mode kModes[] = {Mode::kDevice, Mode::kFixed, Mode::kAuto};
    OffloadOptions o = options(kModes[random() % 3]);
    o.fraction = 0.7;
    constexpr const char* kBalancers[] = {"Model",    "QueueLength", "HillClimb", "DeviceOnly",
                                          "FlipsAll", "Rubbish",     "Slow",      "FlipsRun"};
    o.balancer = kBalancers[random() % 8];
    o.wait_for_devices = random() % 2;
    o.job = 1 + static_cast<int>(random() % 300);
    o.jobs = 1 + static_cast<int>(random() % 8);
    o.max_wait_us = static_cast<int>(random() % 200);
    o.reference.delay_us = static_cast<int>(random() % 400);
    constexpr OffloadOptions::Run kRuns[] = {OffloadOptions::Run::kAuto, OffloadOptions::Run::kResident,
                                             OffloadOptions::Run::kStream};
    o.run = kRuns[random() % 3];
    if (has_controls()) {
      o.devices = 1 + static_cast<int>(random() % 2);
      devices(o.devices);
      o.reference.threads = 1 + static_cast<int>(random() % 3);
      o.reference.gbps = random() % 3 ? 0 : 1;
      const bool any = random() % 2;
      if (any) o.deadline_ms = 5;
      if (any) o.reference.late_every = 1 + random() % 100, o.reference.late_ms = 20;
      if (random() % 4 == 0) o.reference.fail_at = 1 + random() % 200;
      if (any && random() % 2) o.reference.hang_at = 1 + random() % 200, o.reference.hang_ms = random() % 2 ? 0 : 40;
    }
    const bool loses = has_controls() && random() % 2;
    if (loses) {
      o.deadline_ms = 5;
      (*devices_)[0].lose = (*devices_)[0].submitted + static_cast<int>(random() % 50);
      (*devices_)[0].found = false;
    }
    SCOPED_TRACE(fmt::format("job {}, {} jobs, wait {} us, {}, {} devices, {}", o.job, o.jobs, o.max_wait_us,
                             o.reference.text(), o.devices, o.mode_text()) +
                 " " + o.balancer);
    std::string text = forwarder(fmt::format("FLOWS {}, BURST {}, RARE {}, LONGEST {}", 1 + random() % 100,
                                             1 + random() % 128, 10 + random() % 100, 64 + random() % 1400));
    text.replace(text.find("IPFragmenter(100)"), 17, "IPFragmenter(1500)");
    if (random() % 2) {
      const std::string before = "2:2:2:2:2:2)";
      text.insert(text.find(before) + before.size(), " -> OffloadEcho(0x5a) -> OffloadEcho(0x5a)");
    }
    const auto r = live(text, o);
    ASSERT_TRUE(r->ok());
    const int64_t until = std::min(wanted ? INT64_MAX : end, milliseconds() + round_ms);
    int n = 0;
    bool swapped = false;
    r->run([&] {
      ++n;
      switch (random() % 5) {
        case 0:
          r->write("rt.set", fmt::format("1.0.0.0/8 {}", 0));
          break;
        case 1:
          r->write("rt.add", fmt::format("9.{}.{}.0/24 1", n / 250, n % 250));
          break;
        case 2:
          if (!on_cpu()) {
            constexpr const char* kTexts[] = {"fixed=0.5", "device", "cpu", "auto", "auto"};
            r->write("offload_mode", kTexts[random() % 5]);
          }
          break;
        case 3:
          if (r->engine() && o.devices == 2)
            r->write("offload_tuning", fmt::format("worker={} device={}", random() % kWorkers, random() % 2));
          break;
        default:
          if (random() % 16) break;
          late += r->engine() ? r->engine()->event(offload::kLateJobs) : 0;
          failed += r->engine() ? r->engine()->event(offload::kFailedJobs) : 0;
          EXPECT_TRUE(r->swap(text)) << r->errors();
          swapped = true;
          ++swaps;
      }
      if (loses && n == 40) (*devices_)[0].found = true;
      // On a busy machine the last round may be over before a worker has begun.
      return milliseconds() < until || r->router().first<FlowSource>()->sent() == 0;
    });
    find_ends(*r);
    expect_everything_came();
    if (!swapped) {
      EXPECT_EQ(r->read("n.count"), std::to_string(source_->sent()));
    }
    passed += static_cast<double>(sink_->received());
    ++rounds;
    late += r->engine() ? r->engine()->event(offload::kLateJobs) : 0;
    failed += r->engine() ? r->engine()->event(offload::kFailedJobs) : 0;
    if (has_controls()) {
      EXPECT_EQ((*devices_)[0].reused, 0);
      EXPECT_EQ((*devices_)[0].unhealthy_reads, 0);
    }
    if (HasFailure()) return;
  }
  if (wanted)
    fmt::print("{:.3g} packets in {} rounds, {} swaps, {} late jobs, {} failed ones\n", passed, rounds, swaps, late,
               failed);
}

}  // namespace
}  // namespace headrace::testing
