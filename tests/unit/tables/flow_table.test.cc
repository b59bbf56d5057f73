/// \file
/// The table of flows against a list that is searched from end to end, and under many threads.

#include "tables/flow/flow_table.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <thread>

namespace headrace {
namespace {

constexpr int64_t kMs = 1'000'000;

FlowId make_id(uint32_t n) {
  return {IpAddress::from_host_order(0x0a000000 + n), IpAddress::from_host_order(0x14000000 + n % 7),
          static_cast<uint16_t>(1000 + n % 50), 80};
}
/// What make_id(n) becomes; another for every n.
FlowId make_rewritten(uint32_t n) {
  FlowId id = make_id(n);
  id.src = IpAddress::from_host_order(0x1e000000 + (n >> 16));
  id.sport = static_cast<uint16_t>(n);
  return id;
}

FlowRecord* insert(FlowTable& table, uint32_t space, uint32_t n, int64_t now, uint16_t input = 0) {
  FlowTable::Change change(table);
  if (change.find(space, make_id(n))) return nullptr;
  FlowInfo info;
  info.outputs[1] = 1;
  info.input = input;
  return change.insert(space, make_id(n), make_rewritten(n), info, now);
}

// --- One thread

TEST(FlowTable, FindsBothWays) {
  FlowTable table(10);
  const uint32_t space = table.add_space("a", {}, 1), other = table.add_space("b", {}, 1);
  EXPECT_EQ(table.add_space("a", {0, {9 * kMs, 0, 0}}, 1), space);
  ASSERT_TRUE(insert(table, space, 5, 0));
  FlowEntry* there = table.find(space, make_id(5));
  FlowEntry* back = table.find(space, make_rewritten(5).reversed());
  ASSERT_TRUE(there && back);
  EXPECT_EQ(table.find(other, make_id(5)), nullptr);
  EXPECT_EQ(table.find(space, make_rewritten(5)), nullptr);
  EXPECT_FALSE(there->is_reply());
  EXPECT_TRUE(back->is_reply());
  EXPECT_EQ(&there->flow(), &back->flow());
  EXPECT_EQ(there->rewritten(), make_rewritten(5));
  EXPECT_EQ(back->rewritten(), make_id(5).reversed());
  EXPECT_EQ(there->output(), 0);
  EXPECT_EQ(back->output(), 1);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.count(space, 0), 1u);
  FlowTable::Change(table).remove(there->flow());
  EXPECT_EQ(table.find(space, make_id(5)), nullptr);
  EXPECT_EQ(table.find(space, make_rewritten(5).reversed()), nullptr);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.count(space, 0), 0u);
}

TEST(FlowTable, AFlowMayBeItsOwnWayBack) {
  FlowTable table(10);
  const uint32_t space = table.add_space("a", {}, 1);
  const FlowId id{IpAddress::from_octets(1, 0, 0, 1), IpAddress::from_octets(1, 0, 0, 1), 7, 7};
  FlowInfo info;
  FlowRecord* flow = FlowTable::Change(table).insert(space, id, id, info, 0);
  ASSERT_TRUE(flow);
  EXPECT_TRUE(table.find(space, id)->is_reply());
  FlowTable::Change(table).remove(*flow);
  EXPECT_EQ(table.find(space, id), nullptr);
}

TEST(FlowTable, AnotherFlowWithTheSameWayBackGoes) {
  FlowTable table(10);
  const uint32_t space = table.add_space("a", {}, 1);
  FlowTable::Change change(table);
  FlowInfo info;
  ASSERT_TRUE(change.insert(space, make_id(1), make_rewritten(9), info, 0));
  ASSERT_TRUE(change.insert(space, make_id(2), make_rewritten(9), info, 0));
  EXPECT_EQ(change.find(space, make_id(1)), nullptr);
  EXPECT_EQ(change.find(space, make_rewritten(9).reversed())->rewritten(), make_id(2).reversed());
  EXPECT_EQ(table.size(), 1u);
}

/// The rules, applied to a list.
class NaiveFlows {
 public:
  struct Naive {
    uint32_t n;
    uint32_t space;
    int64_t last;
    uint8_t life = 0;
  };
  NaiveFlows(size_t capacity, std::vector<FlowTable::Lifetimes> lifetimes)
      : capacity(capacity), lifetimes_(std::move(lifetimes)) {}

