// The barrier alone: with the threads of the system, and with threads that a scheduler runs one at a time, so that a
// test tries orders of events by the thousand and notices when nothing can go on any more.

#include "runtime/barrier.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/rcu.hh"
#include "support/hang_guard.hh"

namespace headrace {
namespace {

/// Thrown in all threads of a run in which none can go on.
struct Stuck {};

/// Decides which of `options` happens next; 0 is: what runs goes on.
using Choose = std::function<int(int options, bool running_may_go_on)>;

/// Runs threads one at a time and changes between them only where they call it.
class Scheduler {
 public:
  explicit Scheduler(Choose choose) : choose_(std::move(choose)) {}

  /// Runs all to their end. False if they got stuck.
  bool run(const std::vector<std::function<void()>>& programs) {
    g_scheduler = this;
    for (size_t i = 0; i < programs.size(); ++i) threads_.push_back(std::make_unique<Thread>());
    std::vector<std::thread> all;
    for (size_t i = 0; i < programs.size(); ++i)
      all.emplace_back([this, i, &program = programs[i]] {
        t_number = static_cast<int>(i);
        {
          std::unique_lock lock(lock_);
          threads_[i]->turn.wait(lock, [&] { return running_ == static_cast<int>(i) || stuck_; });
        }
        try {
          program();
        } catch (const Stuck&) {
        }
        std::unique_lock lock(lock_);
        threads_[i]->state = Thread::kDone;
        go_on(lock);
      });
    {
      std::unique_lock lock(lock_);
      running_ = 0;
      threads_[0]->turn.notify_all();
    }
    for (std::thread& t : all) t.join();
    g_scheduler = nullptr;
    return !stuck_;
  }

  bool stuck() const { return stuck_; }
  /// Another thread may go on here.
  void point() {
    std::unique_lock lock(lock_);
    go_on(lock);
  }
  void block(const void* on) {
    std::unique_lock lock(lock_);
    Thread& me = *threads_[static_cast<size_t>(t_number)];
    me.state = Thread::kBlocked;
    me.on = on;
    go_on(lock);
    if (stuck_) throw Stuck();
  }
  void unblock(const void* on) {
    const std::lock_guard lock(lock_);
    for (auto& t : threads_)
      if (t->state == Thread::kBlocked && t->on == on) t->state = Thread::kReady;
  }

  static inline Scheduler* g_scheduler = nullptr;

 private:
  struct Thread {
    enum State { kReady, kBlocked, kDone } state = kReady;
    const void* on = nullptr;
    std::condition_variable turn;
  };

  void go_on(std::unique_lock<std::mutex>& lock) {
    if (stuck_) return;
    const int me = t_number;
    std::vector<int> ready;
    const bool running_may_go_on = threads_[static_cast<size_t>(me)]->state == Thread::kReady;
    if (running_may_go_on) ready.push_back(me);
    bool all_done = true;
    for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
      all_done &= threads_[static_cast<size_t>(i)]->state == Thread::kDone;
      if (i != me && threads_[static_cast<size_t>(i)]->state == Thread::kReady) ready.push_back(i);
    }
    if (ready.empty()) {
      stuck_ = !all_done;
      for (auto& t : threads_) t->turn.notify_all();
      return;
    }
    const int options = static_cast<int>(ready.size());
    running_ = ready[static_cast<size_t>(options == 1 ? 0 : choose_(options, running_may_go_on))];
    if (running_ == me) return;
    threads_[static_cast<size_t>(running_)]->turn.notify_all();
    if (threads_[static_cast<size_t>(me)]->state == Thread::kDone) return;
    threads_[static_cast<size_t>(me)]->turn.wait(lock, [&] { return running_ == me || stuck_; });
  }

  static inline thread_local int t_number = -1;

  const Choose choose_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Thread>> threads_;
  int running_ = -1;
  bool stuck_ = false;
};

/// SystemSync for threads of a Scheduler.
struct ScheduledSync {
  class Mutex {
   public:
    void lock() {
      Scheduler& s = *Scheduler::g_scheduler;
      s.point();
      while (locked_ && !s.stuck()) s.block(this);
      locked_ = true;
    }
    bool try_lock() {
      Scheduler::g_scheduler->point();
      return !std::exchange(locked_, true);
    }
    void unlock() {
      locked_ = false;
      Scheduler::g_scheduler->unblock(this);
    }

