#include "headrace/rcu.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace headrace {
namespace {

/// Yields until `condition` holds; false after ten seconds.
template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The registry is one for the process: what other tests have retired goes first.
class Rcu : public ::testing::Test {
 protected:
  void SetUp() override {
    while (rcu::pending() != 0) rcu::synchronize();
  }
};

TEST_F(Rcu, WithoutReadersNothingWaits) {
  const rcu::Epoch grace = rcu::start_grace();
  EXPECT_TRUE(rcu::elapsed(grace));
  rcu::synchronize();
}

TEST_F(Rcu, WhatCopiesHaveReturnsAfterTheGrace) {
  std::atomic<rcu::Epoch> oldest{0};
  const rcu::Epoch before = rcu::start_grace();
  {
    const rcu::Copy copy([&oldest] { return oldest.load(); });
    EXPECT_TRUE(rcu::returned(before)) << "it has nothing";
    oldest = rcu::now();
    EXPECT_TRUE(rcu::returned(before)) << "it was made afterwards";
    const rcu::Epoch grace = rcu::start_grace();
    EXPECT_TRUE(rcu::elapsed(grace));
    EXPECT_FALSE(rcu::returned(grace));
    oldest = rcu::now();
    EXPECT_TRUE(rcu::returned(grace));
    rcu::Reader reader;
    const rcu::Epoch next = rcu::start_grace();
    oldest = rcu::now();
    EXPECT_FALSE(rcu::returned(next)) << "a reader has not passed";
    reader.quiescent();
    EXPECT_TRUE(rcu::returned(next));
  }
  oldest = before;
  EXPECT_TRUE(rcu::returned(rcu::start_grace())) << "the copy is gone";
}

TEST_F(Rcu, GraceEndsWhenEveryOnlineReaderHasPassed) {
  rcu::Reader first, second;
  const rcu::Epoch grace = rcu::start_grace();
  EXPECT_FALSE(rcu::elapsed(grace));
  first.quiescent();
  EXPECT_FALSE(rcu::elapsed(grace));
  second.quiescent();
  EXPECT_TRUE(rcu::elapsed(grace));
}

TEST_F(Rcu, AQuiescentStateBeforeTheGracePeriodDoesNotCount) {
  rcu::Reader reader;
  reader.quiescent();
  const rcu::Epoch grace = rcu::start_grace();
  EXPECT_FALSE(rcu::elapsed(grace));
}

TEST_F(Rcu, OfflineReadersAreNotWaitedFor) {
  rcu::Reader reader;
  reader.offline();
  EXPECT_FALSE(reader.is_online());
  const rcu::Epoch grace = rcu::start_grace();
  EXPECT_TRUE(rcu::elapsed(grace));
  reader.online();
  EXPECT_TRUE(reader.is_online());
  EXPECT_TRUE(rcu::elapsed(grace)) << "a reader that came online later sees what was published";
  EXPECT_FALSE(rcu::elapsed(rcu::start_grace()));
}

TEST_F(Rcu, ADestroyedReaderIsNotWaitedFor) {
  auto reader = std::make_unique<rcu::Reader>();
  const rcu::Epoch grace = rcu::start_grace();
  EXPECT_FALSE(rcu::elapsed(grace));
  reader.reset();
  EXPECT_TRUE(rcu::elapsed(grace));
}

TEST_F(Rcu, RetiredFunctionsRunInOrderAfterTheirGracePeriod) {
  rcu::Reader reader;
  std::vector<int> ran;
  rcu::retire([&] { ran.push_back(1); });
  rcu::retire([&] { ran.push_back(2); });
  EXPECT_EQ(rcu::pending(), 2u);
  EXPECT_EQ(rcu::reclaim(), 0u);
  reader.quiescent();
  rcu::retire([&] { ran.push_back(3); });
  EXPECT_EQ(rcu::reclaim(), 2u);
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
  reader.quiescent();
  EXPECT_EQ(rcu::reclaim(), 1u);
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(rcu::pending(), 0u);
}

/// A reader may take what is about to be replaced once more.
TEST_F(Rcu, KeptRetirementsBeginTheirGracePeriodTogether) {
  rcu::Reader reader;
  int ran = 0;
  {
    const rcu::Retirements until_published;
    rcu::retire([&] { ++ran; });
    {
      const rcu::Retirements inner;
      rcu::retire([&] { ++ran; });
    }
    reader.quiescent();
    rcu::reclaim();
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(rcu::pending(), 0u);
  }
  EXPECT_EQ(rcu::pending(), 2u);
  rcu::reclaim();
  EXPECT_EQ(ran, 0);
  reader.quiescent();
  rcu::reclaim();
  EXPECT_EQ(ran, 2);
}

TEST_F(Rcu, ARetiredFunctionMayRetire) {
  int ran = 0;
  rcu::retire([&] {
    ++ran;
    rcu::retire([&] { ++ran; });
  });
  EXPECT_EQ(rcu::reclaim(), 1u);
  EXPECT_EQ(rcu::reclaim(), 1u);
  EXPECT_EQ(ran, 2);
}

TEST_F(Rcu, SynchronizeDrainsAndDoesNotWaitForItsOwnThread) {
  rcu::Reader online;
  rcu::Reader offline;
  offline.offline();
  bool ran = false;
  rcu::retire([&] { ran = true; });
  rcu::synchronize();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(online.is_online());
  EXPECT_FALSE(offline.is_online()) << "an offline reader stays offline";
}

TEST_F(Rcu, SynchronizeWaitsForAnotherThread) {
  std::atomic<bool> registered{false}, go{false}, passed{false};
  std::thread worker([&] {
    rcu::Reader reader;
    registered = true;
    while (!go) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    passed = true;
    reader.quiescent();
  });
  ASSERT_TRUE(eventually([&] { return registered.load(); }));
  go = true;
  rcu::synchronize();
  EXPECT_TRUE(passed);
  worker.join();
}

TEST_F(Rcu, RegistrationDoesNotWaitForAWriter) {
  std::atomic<bool> registered{false}, done{false};
  std::thread worker([&] {
    rcu::Reader reader;
    registered = true;
    while (!done) {
      const rcu::Reader another;
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(eventually([&] { return registered.load(); }));
  std::thread writer([&] { rcu::synchronize(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  done = true;
  worker.join();
  writer.join();
}

/// Readers follow a pointer that a writer replaces; what is freed is poisoned first, so a premature end of a grace
/// period shows as a wrong value here and as a race or use after free under a sanitizer.
TEST_F(Rcu, ReadersNeverSeeReclaimedMemory) {
  struct Node {
    int value = 7;
  };
  constexpr int kReaders = 3;
  constexpr int kChanges = 2000;
  std::atomic<Node*> shared{new Node};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> running{0};
  std::atomic<int> freed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&, i] {
      rcu::Reader reader;
      ++running;
      for (unsigned turn = 0; !stop; ++turn) {
        const Node* node = shared.load(std::memory_order_acquire);
        for (int k = 0; k < 8; ++k) wrong += node->value != 7;
        if (i == 0 && turn % 16 == 0) {
          reader.offline();
          std::this_thread::yield();
          reader.online();
        } else {
          reader.quiescent();
        }
        if (turn % 64 == 0) std::this_thread::yield();
      }
    });
  }
  ASSERT_TRUE(eventually([&] { return running == kReaders; }));
  for (int change = 0; change < kChanges; ++change) {
    Node* old = shared.exchange(new Node, std::memory_order_acq_rel);
    const auto free_old = [old, &freed] {
      old->value = -1;
      delete old;
      ++freed;
    };
    if (change % 10 == 0) {
      rcu::synchronize();
      free_old();
    } else {
      rcu::retire(free_old);
      rcu::reclaim();
    }
  }
  EXPECT_TRUE(eventually([&] { return rcu::reclaim(), rcu::pending() == 0; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(freed, kChanges);
  delete shared.load();
}

}  // namespace
}  // namespace headrace
