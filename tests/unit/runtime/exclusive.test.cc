// Runtime::Exclusive and Runtime::quiesce, taken in every order by several threads.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace headrace {
namespace {

TEST(Exclusive, HoldsOffOtherThreads) {
  Runtime runtime({.threads = 1, .cpus = {}, .control_thread = false});
  int unguarded = 0;
  constexpr int kThreads = 4, kTimes = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        const Runtime::Exclusive once(runtime);
        const Runtime::Exclusive twice(runtime);
        unguarded = unguarded + 1;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(unguarded, kThreads * kTimes);
}

TEST(Quiesce, ActionsNest) {
  Runtime runtime({.threads = 1, .cpus = {}, .control_thread = false});
  int depth = 0;
  runtime.quiesce([&] { runtime.quiesce([&] { runtime.quiesce([&] { depth = 3; }); }); });
  EXPECT_EQ(depth, 3);
}

std::atomic<int> g_inside_exclusive{0}, g_inside_action{0}, g_overlaps{0};
std::atomic<int64_t> g_rounds{0};

/// Marks a stretch that no other thread may be in.
class Alone {
 public:
  explicit Alone(std::atomic<int>& inside) : inside_(inside) {
    if (inside_.fetch_add(1) != 0) g_overlaps.fetch_add(1);
  }
  ~Alone() { inside_.fetch_sub(1); }

 private:
  std::atomic<int>& inside_;
};

/// Its tasks, one a worker, take both in both orders.
class TakesBoth final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status initialize(Errors&) override {
    Runtime& runtime = router().runtime();
    for (int t = 0; t < runtime.threads(); ++t) {
      tasks_.push_back(std::make_unique<Task>(this, [&runtime, this, n = t](Task& task) mutable {
        step(runtime, ++n);
        task.fast_reschedule();
        if (g_rounds.fetch_add(1) == 3000) router().request_stop();
        return true;
      }));
      tasks_.back()->initialize(true, t);
    }
    return {};
  }

 private:
  static void step(Runtime& runtime, int n) {
    switch (n % 4) {
      case 0: {
        const Runtime::Exclusive exclusive(runtime);
        const Alone alone(g_inside_exclusive);
        break;
      }
      case 1: {
        const Runtime::Exclusive exclusive(runtime);
        // What the holder does before and after its own action may be passed by somebody else's action, but not this:
        runtime.quiesce([] { const Alone alone(g_inside_action); });
        break;
      }
      case 2:
        runtime.quiesce([&] {
          const Alone alone(g_inside_action);
          const Runtime::Exclusive exclusive(runtime);
          runtime.quiesce([] {});
        });
        break;
      default:
        std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<Task>> tasks_;
};
HEADRACE_ELEMENT(TakesBoth)

TEST(Exclusive, AnyOrderWithQuiesceEnds) {
  clock::set_warp(clock::Warp::kNone);
  g_overlaps = 0;
  g_rounds = 0;
  Runtime runtime({.threads = 3, .cpus = {}, .control_thread = false});
  Errors errors;
  lang::Configuration configuration;
  ASSERT_TRUE(lang::parse("TakesBoth", "config", {}, configuration, errors).ok()) << errors.str();
  std::unique_ptr<Router> router = Router::create(configuration, runtime, errors);
  ASSERT_TRUE(router) << errors.str();

  // A thread that is no worker takes part, as the control thread of `headrace run` does.
  std::atomic<bool> done{false};
  std::thread outsider([&] {
    while (!done.load()) {
      const Runtime::Exclusive exclusive(runtime);
      const Alone alone(g_inside_exclusive);
    }
  });
  runtime.run(router);
  done = true;
  outsider.join();
  EXPECT_GE(g_rounds.load(), 3000);
  EXPECT_EQ(g_overlaps.load(), 0);
}

}  // namespace
}  // namespace headrace