   private:
    bool locked_ = false;
  };
  class Condition {
   public:
    template <typename Ready>
    void wait(std::unique_lock<Mutex>& lock, const Ready& ready) {
      while (!ready()) {
        lock.unlock();
        try {
          Scheduler::g_scheduler->block(this);
        } catch (...) {
          lock.lock();
          throw;
        }
        lock.lock();
      }
    }
    void notify_all() { Scheduler::g_scheduler->unblock(this); }
  };
  static constexpr unsigned kSpins = 0;
  static void point() { Scheduler::g_scheduler->point(); }
};

/// Workers and others around one barrier. They break a rule when one runs where it must stand.
template <typename Sync>
class World {
 public:
  using TestedBarrier = BasicBarrier<Sync>;
  enum Act { kRound, kSleep, kNap, kQuiesce, kNested, kExclusive, kExclusiveQuiesce, kQuiesceExclusive, kActs };

  explicit World(int workers) : running_(static_cast<size_t>(workers)), in_round_(static_cast<size_t>(workers)) {
    for (int i = 0; i < workers; ++i) threads_.push_back(std::make_unique<WorkerThread>());
    on_device_.assign(static_cast<size_t>(workers), 0);
  }

  /// A worker's life: one round for each act.
  void work(int id, const std::vector<Act>& acts) {
    const auto w = static_cast<size_t>(id);
    rcu::Reader reader;
    barrier_.enter();
    for (const Act act : acts) {
      Sync::point();
      if (barrier_.wanted()) barrier_.pass([&] { on_device_[w] = 0; });
      reader.quiescent();
      in_round_[w] = running_[w] = true;
      Sync::point();
      on_device_[w] = act == kSleep ? 0 : 1;
      perform(act, id);
      in_round_[w] = running_[w] = false;
      if (act != kSleep && act != kNap) continue;
      reader.offline();
      const bool sleep = act == kSleep ? barrier_.fall_asleep(*threads_[w]) : barrier_.nap(*threads_[w]);
      if (sleep) Sync::point();
      if (act == kSleep)
        barrier_.wake_up(*threads_[w]);
      else
        threads_[w]->napping = false;
      reader.online();
    }
    on_device_[w] = 0;
    barrier_.leave();
  }

  /// What a handler does on worker `id`, or on another thread (-1).
  void perform(Act act, int id) {
    switch (act) {
      case kQuiesce:
        section(id, [] {});
        break;
      case kNested:
        section(id, [&] { barrier_.quiesce([&] { check_alone(id); }); });
        break;
      case kExclusive:
        exclusive(id, [] {});
        break;
      case kExclusiveQuiesce:
        exclusive(id, [&] {
          section(
              id, [] {}, true);
        });
        break;
      case kQuiesceExclusive:
        section(id, [&] {
          exclusive(
              id, [] {}, true);
        });
        break;
      default:
        break;
    }
  }

  void swap() {
    const int before = swaps_;
    (void)barrier_.swap([&] {
      for (size_t w = 0; w < threads_.size(); ++w)
        if (in_round_[w] || on_device_[w]) wrong_ = "swap while a worker was in a round or had jobs";
      ++swaps_;
    });
    if (swaps_ != before + 1) wrong_ = "a swap happened not once";
  }

  const char* wrong() const { return wrong_; }
  int swaps() const { return swaps_; }
  int sections() const { return sections_; }
  int exclusives() const { return exclusives_; }

