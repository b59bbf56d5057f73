/// \file
/// The hash table against a multimap, also while threads look up in it.

#include "tables/hash/hash_table.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"

namespace headrace {
namespace {

std::vector<uint32_t> values_of(const HashView& view, uint32_t hash) {
  std::vector<uint32_t> values;
  view.each(hash, [&](uint32_t value) {
    values.push_back(value);
    return false;
  });
  std::sort(values.begin(), values.end());
  return values;
}

/// What readers get the view from.
struct PublishedView {
  HashView view;
};

class HashTableTest : public ::testing::TestWithParam<uint32_t> {};

/// \param GetParam() different hashes: few make long chains
TEST_P(HashTableTest, HoldsWhatAMultimapHolds) {
  std::mt19937 random(GetParam());
  HashTable table;
  std::multimap<uint32_t, uint32_t> naive;
  const auto any_hash = [&] { return static_cast<uint32_t>(random() % GetParam()) * 0x9e3779b9u; };
  uint32_t next = 1;
  for (int step = 0; step < 20000; ++step) {
    const bool grow = step < 12000;
    if (naive.empty() || random() % 10 < (grow ? 8u : 2u)) {
      const uint32_t hash = any_hash();
      table.insert(hash, next);
      naive.emplace(hash, next++);
    } else {
      const auto it = naive.lower_bound(any_hash());
      if (it == naive.end()) continue;
      if (random() % 2 == 0) {
        EXPECT_TRUE(table.erase(it->first, it->second));
        EXPECT_FALSE(table.erase(it->first, it->second));
        naive.erase(it);
      } else {
        EXPECT_TRUE(table.replace(it->first, it->second, next));
        it->second = next++;
      }
    }
    ASSERT_EQ(table.size(), naive.size());
    if (step % 100 != 0) continue;
    for (uint32_t i = 0; i < std::min(20u, GetParam()); ++i) {  // there are no more hashes than that
      const uint32_t hash = any_hash();
      std::vector<uint32_t> expected;
      for (auto [at, end] = naive.equal_range(hash); at != end; ++at) expected.push_back(at->second);
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(values_of(table.view(), hash), expected);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Hashes, HashTableTest, ::testing::Values(1u, 3u, 500u, 1000000u));

TEST(HashTable, KeepsBucketsShortWhenHashesAreEven) {
  HashTable table;
  std::mt19937 random(1);
  for (uint32_t i = 1; i <= 200000; ++i) table.insert(static_cast<uint32_t>(random()), i);
  size_t continued = 0;
  const HashView view = table.view();
  for (size_t i = 0; i <= view.mask(); ++i) continued += view.buckets()[i].next != 0 ? 1 : 0;
  EXPECT_LT(continued * 25, view.mask());
}

/// Buckets that continued others serve again, so that a table of steady size does not grow.
TEST(HashTable, StaysAsLargeAsItIsWhileValuesComeAndGo) {
  constexpr uint32_t kPairs = 4000;
  HashTable table(kPairs);
  const size_t buckets = table.bucket_count();
  std::mt19937 random(4);
  std::vector<std::pair<uint32_t, uint32_t>> there;
  for (uint32_t i = 1; i <= 3'000'000; ++i) {
    if (there.size() == kPairs) {
      std::swap(there[random() % kPairs], there.back());
      ASSERT_TRUE(table.erase(there.back().first, there.back().second));
      there.pop_back();
    }
    there.emplace_back(static_cast<uint32_t>(random()), i);
    table.insert(there.back().first, i);
  }
  EXPECT_EQ(table.bucket_count(), buckets);
  EXPECT_EQ(table.size(), kPairs);
  for (const auto& [hash, value] : there) {
    const std::vector<uint32_t> values = values_of(table.view(), hash);
    EXPECT_NE(std::find(values.begin(), values.end(), value), values.end());
  }
}

/// Nor while a reader holds buckets: they rest until it has moved on.
TEST(HashTable, ABucketRestsWhileAReaderMayBeInIt) {
  HashTable table(64);
  for (uint32_t i = 1; i <= 8; ++i) table.insert(5, i);
  rcu::Reader reader;
  const uint32_t continuation = table.view().buckets()[5 & table.view().mask()].next;
  ASSERT_NE(continuation, 0u);
  ASSERT_TRUE(table.erase(5, 8));
  EXPECT_EQ(table.view().buckets()[5 & table.view().mask()].next, 0u);
  table.insert(5, 9);
  const uint32_t other = table.view().buckets()[5 & table.view().mask()].next;
  EXPECT_NE(other, continuation);
  reader.quiescent();
  ASSERT_TRUE(table.erase(5, 9));
  table.insert(5, 10);
  EXPECT_EQ(table.view().buckets()[5 & table.view().mask()].next, continuation);
  EXPECT_EQ(values_of(table.view(), 5), (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 10}));
}

/// What is in the table all the time is found all the time; other values come and go around it.
TEST(HashTable, IsReadByThreadsWhileItChanges) {
  constexpr uint32_t kStay = 64;
  HashTable table;
  for (uint32_t i = 0; i < kStay; ++i) table.insert(i * 0x10001u, 1 + i);
  std::atomic<const PublishedView*> current{nullptr};
  PublishedView first{table.view()};
  current = &first;
  std::atomic<bool> stop{false};
  std::atomic<size_t> missed{0}, looked{0};
  std::thread reader([&] {
    rcu::Reader online;
    while (!stop) {
      const HashView view = current.load(std::memory_order_acquire)->view;
      for (uint32_t i = 0; i < kStay; ++i) {
        bool found = false;
        view.each(i * 0x10001u, [&](uint32_t value) { return found = value == 1 + i; });
        if (!found) ++missed;
        ++looked;
      }
      online.quiescent();
    }
  });
  while (looked == 0) std::this_thread::yield();
  std::mt19937 random(2);
  std::vector<std::unique_ptr<PublishedView>> generations;
  std::vector<std::pair<uint32_t, uint32_t>> there;
  for (uint32_t i = 0; i < 30000; ++i) {
    const uint32_t hash = static_cast<uint32_t>(random() % 4096) * 0x10001u;
    if (i % 256 == 0) std::this_thread::yield();
    if (table.full()) {
      table.renew();
      generations.push_back(std::make_unique<PublishedView>(PublishedView{table.view()}));
      current.store(generations.back().get(), std::memory_order_release);
    }
    table.insert(hash, 1000 + i);
    there.emplace_back(hash, 1000 + i);
    if (random() % 3 != 0) {
      const size_t gone = random() % there.size();
      table.erase(there[gone].first, there[gone].second);
      there[gone] = there.back();
      there.pop_back();
    }
  }
  stop = true;
  reader.join();
  rcu::reclaim();
  EXPECT_EQ(missed, 0u);
}

}  // namespace
}  // namespace headrace
