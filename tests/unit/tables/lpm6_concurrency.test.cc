/// \file
/// Readers of the IPv6 table while it changes.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"
#include "lpm6_naive.hh"
#include "tables/lpm6/lpm6.hh"

namespace headrace::lpm6_test {
namespace {

using Route = Lpm6::Route;

struct Change {
  Route route;
  bool withdraw;
};

/// Changes that make and remove nodes all the time, and what each of some addresses is answered after each of them.
struct Script {
  explicit Script(size_t count) {
    std::mt19937_64 random(9);
    const uint64_t base = uint64_t{0x2a00'1234} << 32;
    for (uint64_t i = 0; i < kProbes; ++i)
      probes.push_back({base | (i & 7) << 16 | (i >> 3 & 1) << 30, (i >> 4) << 62});
    NaiveLpm6 naive;
    first = {{{base, 0}, 20, 1}};
    naive.set({base, 0}, 20, 1);
    record(naive);
    while (changes.size() < count) {
      // Few routes at a time, so that a node often has none.
      constexpr int kLengths[] = {22, 24, 25, 29, 32, 34, 40, 44, 46, 48, 48, 48, 60, 66, 66, 128};
      const int length = kLengths[random() % std::size(kLengths)];
      Route route{lpm6_clean(probes[random() % kProbes], length), length, 0};
      // The next hop tells the change, so that an answer out of time cannot pass by chance.
      route.next_hop = 2 + static_cast<uint32_t>(changes.size());
      const bool withdraw = naive.remove(route.prefix, length);
      if (!withdraw) naive.set(route.prefix, length, route.next_hop);
      changes.push_back({route, withdraw});
      record(naive);
    }
  }

  void record(const NaiveLpm6& naive) {
    for (const Lpm6Key probe : probes) answers.push_back(naive.lookup(probe));
  }

  /// Whether `answer` is right for `probe` after some number of changes from `from` to `to`.
  bool was_right(uint32_t answer, size_t probe, size_t from, size_t to) const {
    for (size_t step = from; step <= to; ++step) {
      if (answer == answers[step * kProbes + probe]) return true;
    }
    return false;
  }

  static constexpr uint64_t kProbes = 64;
  std::vector<Route> first;
  std::vector<Change> changes;
  std::vector<Lpm6Key> probes;
  std::vector<uint32_t> answers;
};

/// Whether the writer replaces the whole table now and then.
class Lpm6Readers : public ::testing::TestWithParam<bool> {};

TEST_P(Lpm6Readers, EachAnswerWasRightAtSomeMomentOfItsLookup) {
  constexpr int kReaders = 2;
  constexpr size_t kChanges = 20000;
  const bool builds = GetParam();
  const Script script(kChanges);
  Lpm6 table;
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
      std::mt19937_64 random(static_cast<unsigned>(i));
      while (!stop) {
        const size_t taken = finished.load(std::memory_order_acquire);
        const Lpm6View view = table.view();
        Lpm6Key keys[16];
        uint32_t answers[16];
        size_t probes[16];
        for (int k = 0; k < 16; ++k) keys[k] = script.probes[probes[k] = random() % Script::kProbes];
        for (int k = 0; k < 16; ++k) {
          // Changes in place are seen at once; a swap is seen when the view is taken anew.
          const size_t from = builds ? taken : finished.load(std::memory_order_acquire);
          const uint32_t answer = view.lookup(keys[k]);
          // A read-modify-write keeps the lookup before it.
          const size_t to = started.fetch_add(0, std::memory_order_acq_rel);
          wrong += !script.was_right(answer, probes[k], from, to);
        }
        const size_t from = builds ? taken : finished.load(std::memory_order_acquire);
        view.lookup_batch(keys, answers, 16);
        const size_t to = started.fetch_add(0, std::memory_order_acq_rel);
        for (int k = 0; k < 16; ++k) wrong += !script.was_right(answers[k], probes[k], from, to);
        lookups += 32;
        reader.quiescent();
      }
    });
  }

  size_t step = 0;
  for (const Change& change : script.changes) {
    started.exchange(step + 1, std::memory_order_acq_rel);
    const Route& route = change.route;
    if (builds && step % 1000 == 999) {
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
  rcu::synchronize();
  EXPECT_EQ(rcu::pending(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Builds, Lpm6Readers, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Builds" : "InPlace"; });

}  // namespace
}  // namespace headrace::lpm6_test