 private:
  void set_running(int id, bool on) {
    if (id >= 0) running_[static_cast<size_t>(id)] = on;
  }
  void check_alone(int id) {
    for (size_t w = 0; w < threads_.size(); ++w)
      if (static_cast<int>(w) != id && running_[w]) wrong_ = "an action ran while a worker did";
  }
  void section(int id, const std::function<void()>& inside, bool in_exclusive = false) {
    set_running(id, false);
    barrier_.quiesce([&] {
      if (in_section_.exchange(true)) wrong_ = "two actions at a time";
      check_alone(id);
      ++sections_;
      // Others stand, so this ends. (A scheduled thread must not wait where the scheduler does not see it.)
      if constexpr (std::is_same_v<Sync, SystemSync>) rcu::synchronize();
      Sync::point();
      inside();
      check_alone(id);
      in_section_ = false;
    });
    // The exclusive thread of a worker is in the middle of its round, not running elements.
    set_running(id, !in_exclusive);
  }
  void exclusive(int id, const std::function<void()>& inside, bool in_section = false) {
    set_running(id, false);
    {
      const typename TestedBarrier::Exclusive one(barrier_);
      const typename TestedBarrier::Exclusive again(barrier_);
      // An action passes a holder that waits for it.
      const bool passed = exclusive_holders_.fetch_add(1) != 0;
      if (passed && !in_section) wrong_ = "two exclusive threads";
      ++exclusives_;
      Sync::point();
      inside();
      exclusive_holders_.fetch_sub(1);
    }
    set_running(id, !in_section);
  }

  std::vector<std::unique_ptr<WorkerThread>> threads_;
  TestedBarrier barrier_{threads_};
  std::vector<std::atomic<bool>> running_, in_round_;
  std::vector<int> on_device_;
  std::atomic<bool> in_section_{false};
  std::atomic<int> exclusive_holders_{0};
  std::atomic<const char*> wrong_{nullptr};
  std::atomic<int> sections_{0}, exclusives_{0};
  int swaps_ = 0;
};

using ScheduledWorld = World<ScheduledSync>;
using Act = ScheduledWorld::Act;

/// What takes part in one run, and the outcome.
struct Cast {
  std::vector<std::vector<Act>> workers;
  std::vector<std::vector<Act>> others;
  int swaps = 0;
};

/// Empty if all was well.
std::string play(const Cast& cast, const Choose& choose) {
  ScheduledWorld world(static_cast<int>(cast.workers.size()));
  std::vector<std::function<void()>> programs;
  for (size_t w = 0; w < cast.workers.size(); ++w)
    programs.emplace_back([&, w] { world.work(static_cast<int>(w), cast.workers[w]); });
  for (const std::vector<Act>& acts : cast.others)
    programs.emplace_back([&] {
      for (const Act act : acts) world.perform(act, -1);
    });
  if (cast.swaps > 0)
    programs.emplace_back([&] {
      for (int i = 0; i < cast.swaps; ++i) world.swap();
    });
  Scheduler scheduler(choose);
  if (!scheduler.run(programs)) return "nothing can go on";
  if (world.wrong()) return world.wrong();
  if (world.swaps() != cast.swaps) return "a swap is missing";
  return "";
}

/// Every order of events with at most `preemptions` changes from a thread that could have gone on.
class AllOrders {
 public:
  explicit AllOrders(int preemptions) : preemptions_(preemptions) {}

  Choose next() {
    at_ = 0;
    left_ = preemptions_;
    return [this](int options, bool running_may_go_on) {
      if (running_may_go_on && left_ == 0) return 0;
      if (at_ == path_.size()) path_.push_back({0, options});
      const int chosen = path_[at_++].chosen;
      if (running_may_go_on && chosen != 0) --left_;
      return chosen;
    };
  }
  /// False when all have been tried.
  bool advance() {
    path_.resize(at_);
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    return true;
  }

