// One router takes over from another while packets pass: nothing is lost that is not counted, and state moves over.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "elements/standard/Queue.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "offload/engine.hh"
#include "runtime/runtime.hh"
#include "support/hang_guard.hh"
#include "support/test_router.hh"

namespace headrace {
namespace {

class HotSwap : public ::testing::Test {
 protected:
  void start(int threads, const std::string& text, OffloadOptions offload = {}) {
    options_.offload = offload;
    runtime_ = std::make_unique<Runtime>(Runtime::Options{.threads = threads, .cpus = {}, .control_thread = true});
    router_ = build(text, nullptr);
    ASSERT_TRUE(router_) << errors_.str();
  }
  std::unique_ptr<Router> build(const std::string& text, Router* predecessor) {
    lang::Configuration configuration;
    if (!lang::parse(text, "config", {}, configuration, errors_)) return nullptr;
    return Router::create(configuration, *runtime_, errors_, options_, predecessor);
  }
  /// On the control thread: `text` takes over.
  void swap(const std::string& text) {
    std::unique_ptr<Router> next = build(text, router_.get());
    ASSERT_TRUE(next) << errors_.str();
    (void)runtime_->replace(std::move(next));
  }
  /// Runs; `control` is called about every millisecond and returns false in the end.
  void run(const std::function<bool()>& control) { runtime_->run(router_, control, 1); }
  std::string read(const std::string& name) {
    Element* element = nullptr;
    std::string value;
    const size_t space = name.find(' ');
    const Handler* h = router_->find_handler(name.substr(0, space), nullptr, element, errors_);
    EXPECT_TRUE(h) << name;
    const std::string parameters = space == std::string::npos ? "" : name.substr(space + 1);
    if (h) (void)router_->call_read(*h, parameters, value, errors_);
    return value;
  }
  struct Account {
    uint64_t in = 0, out = 0, drops = 0;
  };
  Account account() const {
    Account a;
    for (const PortRecord& p : router_->ports())
      for (const PortTotals& t : p.of_thread) (p.direction == DevicePort::Direction::kIn ? a.in : a.out) += t.packets;
    for (const Router::Drop& d : router_->drops()) a.drops += d.packets;
    return a;
  }
  uint64_t queued() const {
    uint64_t n = 0;
    for (const auto& e : router_->elements()) n += e->held_packets();
    return n;
  }

