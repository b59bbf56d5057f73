/// \file
/// Readers of the IPv4 and the IPv6 table while it changes.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"
#include "lpm4_naive.hh"
#include "lpm6_naive.hh"
#include "tables/lpm4/lpm4.hh"
#include "tables/lpm6/lpm6.hh"

namespace headrace::lpm_test {
namespace {

/// How the writer replaces the generation besides changing single routes.
enum class Swaps { kNone, kBuilds, kWidening };

struct Ip4 {
  using Table = Lpm4;
  using View = Lpm4View;
  using Naive = NaiveLpm4;
  using Key = uint32_t;
  static constexpr Key kBase = 10u << 24;
  static constexpr int kBaseLength = 12;
  static Key probe(uint32_t i) { return kBase + i * 16; }
  static Key clean(Key key, int length) { return key & NaiveLpm4::mask(length); }
  /// Few routes at a time have more than 24 bits, so that a block often has none.
  static int length(std::mt19937_64& random) { return random() % 2 == 0 ? 32 : 22 + static_cast<int>(random() % 10); }
  static bool wide(const Table& table) { return table.wide(); }
  /// A next hop with which a table is such that none of those to come replaces it.
  static constexpr uint32_t kLargeHop = 200;
  /// The next hop of change `number` of `count`; one that makes a table wide from the middle on, if wished.
  static uint32_t hop(size_t number, size_t count, Swaps swaps) {
    const uint32_t more = swaps == Swaps::kWidening && number >= count / 2 ? 100000 : 0;
    return 2 + static_cast<uint32_t>(number) + more;
  }
  static bool ends_wide(Swaps swaps) { return swaps == Swaps::kWidening; }
};

struct Ip6 {
  using Table = Lpm6;
  using View = Lpm6View;
  using Naive = NaiveLpm6;
  using Key = Lpm6Key;
  static constexpr Key kBase = {uint64_t{0x2a00'1234} << 32, 0};
  static constexpr int kBaseLength = 20;
  static Key probe(uint64_t i) { return {kBase.high | (i & 7) << 16 | (i >> 3 & 1) << 30, (i >> 4) << 62}; }
  static Key clean(Key key, int length) { return lpm6_clean(key, length); }
  /// Few routes at a time, so that a node often has none.
  static int length(std::mt19937_64& random) {
    constexpr int kLengths[] = {22, 24, 25, 29, 32, 34, 40, 44, 46, 48, 48, 48, 60, 66, 66, 128};
    return kLengths[random() % std::size(kLengths)];
  }
  static bool wide(const Table& table) { return table.view().generation()->wide != 0; }
  static constexpr uint32_t kLargeHop = 300;
  static uint32_t hop(size_t number, size_t count, Swaps swaps) {
    return 2 + static_cast<uint32_t>(swaps == Swaps::kWidening && number < count / 2 ? number % 250 : number);
  }
  static bool ends_wide(Swaps) { return true; }
};

/// A change, and whether it withdraws.
template <typename Family>
struct Change {
  typename Family::Table::Route route;
  bool withdraw;
};

/// Changes that make and remove groups or nodes all the time, and what each of some addresses is answered after each of
/// them.
template <typename Family>
struct Script {
  using Route = typename Family::Table::Route;
  static constexpr uint32_t kProbes = 64;

  Script(size_t count, Swaps swaps) {
    std::mt19937_64 random(9);
    for (uint32_t i = 0; i < kProbes; ++i) probes.push_back(Family::probe(i));
    typename Family::Naive naive;
    const uint32_t begin = swaps == Swaps::kNone ? Family::kLargeHop : 1;
    first = {{Family::kBase, Family::kBaseLength, begin}};
    naive.set(Family::kBase, Family::kBaseLength, begin);
    record(naive);
    while (changes.size() < count) {
      const int length = Family::length(random);
      Route route{Family::clean(probes[random() % kProbes], length), length, 0};
      // The next hop tells the change, so that an answer out of time hardly passes by chance.
      route.next_hop = Family::hop(changes.size(), count, swaps);
      const bool withdraw = naive.remove(route.prefix, length);
      if (!withdraw) naive.set(route.prefix, length, route.next_hop);
      changes.push_back({route, withdraw});
      record(naive);
    }
  }

  void record(const typename Family::Naive& naive) {
    for (const auto& probe : probes) answers.push_back(naive.lookup(probe));
  }

  /// Whether `answer` is right for `probe` after some number of changes from `from` to `to`.
  bool was_right(uint32_t answer, size_t probe, size_t from, size_t to) const {
    for (size_t step = from; step <= to; ++step)
      if (answer == answers[step * kProbes + probe]) return true;
    return false;
  }

  std::vector<Route> first;
  std::vector<Change<Family>> changes;
  std::vector<typename Family::Key> probes;
  std::vector<uint32_t> answers;
};

template <typename Family>
void each_answer_was_right_at_some_moment_of_its_lookup(Swaps swaps) {
  constexpr int kReaders = 2;
  constexpr size_t kChanges = 20000;
  constexpr int kBatch = 16;
  const Script<Family> script(kChanges, swaps);
  typename Family::Table table;
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
        const typename Family::View view = table.view();
        // Changes in place are seen at once; a swap is seen when the view is taken anew.
        const auto begin = [&] { return swaps == Swaps::kNone ? finished.load(std::memory_order_acquire) : taken; };
        // A read-modify-write keeps the lookup before it.
        const auto end = [&] { return started.fetch_add(0, std::memory_order_acq_rel); };
        typename Family::Key keys[kBatch];
        uint32_t answers[kBatch];
        size_t probes[kBatch];
        for (int k = 0; k < kBatch; ++k) keys[k] = script.probes[probes[k] = random() % Script<Family>::kProbes];
        for (int k = 0; k < kBatch; ++k) {
          const size_t from = begin();
          const uint32_t answer = view.lookup(keys[k]);
          wrong += !script.was_right(answer, probes[k], from, end());
        }
        const size_t from = begin();
        view.lookup_batch(keys, answers, kBatch);
        const size_t to = end();
        for (int k = 0; k < kBatch; ++k) wrong += !script.was_right(answers[k], probes[k], from, to);
        lookups += 2 * kBatch;
        reader.quiescent();
      }
    });
  }