 private:
  struct Choice {
    int chosen, options;
  };
  const int preemptions_;
  int left_ = 0;
  size_t at_ = 0;
  std::vector<Choice> path_;
};

void expect_all_orders(const Cast& cast, int preemptions) {
  AllOrders orders(preemptions);
  int runs = 0;
  do {
    const std::string wrong = play(cast, orders.next());
    ++runs;
    ASSERT_EQ(wrong, "") << "in run " << runs;
  } while (orders.advance());
  EXPECT_GT(runs, 10);
  ::testing::Test::RecordProperty("runs", runs);
}

TEST(AllBarrierOrders, ASectionAndASwapWithASleepingWorker) {
  const testing::HangGuard guard(120);
  expect_all_orders({.workers = {{Act::kQuiesce}, {Act::kSleep}}, .others = {}, .swaps = 1}, 2);
}

TEST(AllBarrierOrders, TwoSectionsAndASwap) {
  const testing::HangGuard guard(120);
  expect_all_orders({.workers = {{Act::kQuiesce}, {Act::kNested}}, .others = {}, .swaps = 1}, 2);
}

TEST(AllBarrierOrders, SectionsOfAnOutsiderAndAWorkerThatWantsToBeExclusive) {
  const testing::HangGuard guard(120);
  expect_all_orders({.workers = {{Act::kExclusiveQuiesce}}, .others = {{Act::kQuiesceExclusive}}, .swaps = 1}, 2);
}

TEST(AllBarrierOrders, AWorkerLeavesWhileASwapIsPending) {
  const testing::HangGuard guard(120);
  expect_all_orders({.workers = {{}, {Act::kRound, Act::kSleep}}, .others = {{Act::kQuiesce}}, .swaps = 1}, 2);
}

/// Random programs in random orders.
TEST(BarrierOrders, Random) {
  const testing::HangGuard guard(240);
  const char* const wanted = std::getenv("HEADRACE_BARRIER_RUNS");
  const int runs = wanted ? std::atoi(wanted) : 1500;
  for (int seed = 0; seed < runs; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    Cast cast;
    const auto acts = [&](int first) {
      std::vector<Act> all;
      for (unsigned n = random() % 4; n > 0; --n)
        all.push_back(static_cast<Act>(first + static_cast<int>(random() % static_cast<unsigned>(Act::kActs - first))));
      return all;
    };
    for (unsigned w = 1 + random() % 3; w > 0; --w) cast.workers.push_back(acts(Act::kRound));
    for (unsigned o = random() % 3; o > 0; --o) cast.others.push_back(acts(Act::kQuiesce));
    cast.swaps = static_cast<int>(random() % 3);
    const unsigned stay = random() % 8;
    const std::string wrong = play(cast, [&](int options, bool running_may_go_on) {
      if (running_may_go_on && random() % 8 < stay) return 0;
      return static_cast<int>(random() % static_cast<unsigned>(options));
    });
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

// --- With the threads of the system

/// Workers come and go, one of them only sleeps and wakes, until there were enough swaps.
TEST(Barrier, WorkersSleepersSectionsAndSwapsOfRealThreads) {
  const testing::HangGuard guard(120);
  using RealWorld = World<SystemSync>;
  constexpr int kWorkers = 4, kSwaps = 500;
  RealWorld world(kWorkers);
  std::atomic<bool> over{false};
  std::atomic<int> lives{0};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w)
    threads.emplace_back([&, w] {
      std::mt19937 random(static_cast<unsigned>(w));
      for (; !over; ++lives) {
        std::vector<RealWorld::Act> acts;
        for (int i = 0; i < 200; ++i)
          acts.push_back(w == kWorkers - 1   ? RealWorld::kSleep
                         : random() % 4 != 0 ? RealWorld::kRound
                                             : static_cast<RealWorld::Act>(random() % RealWorld::kActs));
        world.work(w, acts);
      }
    });
  threads.emplace_back([&] {
    for (int i = 0; !over; ++i) world.perform(i % 2 ? RealWorld::kQuiesce : RealWorld::kExclusiveQuiesce, -1);
  });
  // On a loaded machine, the others may get no turn for many swaps.
  for (int i = 0; i < kSwaps || lives < 2 * kWorkers || world.sections() == 0 || world.exclusives() == 0; ++i)
    world.swap();
  over = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(world.wrong(), nullptr) << world.wrong();
  EXPECT_GE(world.swaps(), kSwaps);
  EXPECT_GT(world.sections(), 0);
  EXPECT_GT(world.exclusives(), 0);
}

TEST(Barrier, InsideIsAboutTheCallingThread) {
  std::vector<std::unique_ptr<WorkerThread>> none;
  Barrier barrier(none);
  const auto elsewhere = [&] {
    bool inside = true;
    std::thread([&] { inside = barrier.inside(); }).join();
    return inside;
  };
  EXPECT_FALSE(barrier.inside());
  {
    const Barrier::Exclusive exclusive(barrier);
    EXPECT_TRUE(barrier.inside());
    EXPECT_FALSE(elsewhere());
  }
  barrier.quiesce([&] {
    EXPECT_TRUE(barrier.inside());
    EXPECT_FALSE(elsewhere());
  });
  EXPECT_FALSE(barrier.inside());
}

}  // namespace
}  // namespace headrace
