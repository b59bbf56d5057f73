/// \file
/// Threads that look up in a table of masked entries while it changes.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "acl_naive.hh"
#include "headrace/rcu.hh"
#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_table.hh"

namespace headrace {
namespace {

constexpr uint32_t kProbes = 32;

std::array<uint32_t, 4> probe_key(uint32_t i) { return {0x0a000000 + (i & 7), 0x0b000000 + (i >> 3), i << 16 | i, 0}; }

/// Groups of changes, and what each of some keys is answered after each of them.
struct AclScript {
  struct Step {
    std::vector<uint32_t> removed;
    std::vector<std::pair<uint32_t, AclRule>> inserted;
  };

  explicit AclScript(size_t count) {
    std::mt19937 random(4);
    NaiveAcl naive;
    record(naive);
    uint32_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      Step step;
      const size_t removals = naive.rules.size() > 60 ? 3 : random() % 3;
      for (size_t j = 0; j < removals && !naive.rules.empty(); ++j) {
        auto it = naive.rules.begin();
        std::advance(it, static_cast<long>(random() % naive.rules.size()));
        step.removed.push_back(it->first);
        naive.rules.erase(it);
      }
      for (size_t j = 0; j < 1 + random() % 3; ++j) {
        AclRule rule;
        const auto key = probe_key(random() % kProbes);
        constexpr uint32_t kMasks[] = {0, 0xff000000, 0xffff0000, 0xfffffff8, 0xfffffffe, 0xffffffff};
        for (uint32_t w = 0; w < 2; ++w) {
          rule.mask[w] = kMasks[random() % std::size(kMasks)];
          rule.value[w] = key[w] & rule.mask[w];
        }
        if (random() % 2 == 0) {
          rule.low = (random() % 16) << 16;
          rule.high = (16 + random() % 16) << 16 | 0xffff;
        }
        rule.priority = random() % 10;
        rule.data = next;
        step.inserted.emplace_back(next, rule);
        naive.rules[next++] = rule;
      }
      steps.push_back(step);
      record(naive);
    }
  }

  void record(const NaiveAcl& naive) {
    std::array<uint32_t, kProbes> all;
    for (uint32_t i = 0; i < kProbes; ++i) all[i] = naive.find(probe_key(i).data(), 4);
    answers.push_back(all);
  }

  std::vector<Step> steps;
  std::vector<std::array<uint32_t, kProbes>> answers;
};

/// All keys of a batch are answered as of one commit, which was current at some moment of the batch. The numbers of entries
/// are never used twice here, so an answer out of time does not pass by chance.
TEST(AclTable, AnswersABatchAsOfOneCommitWhileThreadsLookUp) {
  constexpr int kReaders = 2;
  constexpr size_t kSteps = 3000;
  const AclScript script(kSteps);
  AclOptions options;
  options.collisions = 4;
  AclTable table(options);
  std::atomic<size_t> started{0}, finished{0};
  std::atomic<bool> stop{false};
  std::atomic<size_t> wrong{0}, batches{0};
  std::vector<uint32_t> keys;
  for (uint32_t i = 0; i < kProbes; ++i) {
    const auto key = probe_key(i);
    keys.insert(keys.end(), key.begin(), key.end());
  }
  std::vector<std::thread> readers;
  std::atomic<int> ready{0};
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      rcu::Reader reader;
      ++ready;
      while (!stop.load(std::memory_order_acquire)) {
        const size_t from = finished.load(std::memory_order_acquire);
        AclMatch matches[kProbes];
        const AclView view = table.view();
        if (r == 0) {
          acl_find_batch(view, keys.data(), matches, kProbes);
        } else {
          // One by one each lookup has a moment of its own.
          matches[0] = view.find(keys.data());
        }
        const size_t to = started.load(std::memory_order_acquire);
        bool right = false;
        for (size_t step = from; step <= to && !right; ++step) {
          right = true;
          for (uint32_t i = 0; i < (r == 0 ? kProbes : 1u); ++i)
            right = right && matches[i].number == script.answers[step][i];
        }
        if (!right) ++wrong;
        ++batches;
        reader.quiescent();
      }
    });
  }
  while (ready < kReaders) std::this_thread::yield();
  for (size_t i = 0; i < script.steps.size(); ++i) {
    for (const uint32_t number : script.steps[i].removed) EXPECT_TRUE(table.remove(number));
    for (const auto& [number, rule] : script.steps[i].inserted) table.insert(number, rule);
    started.store(i + 1, std::memory_order_release);
    table.commit();
    finished.store(i + 1, std::memory_order_release);
    if (i % 16 == 0) {
      table.settle();
      std::this_thread::yield();
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(batches, 100u);
}

/// Wherever memory runs out in an insertion or a commit, readers find what was there, also in what they take anew.
TEST(AclTable, StaysAsItWasWhereMemoryRunsOut) {
  constexpr uint32_t kEntries = 5000;
  AclTable table(AclOptions{});
  rcu::Reader reader;
  const auto key_of = [](uint32_t i) { return std::array<uint32_t, 4>{i * 0x9e3779b1u, i, 0, 0}; };
  const auto rule_of = [&](uint32_t i) {
    AclRule rule;
    const auto key = key_of(i);
    for (uint32_t w = 0; w < 2; ++w) {
      rule.value[w] = key[w];
      rule.mask[w] = ~0u;
    }
    return rule;
  };
  uint32_t there = 0;
  const auto look_at_all = [&] {
    // What was retired is freed, and what is found is not part of it.
    reader.quiescent();
    rcu::reclaim();
    const AclView view = table.view();
    for (uint32_t i = 0; i < there; ++i) ASSERT_EQ(view.find(key_of(i).data()).number, i);
  };
  int failed_insertions = 0, failed_commits = 0, most_spared = 0;
  for (uint32_t i = 0; i < kEntries; ++i) {
    // With the memory for one array more each time, until it is enough.
    for (int spared = 0, done = false; !done; ++spared) {
      try {
        const AllocationFailures failures(spared);
        table.insert(i, rule_of(i));
        done = true;
      } catch (const std::bad_alloc&) {
        ++failed_insertions;
        most_spared = std::max(most_spared, spared);
        ASSERT_NO_FATAL_FAILURE(look_at_all());
      }
    }
    if (i % 8 != 7) continue;
    there = i + 1;
    try {
      // A table that has doubled is made anew: at least that it is published then.
      const AllocationFailures failures(static_cast<int>(i) / 8 % 5);
      reader.quiescent();
      table.commit();
    } catch (const std::bad_alloc&) {
      ++failed_commits;
    }
    ASSERT_NO_FATAL_FAILURE(look_at_all());
  }
  EXPECT_GT(failed_insertions, 5);
  EXPECT_GE(most_spared, 2) << "no failure behind the first array";
  EXPECT_GT(failed_commits, 0);
}

}  // namespace
}  // namespace headrace