  Naive* find(uint32_t space, uint32_t n) {
    const auto at =
        std::find_if(flows.begin(), flows.end(), [&](const Naive& f) { return f.n == n && f.space == space; });
    return at == flows.end() ? nullptr : &*at;
  }
  bool insert(uint32_t space, uint32_t n, int64_t now) {
    if (find(space, n)) return false;
    const FlowTable::Lifetimes& times = lifetimes_[space];
    while (flows.size() >= capacity) {
      const auto victim = first_to_go(now);
      if (victim == flows.end()) return false;
      if (times.guarantee == 0 && due(*victim) > now + times.idle[0]) return false;
      flows.erase(victim);
    }
    flows.push_back({n, space, now});
    return true;
  }
  void expire(int64_t now) {
    for (auto at = first_to_go(now); at != flows.end() && (due(*at) <= now || flows.size() > capacity);
         at = first_to_go(now))
      flows.erase(at);
    while (flows.size() > capacity)
      flows.erase(std::min_element(flows.begin(), flows.end(), [&](const Naive& a, const Naive& b) {
        return a.last + lifetimes_[a.space].guarantee < b.last + lifetimes_[b.space].guarantee;
      }));
  }
  std::vector<Naive> flows;
  size_t capacity;

 private:
  int64_t due(const Naive& f) const { return f.last + lifetimes_[f.space].idle[f.life]; }
  std::vector<Naive>::iterator first_to_go(int64_t now) {
    auto first = flows.end();
    for (auto at = flows.begin(); at != flows.end(); ++at) {
      if (at->last + lifetimes_[at->space].guarantee > now) continue;
      if (first == flows.end() || due(*at) < due(*first)) first = at;
    }
    return first;
  }
  std::vector<FlowTable::Lifetimes> lifetimes_;
};

class FlowTableRandom : public ::testing::TestWithParam<int> {};

TEST_P(FlowTableRandom, DoesWhatTheListDoes) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto below = [&](uint32_t n) { return random() % n; };
  // Guarantees of zero, short and long ones; times that no two flows share.
  const int64_t guarantees[] = {0, 50 * kMs + 1, 2000 * kMs + 3};
  std::vector<FlowTable::Lifetimes> lifetimes;
  for (int i = 0; i < 2; ++i)
    lifetimes.push_back({guarantees[below(3)], {300 * kMs + 11 + i, 5000 * kMs + 17 + i, 30 * kMs + 23 + i}});
  const uint32_t capacity = 1 + below(60);
  FlowTable table(capacity);
  NaiveFlows naive(capacity, lifetimes);
  table.add_space("a", lifetimes[0], 1);
  table.add_space("b", lifetimes[1], 1);

  int64_t now = 0;
  for (int step = 0; step < 20000; ++step) {
    now += kMs + below(10) * kMs + below(1000);
    const uint32_t space = below(2), n = below(100);
    const uint32_t what = below(100);
    FlowEntry* entry = table.find(space, below(2) ? make_id(n) : make_rewritten(n).reversed());
    NaiveFlows::Naive* expected = naive.find(space, n);
    ASSERT_EQ(entry != nullptr, expected != nullptr) << "step " << step;
    if (entry && what < 80) {
      ASSERT_EQ(entry->is_reply() ? entry->rewritten().reversed() : entry->id(), make_id(n));
      FlowTable::touch(entry->flow(), now);
      expected->last = now;
      if (below(5) == 0) {
        expected->life = static_cast<uint8_t>(below(FlowTable::kLives));
        table.set_life(entry->flow(), expected->life);
      }
    } else if (entry && what < 85) {
      FlowTable::Change(table).remove(entry->flow());
      naive.flows.erase(naive.flows.begin() + (expected - naive.flows.data()));
    } else if (what < 97) {
      ASSERT_EQ(insert(table, space, n, now) != nullptr, naive.insert(space, n, now)) << "step " << step;
    } else if (what < 99) {
      while (table.expire(now, 1 + static_cast<int>(below(20)))) {
      }
      naive.expire(now);
    } else {
      naive.capacity = 1 + below(80);
      table.set_capacity(static_cast<uint32_t>(naive.capacity));
      while (table.expire(now, 50)) {
      }
      naive.expire(now);
    }
    ASSERT_EQ(table.size(), naive.flows.size()) << "step " << step;
  }
  size_t seen = 0;
  table.for_each([&](const FlowRecord& flow) {
    ++seen;
    const bool known = std::any_of(naive.flows.begin(), naive.flows.end(), [&](const NaiveFlows::Naive& f) {
      return f.space == flow.space() && make_id(f.n) == flow.entry(false).id();
    });
    EXPECT_TRUE(known);
  });
  EXPECT_EQ(seen, naive.flows.size());
  EXPECT_EQ(table.count(0, 0) + table.count(1, 0), seen);
  table.remove_if([](const FlowRecord& flow) { return flow.space() == 0; });
  EXPECT_EQ(table.count(0, 0), 0u);
  table.remove_if([](const FlowRecord&) { return true; });
  EXPECT_EQ(table.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FlowTableRandom, ::testing::Range(0, 12));

