/// \file
/// Readers of the IPv4 table while it changes.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"
#include "lpm4_naive.hh"
#include "tables/lpm4/lpm4.hh"

namespace headrace {
namespace {

using Route = Lpm4::Route;

/// A change, and whether it withdraws.
struct Change {
  Route route;
  bool withdraw;
};

/// How the writer replaces the generation beside changing single routes.
enum class Swaps { kNone, kBuilds, kWidening };

/// Changes that open and close groups all the time, and what each of some addresses is answered after each of them.
struct Script {
  Script(size_t count, Swaps swaps) {
    std::mt19937 random(9);
    const uint32_t base = 10u << 24;
    for (uint32_t i = 0; i < kProbes; ++i) probes.push_back(base + i * 16);
    NaiveLpm4 naive;
    first = {{base, 12, 1}};
    naive.set(base, 12, 1);
    record(naive);
    while (changes.size() < count) {
      // Few routes at a time, so that a block often has none of more than 24 bits.
      const int length = random() % 2 == 0 ? 32 : 22 + static_cast<int>(random() % 10);
      Route route{probes[random() % kProbes] & NaiveLpm4::mask(length), length, 0};
      // The next hop tells the change, so that an answer out of time cannot pass by chance.
      route.next_hop = 2 + static_cast<uint32_t>(changes.size());
      if (swaps == Swaps::kWidening && changes.size() >= count / 2) route.next_hop += 100000;
      const bool withdraw = naive.remove(route.prefix, length);
      if (!withdraw) naive.set(route.prefix, length, route.next_hop);
      changes.push_back({route, withdraw});
      record(naive);
    }
  }

  void record(const NaiveLpm4& naive) {
    for (const uint32_t probe : probes) answers.push_back(naive.lookup(probe));
  }

  /// Whether `answer` is right for `probe` after some number of changes from `from` to `to`.
  bool was_right(uint32_t answer, size_t probe, size_t from, size_t to) const {
    for (size_t step = from; step <= to; ++step) {
      if (answer == answers[step * kProbes + probe]) return true;
    }
    return false;
  }

  static constexpr uint32_t kProbes = 64;
  std::vector<Route> first;
  std::vector<Change> changes;
  std::vector<uint32_t> probes;
  std::vector<uint32_t> answers;
};

class Lpm4Readers : public ::testing::TestWithParam<Swaps> {};

TEST_P(Lpm4Readers, EachAnswerWasRightAtSomeMomentOfItsLookup) {
  constexpr int kReaders = 2;
  constexpr size_t kChanges = 20000;
  const Swaps swaps = GetParam();
  const Script script(kChanges, swaps);
  Lpm4 table;
  table.build(script.first);

  // A lookup that began after `finished` changes and ended before more than `started` has the answer of one of the
  // steps between.
  std::atomic<size_t> started{0}, finished{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> lookups{0}, wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      rcu::Reader reader;
      std::mt19937 random(static_cast<unsigned>(i));
      while (!stop) {
        const size_t taken = finished.load(std::memory_order_acquire);
        const Lpm4View view = table.view();
        for (int k = 0; k < 32; ++k) {
          const size_t probe = random() % Script::kProbes;
          // Changes in place are seen at once; a swap is seen when the view is taken anew.
          const size_t from = swaps == Swaps::kNone ? finished.load(std::memory_order_acquire) : taken;
          const uint32_t answer = view.lookup(script.probes[probe]);
          // A read-modify-write keeps the lookup before it.
          const size_t to = started.fetch_add(0, std::memory_order_acq_rel);
          wrong += !script.was_right(answer, probe, from, to);
        }
        lookups += 32;
        reader.quiescent();
      }
    });
  }

  size_t step = 0;
  for (const Change& change : script.changes) {
    started.exchange(step + 1, std::memory_order_acq_rel);
    const Route& route = change.route;
    if (swaps == Swaps::kBuilds && step % 1000 == 999) {
      std::vector<Route> routes = table.routes();
      std::erase_if(routes, [&](const Route& r) { return r.prefix == route.prefix && r.length == route.length; });
      if (!change.withdraw) routes.push_back(route);
      EXPECT_TRUE(table.build(routes));
    } else if (change.withdraw) {
      EXPECT_TRUE(table.remove(route.prefix, route.length));
    } else {
      EXPECT_TRUE(table.add(route.prefix, route.length, route.next_hop));
    }
    finished.store(++step, std::memory_order_release);
    if (step % 4 == 0) {
      rcu::reclaim();
      // The readers keep pace, however the machine shares its processors.
      while (lookups < 50 * step) std::this_thread::yield();
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(table.wide(), swaps == Swaps::kWidening);
  rcu::synchronize();
  EXPECT_EQ(rcu::pending(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Swaps, Lpm4Readers, ::testing::Values(Swaps::kNone, Swaps::kBuilds, Swaps::kWidening),
                         [](const auto& info) {
                           return info.param == Swaps::kNone     ? "None"
                                  : info.param == Swaps::kBuilds ? "Builds"
                                                                 : "Widening";
                         });

}  // namespace
}  // namespace headrace