  size_t step = 0;
  for (const Change<Family>& change : script.changes) {
    started.exchange(step + 1, std::memory_order_acq_rel);
    const auto& route = change.route;
    if (swaps == Swaps::kBuilds && step % 1000 == 999) {
      auto routes = table.routes();
      std::erase_if(routes, [&](const auto& r) { return r.prefix == route.prefix && r.length == route.length; });
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
  EXPECT_EQ(Family::wide(table), Family::ends_wide(swaps));
  rcu::synchronize();
  EXPECT_EQ(rcu::pending(), 0u);
}

std::string name_of(const ::testing::TestParamInfo<Swaps>& info) {
  return info.param == Swaps::kNone ? "None" : info.param == Swaps::kBuilds ? "Builds" : "Widening";
}

class Lpm4Readers : public ::testing::TestWithParam<Swaps> {};
TEST_P(Lpm4Readers, EachAnswerWasRightAtSomeMomentOfItsLookup) {
  each_answer_was_right_at_some_moment_of_its_lookup<Ip4>(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Swaps, Lpm4Readers, ::testing::Values(Swaps::kNone, Swaps::kBuilds, Swaps::kWidening),
                         name_of);

class Lpm6Readers : public ::testing::TestWithParam<Swaps> {};
TEST_P(Lpm6Readers, EachAnswerWasRightAtSomeMomentOfItsLookup) {
  each_answer_was_right_at_some_moment_of_its_lookup<Ip6>(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Swaps, Lpm6Readers, ::testing::Values(Swaps::kNone, Swaps::kBuilds, Swaps::kWidening),
                         name_of);

}  // namespace
}  // namespace headrace::lpm_test