TEST(FlowTable, AFloodStaysWithinItsMemory) {
  constexpr uint32_t kCapacity = 5000;
  FlowTable table(kCapacity);
  const uint32_t space = table.add_space("a", {0, {1000 * kMs, 0, 0}}, 1);
  for (uint32_t n = 0; n < 200000; ++n) ASSERT_TRUE(insert(table, space, n, n * kMs / 100));
  EXPECT_EQ(table.size(), kCapacity);
  EXPECT_LE(table.memory(), (kCapacity + kCapacity / 10 + FlowTable::kSpare + 512) * sizeof(FlowRecord));
  // The youngest are there.
  for (uint32_t n = 0; n < 200000; n += 997)
    EXPECT_EQ(table.find(space, make_id(n)) != nullptr, n >= 200000 - kCapacity);
}

TEST(FlowTable, MemoryIsBoundedWhileAReaderHoldsOn) {
  constexpr uint32_t kCapacity = 1000;
  FlowTable table(kCapacity);
  const uint32_t space = table.add_space("a", {0, {1000 * kMs, 0, 0}}, 1);
  rcu::Reader reader;
  uint32_t refused = 0;
  for (uint32_t n = 0; n < 10000; ++n) refused += insert(table, space, n, n * kMs) == nullptr;
  EXPECT_GT(refused, 0u);  // what was removed may still be looked at
  EXPECT_LE(table.memory(), (kCapacity + kCapacity / 10 + FlowTable::kSpare + 512) * sizeof(FlowRecord));
  reader.quiescent();
  EXPECT_TRUE(insert(table, space, 10000, 10000 * kMs));
}

TEST(FlowTable, GuaranteedFlowsAreNotDisplaced) {
  FlowTable table(3);
  const uint32_t space = table.add_space("a", {5000 * kMs, {300000 * kMs, 0, 0}}, 1);
  for (uint32_t n = 1; n <= 3; ++n) ASSERT_TRUE(insert(table, space, n, n * 100 * kMs));
  EXPECT_FALSE(insert(table, space, 4, 500 * kMs));
  FlowTable::touch(table.find(space, make_id(1))->flow(), 600 * kMs);
  EXPECT_TRUE(insert(table, space, 5, 5250 * kMs));  // 2 was guaranteed until 5200, 3 is until 5300
  EXPECT_EQ(table.find(space, make_id(2)), nullptr);
  EXPECT_FALSE(insert(table, space, 6, 5260 * kMs));
}

// --- Threads