  Errors errors_;
  RouterOptions options_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Router> router_;
};

constexpr const char* kSource = "TrafficSource(uniform, FLOWS 16384) -> ";

TEST_F(HotSwap, HundredSwapsUnderLoadAccountForEveryPacket) {
  const std::string one = std::string(kSource) + "CheckIPHeader(14) -> q :: Queue(500) -> Unqueue -> s :: TrafficSink;";
  const std::string two = std::string(kSource) + "c :: Counter -> q :: Queue(500) -> Unqueue -> s :: TrafficSink;";
  const std::string three = std::string(kSource) + "p :: Paint(3) -> r :: Queue(50) -> Unqueue -> s :: TrafficSink;";
  const uint32_t before = PacketPool::instance().in_use();
  start(2, one);
  int swaps = 0;
  run([&] {
    const std::string* const all[] = {&two, &one, &three};
    swap(*all[swaps % 3]);
    return ++swaps < 100;
  });
  EXPECT_EQ(runtime_->swaps().count, 100u);
  const Account a = account();
  EXPECT_GT(a.in, 100'000u);
  EXPECT_GT(a.out, 0u);
  EXPECT_EQ(a.in, a.out + a.drops + queued());
  router_.reset();
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST_F(HotSwap, JobsOnADeviceComeBackFirst) {
  OffloadOptions offload;
  offload.backend = "reference";
  offload.mode = OffloadOptions::Mode::kDevice;
  // Longer than a round, so that there are jobs to wait for.
  offload.reference.delay_us = 500;
  const auto text = [](int paint) {
    return std::string(kSource) + "Strip(14) -> CheckIPHeader -> Paint(" + std::to_string(paint) +
           ") -> DecIPTTL -> Unstrip(14) -> s :: TrafficSink;";
  };
  const uint32_t before = PacketPool::instance().in_use();
  start(2, text(1), offload);
  ASSERT_TRUE(router_->engine());
  int swaps = 0;
  run([&] {
    swap(text(swaps + 2));
    return ++swaps < 30;
  });
  const Account a = account();
  EXPECT_GT(a.out, 10'000u);
  EXPECT_EQ(a.in, a.out + a.drops);
  router_.reset();
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST_F(HotSwap, FlowsAreWholeWhileEverythingChanges) {
  const testing::HangGuard guard(300);
  OffloadOptions offload;
  offload.backend = "reference";
  offload.mode = OffloadOptions::Mode::kDevice;
  offload.reference.delay_us = 200;
  const std::string text =
      "source :: TrafficSource(zipf, FLOWS 4096, SEQUENCE true) -> Strip(14) -> check :: CheckIPHeader"
      " -> DecIPTTL -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> s :: TrafficSink(SEQUENCE true);";
  const uint32_t before = PacketPool::instance().in_use();
  start(2, text, offload);
  ASSERT_TRUE(router_->engine());
  const auto write = [&](const std::string& name, const std::string& value) {
    Element* element = nullptr;
    const Handler* h = router_->find_handler(name, nullptr, element, errors_);
    ASSERT_TRUE(h) << name;
    EXPECT_TRUE(router_->call_write(*h, value, errors_)) << errors_.str();
  };
  constexpr const char* kModes[] = {"cpu", "fixed=0.3", "device", "auto", "fixed=0.9"};
  constexpr const char* kLengths[] = {"64", "1514", "60", "512"};
  int rounds = 0;
  run([&] {
    write("offload_mode", kModes[rounds % 5]);
    write("source.length", kLengths[rounds % 4]);
    write("source.payload", rounds % 3 ? "text" : "random");
    write("source.rate", rounds % 7 ? "0" : "100000");
    if (rounds % 5 == 4) swap(text);
    return ++rounds < 60;
  });
  EXPECT_EQ(runtime_->swaps().count, 12u);
  const Account a = account();
  EXPECT_GT(a.out, 10'000u);
  EXPECT_EQ(a.in, a.out + a.drops);
  EXPECT_EQ(std::stoull(read("s.sequence_checked")), a.out);
  EXPECT_EQ(read("s.sequence_lost"), "0");
  EXPECT_EQ(read("s.sequence_doubled"), "0");
  EXPECT_EQ(read("s.sequence_reordered"), "0");
  EXPECT_EQ(read("source.length"), "512");
  router_.reset();
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

/// A worker in a handler waits until all others stand; the swap holds the one that sleeps. Both must go on.
TEST_F(HotSwap, WhileAScriptWritesHandlersAndAWorkerSleeps) {
  const testing::HangGuard guard(120);
  const std::string text =
      "Idle -> c :: Counter -> Discard; Script(label x, write c.reset, wait 0.1ms, write c.reset, goto x);";
  start(2, text);
  constexpr uint64_t kSwaps = 400;
  uint64_t swaps = 0;
  run([&] {
    swap(text);
    return ++swaps < kSwaps;
  });
  EXPECT_EQ(runtime_->swaps().count, kSwaps);
}

/// Until the take-over, handlers of the old router change a table that the new one shares; the devices of the new one
/// got their copy before.
TEST_F(HotSwap, DevicesGetWhatChangedInSharedTablesBeforeTheSwap) {
  const testing::HangGuard guard(60);
  OffloadOptions offload;
  offload.backend = "reference";
  offload.mode = OffloadOptions::Mode::kDevice;
  const auto text = [](const std::string& active) {
    return "TimedSource(INTERVAL 20ms, DATA \\<45000014000000004011000001010101 01020304>, LIMIT -1, ACTIVE " + active +
           ") -> MarkIPHeader(0) -> GetIPAddress(16) -> rt :: RadixIPLookup(1.0.0.0/8 0);"
           "rt[0] -> c0 :: Counter -> Discard; rt[1] -> c1 :: Counter -> Discard;";
  };
  start(2, text("false"), offload);
  ASSERT_TRUE(router_->engine());
  int step = 0;
  run([&] {
    if (step == 0) {
      std::unique_ptr<Router> next = build(text("true"), router_.get());
      EXPECT_TRUE(next) << errors_.str();
      Element* rt = nullptr;
      const Handler* set = router_->find_handler("rt.set", nullptr, rt, errors_);
      EXPECT_TRUE(router_->call_write(*set, "1.0.0.0/8 1", errors_).ok()) << errors_.str();
      (void)runtime_->replace(std::move(next));
    }
    return ++step < 2000 && read("c1.count") == "0";
  });
  EXPECT_EQ(read("rt.lookup 1.2.3.4"), "1");
  // The first packets may be sent before the devices have the change.
  EXPECT_NE(read("c1.count"), "0");
  EXPECT_GT(router_->engine()->event(offload::kJobPackets), 0u);
}

TEST_F(HotSwap, SleepingWorkersAreNotWaitedFor) {
  start(2, "i :: Idle -> q :: Queue -> u :: Unqueue -> Discard;");
  int calls = 0;
  run([&] {
    // Both have slept for a while.
    if (++calls < 100) return true;
    const auto begin = std::chrono::steady_clock::now();
    swap("i :: Idle -> q :: Queue -> u :: Unqueue -> Counter -> Discard;");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    return false;
  });
  EXPECT_EQ(runtime_->swaps().count, 1u);
}

TEST_F(HotSwap, AQueueKeepsItsPacketsAndTheirOrder) {
  start(1, "InfiniteSource(LIMIT 5, ACTIVE false) -> q :: Queue(10) -> Idle;");
  Element* q = router_->find("q");
  for (char c = 'a'; c < 'h'; ++c) {
    Batch one(Packet::make(&c, 1));
    q->push(0, one);
  }
  int step = 0;
  run([&] {
    if (step == 0) swap("Idle -> q :: Queue(10) -> Idle;");
    if (step == 1) {
      EXPECT_EQ(read("q.length"), "7");
      swap("Idle -> q :: Queue(4) -> u :: Unqueue(ACTIVE false) -> k :: Capture;");
    }
    if (step == 2) {
      EXPECT_EQ(read("q.length"), "4");
      const std::vector<Router::Drop> drops = router_->drops();
      EXPECT_EQ(drops.size(), 1u);
      if (drops.size() == 1) {
        EXPECT_EQ(drops[0].element, "q");
        EXPECT_EQ(drops[0].packets, 3u);
      }
      swap("Idle -> q :: Queue(4) -> u :: Unqueue -> k :: Capture;");
    }
    return ++step < 30;
  });
  const auto* k = static_cast<testing::Capture*>(router_->find("k"));
  ASSERT_EQ(k->seen().size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(k->bytes(i), std::string(1, static_cast<char>('a' + i)));
}

TEST_F(HotSwap, RoutesThatWereAddedStayWhereTheArgumentsAreTheSame) {
  start(1, "Idle -> r :: RadixIPLookup(1.0.0.0/8 0, 0/0 0) -> Discard;");
  int step = 0;
  const auto add = [&](const std::string& route) {
    Element* element = nullptr;
    const Handler* h = router_->find_handler("r.add", nullptr, element, errors_);
    EXPECT_TRUE(router_->call_write(*h, route, errors_).ok());
  };
  run([&] {
    if (step == 0) {
      add("2.0.0.0/8 0");
      swap("Idle -> c :: Counter -> r :: RadixIPLookup(1.0.0.0/8 0, 0/0 0) -> Discard;");
    }
    if (step == 1) {
      EXPECT_EQ(read("r.count"), "3");
      // The old router is gone, the table is not.
      add("3.0.0.0/8 0");
      EXPECT_EQ(read("r.count"), "4");
      swap("Idle -> r :: RadixIPLookup(1.0.0.0/8 0) -> Discard;");
    }
    if (step == 2) {
      EXPECT_EQ(read("r.count"), "1");
    }
    return ++step < 3;
  });
}

TEST_F(HotSwap, ABrokenConfigurationChangesNothing) {
  start(2, std::string(kSource) + "c :: Counter -> s :: TrafficSink;");
  int calls = 0;
  run([&] {
    if (++calls == 5) {
      EXPECT_FALSE(build("Nonsense -> Discard;", router_.get()));
      EXPECT_FALSE(build("c :: Counter(BAD 1);", router_.get()));
      EXPECT_FALSE(build("f :: FromDump(/nonexistent.pcap) -> c :: Counter -> Discard;", router_.get()));
    }
    return calls < 20;
  });
  EXPECT_EQ(runtime_->swaps().count, 0u);
  const Account a = account();
  EXPECT_GT(a.out, 0u);
  EXPECT_EQ(a.in, a.out + a.drops);
}

/// Tasks and timers of a router must not run before it takes over.
TEST_F(HotSwap, NothingRunsBeforeTheSwap) {
  start(1, "Idle -> Discard;");
  int step = 0;
  std::unique_ptr<Router> next;
  run([&] {
    if (step == 0)
      next =
          build("t :: TimedSource(INTERVAL 1ms) -> c :: Counter -> Discard; InfiniteSource -> d :: Counter -> Discard;",
                router_.get());
    if (step == 20) {
      for (const char* name : {"c", "d"}) {
        Element* element = nullptr;
        std::string value;
        const Handler* h = next->find_handler(std::string(name) + ".count", nullptr, element, errors_);
        (void)next->call_read(*h, "", value, errors_);
        EXPECT_EQ(value, "0") << name;
      }
      (void)runtime_->replace(std::move(next));
    }
    return ++step < 60;
  });
  EXPECT_NE(read("c.count"), "0");
  EXPECT_NE(read("d.count"), "0");
}

/// While the control thread makes a router, what is urgent is done by another thread, and all else afterwards.
TEST_F(HotSwap, WhatIsUrgentDoesNotWaitForTheNextRouter) {
  start(1, "Idle -> Discard;");
  using enum Runtime::Urgency;
  const int urgent = eventfd(0, EFD_NONBLOCK), usual = eventfd(0, EFD_NONBLOCK);
  std::atomic<int> urgent_calls{0}, urgent_posts{0}, usual_calls{0}, usual_posts{0};
  std::atomic<bool> other_thread{false};
  const auto clear = [](int fd) {
    uint64_t n;
    (void)!::read(fd, &n, sizeof n);
  };
  const auto set = [](int fd) {
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
  };
  const std::thread::id control = std::this_thread::get_id();
  runtime_->watch(
      urgent,
      [&] {
        clear(urgent);
        other_thread = std::this_thread::get_id() != control && !runtime_->on_control_thread();
        ++urgent_calls;
      },
      POLLIN, kUrgent);
  runtime_->watch(usual, [&] {
    clear(usual);
    EXPECT_TRUE(runtime_->on_control_thread());
    ++usual_calls;
  });
  const auto wait_for = [](const std::atomic<int>& calls, int n) {
    for (int i = 0; calls < n && i < 10000; ++i) usleep(1000);
    EXPECT_EQ(calls, n);
  };
  bool done = false;
  run([&] {
    if (!std::exchange(done, true)) {
      runtime_->attend_while([&] {
        EXPECT_TRUE(runtime_->on_control_thread());
        set(usual);
        runtime_->post_later([&] { ++usual_posts; });
        for (int i = 1; i <= 3; ++i) {
          set(urgent);
          wait_for(urgent_calls, i);
          runtime_->post_later([&] { ++urgent_posts; }, kUrgent);
          wait_for(urgent_posts, i);
        }
        EXPECT_TRUE(other_thread);
        EXPECT_EQ(usual_calls, 0);
        EXPECT_EQ(usual_posts, 0);
      });
      set(urgent);
    }
    return urgent_calls < 4 || usual_calls < 1 || usual_posts < 1;
  });
  EXPECT_FALSE(other_thread);
  runtime_->watch(urgent, nullptr);
  runtime_->watch(usual, nullptr);
  close(urgent);
  close(usual);
}

/// Does not go before something urgent has been done, on another thread.
class GoesAfterUrgentWork final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  ~GoesAfterUrgentWork() override {
    if (!left_) return;
    const uint64_t one = 1;
    (void)!write(fd_, &one, sizeof one);
    for (int i = 0; calls == 0 && i < 5000; ++i) usleep(1000);
    calls_before_end = calls.load();
    router().runtime().watch(fd_, nullptr);
    close(fd_);
  }
  Status initialize(Errors&) override {
    fd_ = eventfd(0, EFD_NONBLOCK);
    router().runtime().watch(
        fd_,
        [fd = fd_, &runtime = router().runtime()] {
          uint64_t n;
          (void)!::read(fd, &n, sizeof n);
          on_control_thread = runtime.on_control_thread();
          ++calls;
          // The end of the watch waits for this.
          usleep(20000);
          ++ended;
        },
        POLLIN, Runtime::Urgency::kUrgent);
    return {};
  }
  void leave_control() override { left_ = true; }

  static inline std::atomic<int> calls{0}, ended{0}, calls_before_end{0};
  static inline std::atomic<bool> on_control_thread{true};

 private:
  int fd_ = -1;
  bool left_ = false;
};
HEADRACE_ELEMENT(GoesAfterUrgentWork)

TEST_F(HotSwap, WhatIsUrgentDoesNotWaitForTheRouterThatGoes) {
  const testing::HangGuard guard(60);
  start(2, "GoesAfterUrgentWork; Idle -> Discard;");
  int step = 0;
  run([&] {
    if (++step == 1) swap("Idle -> Discard;");
    return step < 4;
  });
  EXPECT_EQ(GoesAfterUrgentWork::calls_before_end, 1);
  EXPECT_EQ(GoesAfterUrgentWork::ended, 1);
  EXPECT_FALSE(GoesAfterUrgentWork::on_control_thread);
}

}  // namespace
}  // namespace headrace