TEST(FlowTable, ReadersSeeWholeFlowsWhileTheyComeAndGo) {
  constexpr uint32_t kCapacity = 400, kIds = 2000;
  constexpr int kChanges = 60000;
  FlowTable table(kCapacity);
  const uint32_t space = table.add_space("a", {0, {1000 * kMs, 2000 * kMs, 10 * kMs}}, 1);
  std::atomic<int> writers{2};
  std::atomic<int64_t> clock{0};
  std::atomic<uint64_t> found{0}, wrong{0};

  const auto check = [&](const FlowEntry* entry, uint32_t n) {
    if (!entry) return;
    found.fetch_add(1, std::memory_order_relaxed);
    const bool right = entry->is_reply() ? entry->rewritten() == make_id(n).reversed() && entry->output() == 1
                                         : entry->rewritten() == make_rewritten(n) && entry->output() == 0;
    if (!right) wrong.fetch_add(1, std::memory_order_relaxed);
  };
  const auto write = [&](unsigned seed) {
    rcu::Reader reader;
    std::mt19937 random(seed);
    for (int i = 0; i < kChanges; ++i) {
      const uint32_t n = random() % kIds;
      const int64_t now = clock.fetch_add(kMs, std::memory_order_relaxed);
      FlowEntry* entry = table.find(space, make_id(n));
      check(entry, n);
      if (!entry)
        insert(table, space, n, now);
      else if (random() % 8 == 0)
        table.set_life(entry->flow(), static_cast<uint8_t>(random() % FlowTable::kLives));
      else
        FlowTable::touch(entry->flow(), now);
      if (i % 64 == 0) reader.quiescent();
      if (i % 5000 == 0) table.expire(now, 100);
    }
    writers.fetch_sub(1);
  };
  const auto read = [&](unsigned seed) {
    rcu::Reader reader;
    std::mt19937 random(seed);
    while (writers.load() > 0) {
      for (int i = 0; i < 64; ++i) {
        const uint32_t n = random() % kIds;
        check(table.find(space, random() % 2 ? make_id(n) : make_rewritten(n).reversed()), n);
      }
      reader.quiescent();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 2; ++seed) threads.emplace_back(write, seed);
  for (unsigned seed = 2; seed < 4; ++seed) threads.emplace_back(read, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(found.load(), 1000u);
  EXPECT_LE(table.size(), kCapacity);
  uint32_t flows = 0;
  table.for_each([&](const FlowRecord&) { ++flows; });
  EXPECT_EQ(flows, table.size());
}

// --- Sequence numbers

TEST(SequenceShift, ShiftsWhatLiesBehindAChange) {
  SequenceShift shift;
  EXPECT_FALSE(shift.active(false));
  ASSERT_TRUE(shift.add(false, 30, -12));
  EXPECT_EQ(shift.sequence(false, 29), 29u);
  EXPECT_EQ(shift.sequence(false, 30), 18u);
  EXPECT_EQ(shift.sequence(true, 30), 30u);
  EXPECT_EQ(shift.acknowledgment(true, 18), 30u);
  EXPECT_EQ(shift.acknowledgment(true, 10), 10u);
  EXPECT_EQ(shift.acknowledgment(false, 18), 18u);
  EXPECT_FALSE(shift.add(false, 20, 1));   // before an earlier one
  ASSERT_TRUE(shift.add(false, 30, -12));  // again: a retransmission
  EXPECT_EQ(shift.total(false), -12);
  ASSERT_TRUE(shift.add(false, 65, -12));
  EXPECT_EQ(shift.sequence(false, 65), 41u);
  EXPECT_EQ(shift.sequence(false, 40), 28u);
  EXPECT_EQ(shift.sequence(false, 0), 0u);
}

TEST(SequenceShift, WrapsAndForgetsWhatIsFarBehind) {
  SequenceShift shift;
  const uint32_t near_end = 0xfffffff0;
  ASSERT_TRUE(shift.add(true, near_end, 100));
  EXPECT_EQ(shift.sequence(true, near_end + 0x20), 0x10u + 100);
  EXPECT_EQ(shift.acknowledgment(false, 0x10 + 100), 0x10u);
  EXPECT_FALSE(shift.outdated(true, near_end + 1000));
  ASSERT_TRUE(shift.outdated(true, near_end + (1u << 30)));
  shift.settle(true);
  EXPECT_EQ(shift.sequence(true, near_end - 5), near_end + 95);
  for (uint32_t i = 1; i <= 100; ++i) ASSERT_TRUE(shift.add(true, near_end + i, 1));
  EXPECT_EQ(shift.total(true), 200);
  EXPECT_EQ(shift.sequence(true, near_end + 100), near_end + 300);
}

}  // namespace
}  // namespace headrace
