/// \file
/// The table of masked entries against a linear list.

#include "tables/acl/acl_table.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "acl_naive.hh"
#include "headrace/rcu.hh"
#include "host_mirror.hh"
#include "support/source_dir.hh"
#include "tables/acl/acl_batch.hh"
#include "tables/acl/rule_file.hh"

namespace headrace {
namespace {

using Key = std::array<uint32_t, AclRule::kMostWords>;

/// A table and a list that get the same changes.
struct AclPair {
  explicit AclPair(const AclOptions& o) : options(o), table(o) {}

  void insert(uint32_t number, const AclRule& rule) {
    table.insert(number, rule);
    list.rules[number] = rule;
  }
  void remove(uint32_t number) {
    EXPECT_TRUE(table.remove(number));
    list.rules.erase(number);
  }
  /// Compares single lookups and a batch with the list.
  void compare(const std::vector<Key>& keys) {
    std::vector<uint32_t> packed;
    for (const Key& key : keys) packed.insert(packed.end(), key.begin(), key.begin() + options.words);
    std::vector<AclMatch> batch(keys.size());
    acl_find_batch(table.view(), packed.data(), batch.data(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint32_t expected = list.find(keys[i].data(), options.words);
      const AclMatch single = table.view().find(keys[i].data());
      ASSERT_EQ(single.number, expected) << "key " << i;
      ASSERT_EQ(batch[i].number, expected) << "key " << i;
      if (expected == AclMatch::kNone) continue;
      EXPECT_EQ(single.data, list.rules[expected].data);
      EXPECT_EQ(batch[i].data, list.rules[expected].data);
      EXPECT_EQ(single.priority, list.rules[expected].priority);
    }
  }

  AclOptions options;
  AclTable table;
  NaiveAcl list;
};

/// Rules with few different values, so that many overlap, and masks of all kinds.
AclRule random_rule(std::mt19937& random, uint32_t words) {
  AclRule rule;
  const bool prefixes = random() % 4 != 0;
  for (uint32_t i = 0; i < words; ++i) {
    if (i > 3 && random() % 4 != 0) continue;
    const uint32_t length = random() % 33;
    const uint32_t prefix = length == 0 ? 0 : ~uint32_t{0} << (32 - length);
    rule.mask[i] = random() % 3 == 0 ? 0 : prefixes ? prefix : static_cast<uint32_t>(random() & random());
    rule.value[i] = (random() % 3) * 0x55aa33cc & rule.mask[i];
  }
  if (random() % 2 == 0) {
    const uint32_t a = random() % 65536, b = a + random() % (65536 - a), c = random() % 100, d = 100 + random() % 20000;
    rule.mask[kAclPortWord] = rule.value[kAclPortWord] = 0;
    rule.low = a << 16 | c;
    rule.high = b << 16 | d;
  }
  rule.priority = random() % 50;
  rule.data = static_cast<uint32_t>(random());
  return rule;
}

Key random_key(std::mt19937& random, const NaiveAcl& list) {
  Key key{};
  for (uint32_t& word : key) word = (random() % 3) * 0x55aa33cc;
  key[kAclPortWord] = static_cast<uint32_t>(random());
  if (list.rules.empty() || random() % 4 == 0) return key;
  // Within a rule.
  auto it = list.rules.begin();
  std::advance(it, static_cast<long>(random() % list.rules.size()));
  const AclRule& rule = it->second;
  for (size_t i = 0; i < key.size(); ++i) key[i] = (key[i] & ~rule.mask[i]) | rule.value[i];
  if (rule.mask[kAclPortWord] == 0) {
    const auto pick = [&](uint32_t low, uint32_t high) {
      return low + static_cast<uint32_t>(random() % (high - low + 1));
    };
    key[kAclPortWord] = pick(rule.low >> 16, rule.high >> 16) << 16 | pick(rule.low & 0xffff, rule.high & 0xffff);
  }
  return key;
}

struct AclCase {
  uint32_t words;
  uint32_t collisions;
};

class AclTableRandom : public ::testing::TestWithParam<AclCase> {};

TEST_P(AclTableRandom, DecidesAsALinearListWhileEntriesComeAndGo) {
  const AclCase& c = GetParam();
  std::mt19937 random(c.words * 100 + c.collisions);
  AclPair pair({c.words, c.collisions, 77});
  uint32_t next = 0;
  std::vector<uint32_t> free;
  for (int step = 0; step < 60; ++step) {
    const bool shrink = step % 20 > 12;
    for (int i = 0; i < 40; ++i) {
      if (random() % 10 < (shrink ? 8u : 2u) && !pair.list.rules.empty()) {
        auto it = pair.list.rules.begin();
        std::advance(it, static_cast<long>(random() % pair.list.rules.size()));
        pair.remove(it->first);
      } else {
        const uint32_t number = free.empty() ? next++ : free.back();
        if (!free.empty()) free.pop_back();
        pair.insert(number, random_rule(random, c.words));
      }
    }
    pair.table.commit();
    ASSERT_EQ(pair.table.size(), pair.list.rules.size());
    std::vector<Key> keys;
    for (int i = 0; i < 150; ++i) keys.push_back(random_key(random, pair.list));
    pair.compare(keys);
    if (HasFatalFailure()) return;
    for (const uint32_t number : pair.table.settle()) free.push_back(number);
  }
  for (const auto& [number, rule] : pair.list.rules) {
    const auto read = pair.table.rule(number);
    ASSERT_TRUE(read);
    AclRule expected = AclTable::tightened(rule);
    for (uint32_t i = c.words; i < AclRule::kMostWords; ++i) expected.value[i] = expected.mask[i] = 0;
    EXPECT_EQ(*read, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, AclTableRandom,
                         ::testing::Values(AclCase{4, 1}, AclCase{4, 8}, AclCase{4, 40}, AclCase{12, 8},
                                           AclCase{12, 40}, AclCase{32, 8}, AclCase{32, 40}),
                         [](const auto& info) {
                           return fmt::format("{}Words{}Collisions", info.param.words, info.param.collisions);
                         });

/// Values that differ in single bits: hashes of different tuples must not follow from each other, and an entry that a hash
/// leads to may be of another tuple, with other words.
TEST(AclTable, DecidesAsALinearListAboutSmallValues) {
  for (const uint32_t words : {4u, 12u, 32u}) {
    std::mt19937 random(words);
    for (int round = 0; round < 20; ++round) {
      AclPair pair({words, 40, 77});
      for (uint32_t number = 0; number < 60; ++number) {
        AclRule rule;
        for (uint32_t i = 0; i < words; ++i) {
          if (random() % 3 != 0) continue;
          rule.mask[i] = random() % 2 == 0 ? 0xffffffff : random() % 2 == 0 ? 0xfffffffe : 0xff000000;
          rule.value[i] = random() % 2 & rule.mask[i];
        }
        rule.priority = 1 + random() % 3;
        pair.insert(number, rule);
      }
      pair.table.commit();
      std::vector<Key> keys(100);
      for (Key& key : keys)
        for (uint32_t i = 0; i < words; ++i) key[i] = random() % 2;
      pair.compare(keys);
      if (HasFatalFailure()) return;
    }
  }
}

/// A table of few entries is one group. It stops being one when there are more, and readers of before go on with it.
TEST(AclTable, DecidesAsALinearListWhenFewEntriesBecomeMany) {
  for (const uint32_t words : {4u, 12u, 32u}) {
    std::mt19937 random(words);
    for (int round = 0; round < 20; ++round) {
      AclPair pair({words, 40, 5});
      const auto compare = [&] {
        std::vector<Key> keys;
        for (int i = 0; i < 100; ++i) keys.push_back(random_key(random, pair.list));
        pair.compare(keys);
      };
      uint32_t next = 0;
      for (int step = 0; step < 60; ++step) {
        if (random() % 3 == 0 && !pair.list.rules.empty()) {
          auto it = pair.list.rules.begin();
          std::advance(it, static_cast<long>(random() % pair.list.rules.size()));
          pair.remove(it->first);
        } else {
          pair.insert(next++, random_rule(random, words));
        }
        const size_t most = pair.list.rules.size();
        pair.table.commit();
        if (next <= AclGroups::kFew) {
          EXPECT_EQ(pair.table.groups().tuple_count(), 1u) << step;
        }
        EXPECT_FALSE(pair.table.groups().outgrown(most)) << step;
        compare();
      }
      while (!pair.list.rules.empty()) {
        pair.remove(pair.list.rules.begin()->first);
        if (random() % 4 == 0) {
          pair.table.commit();
          compare();
        }
      }
    }
  }
}

TEST(AclTable, FindsAmongEqualPrioritiesTheLowestNumber) {
  AclPair pair({});
  for (const uint32_t number : {7u, 3u, 5u}) pair.insert(number, {});
  pair.table.commit();
  EXPECT_EQ(pair.table.view().find(Key{}.data()).number, 3u);
  pair.remove(3);
  pair.table.commit();
  EXPECT_EQ(pair.table.view().find(Key{}.data()).number, 5u);
}

TEST(AclTable, ShowsChangesOnlyWithTheirCommit) {
  AclTable table({});
  AclRule low, high;
  high.priority = 2;
  table.insert(0, low);
  EXPECT_EQ(table.view().find(Key{}.data()).number, AclTable::kNone);
  table.commit();
  EXPECT_EQ(table.view().find(Key{}.data()).number, 0u);
  table.insert(1, high);
  EXPECT_TRUE(table.remove(0));
  EXPECT_FALSE(table.remove(0));
  EXPECT_EQ(table.view().find(Key{}.data()).number, 0u);
  table.commit();
  EXPECT_EQ(table.view().find(Key{}.data()).number, 1u);
}

TEST(AclTable, TakesBackWhatWasNotCommitted) {
  std::mt19937 random(5);
  AclPair pair({4, 8, 1});
  for (uint32_t i = 0; i < 300; ++i) pair.insert(i, random_rule(random, 4));
  pair.table.commit();
  for (uint32_t i = 300; i < 500; ++i) pair.table.insert(i, random_rule(random, 4));
  for (uint32_t i = 0; i < 400; i += 3) EXPECT_TRUE(pair.table.remove(i));
  pair.table.take_back();
  EXPECT_EQ(pair.table.size(), 300u);
  pair.table.commit();
  std::vector<Key> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(random_key(random, pair.list));
  pair.compare(keys);
  // What was taken back is free at once.
  EXPECT_EQ(pair.table.settle().size(), 200u);
}

/// What has gone leaves tuples behind in the tries, which then are made anew alone; a view from before goes on with its own.
TEST(AclTable, MakesTriesAnewWhileAddressesComeAndGo) {
  std::mt19937 random(6);
  AclPair pair({4, 8, 1});
  rcu::Reader reader;
  const auto one_address = [&] {
    AclRule rule;
    rule.value[random() % 2] = static_cast<uint32_t>(random());
    for (int side = 0; side < 2; ++side) rule.mask[side] = rule.value[side] != 0 ? 0xffffffff : 0xff000000;
    rule.priority = static_cast<uint32_t>(random() % 100);
    return rule;
  };
  const AclGroups* groups = nullptr;
  size_t renewals = 0, before = 0;
  for (uint32_t i = 0; i < 6000; ++i) {
    const AclView old = pair.table.view();
    pair.insert(i, one_address());
    if (i == 2 * AclGroups::kFew) groups = &pair.table.groups();
    if (i >= 500) pair.remove(i - 500);
    pair.table.commit();
    const size_t coarsenings = pair.table.groups().trie_coarsenings();
    const bool renewed = coarsenings < before;
    renewals += renewed ? 1 : 0;
    before = coarsenings;
    if (renewed || i % 500 == 0) {
      std::vector<Key> keys;
      for (int n = 0; n < 200; ++n) keys.push_back(random_key(random, pair.list));
      pair.compare(keys);
    }
    if (renewed) {
      // Those who came before do not see what comes now.
      const uint32_t later = 100000 + i;
      AclRule rule = one_address();
      rule.priority = 200;
      pair.insert(later, rule);
      pair.table.commit();
      Key key{};
      std::copy(rule.value.begin(), rule.value.begin() + 4, key.begin());
      EXPECT_EQ(pair.table.view().find(key.data()).number, later);
      EXPECT_NE(old.find(key.data()).number, later);
      pair.remove(later);
      pair.table.commit();
    }
    if (HasFatalFailure()) return;
    reader.quiescent();
    pair.table.settle();
  }
  EXPECT_GT(renewals, 2u);
  EXPECT_EQ(&pair.table.groups(), groups) << "all was made anew";
}

TEST(AclTable, ReplacesDataAtOnce) {
  AclTable table({});
  table.insert(4, {});
  table.commit();
  EXPECT_TRUE(table.set_data(4, 99));
  EXPECT_FALSE(table.set_data(5, 99));
  EXPECT_EQ(table.view().find(Key{}.data()).data, 99u);
  EXPECT_EQ(table.rule(4)->data, 99u);
}

TEST(AclTable, FreesANumberWhenReadersHaveMovedOn) {
  AclTable table({});
  rcu::Reader reader;
  table.insert(0, {});
  table.commit();
  EXPECT_TRUE(table.remove(0));
  table.commit();
  EXPECT_TRUE(table.settle().empty());
  reader.quiescent();
  EXPECT_EQ(table.settle(), std::vector<uint32_t>{0});
}

/// Entries that only ports and priorities tell apart make one long chain of blocks.
TEST(AclTable, KeepsALongGroupInOrder) {
  AclPair pair({});
  std::mt19937 random(3);
  for (uint32_t i = 0; i < 3000; ++i) {
    AclRule rule;
    const uint32_t port = random() % 65000;
    rule.low = port << 16;
    rule.high = (port + random() % 500) << 16 | 0xffff;
    rule.priority = static_cast<uint32_t>(random() % 1000);
    pair.insert(i, rule);
  }
  pair.table.commit();
  std::vector<Key> keys;
  for (int i = 0; i < 400; ++i) {
    Key key{};
    key[kAclPortWord] = static_cast<uint32_t>(random());
    keys.push_back(key);
  }
  pair.compare(keys);
  for (uint32_t i = 0; i < 3000; i += 2) pair.remove(i);
  pair.table.commit();
  pair.table.settle();
  pair.compare(keys);
}

TEST(AclTable, HasRoomForMoreMasksThanTuples) {
  AclPair pair({12, 4, 9});
  std::mt19937 random(11);
  std::set<std::array<uint32_t, 12>> masks;
  for (uint32_t i = 0; i < 2000; ++i) {
    AclRule rule;
    std::array<uint32_t, 12> mask{};
    do {
      for (uint32_t& word : mask) word = static_cast<uint32_t>(random() & random());
    } while (!masks.insert(mask).second);
    std::copy(mask.begin(), mask.end(), rule.mask.begin());
    for (uint32_t w = 0; w < 12; ++w) rule.value[w] = static_cast<uint32_t>(random() % 2) * rule.mask[w];
    rule.priority = i % 100;
    pair.insert(i, rule);
  }
  pair.table.commit();
  EXPECT_LE(pair.table.groups().tuple_count(), kAclTuples);
  std::vector<Key> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(random_key(random, pair.list));
  pair.compare(keys);
}

/// A header within a rule, uniform in what the rule leaves open.
Key key_within(std::mt19937& random, const AclRule& rule) {
  Key key{};
  for (uint32_t i = 0; i < 4; ++i) key[i] = rule.value[i] | (static_cast<uint32_t>(random()) & ~rule.mask[i]);
  const auto pick = [&](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random() % (high - low + 1));
  };
  key[kAclPortWord] = pick(rule.low >> 16, rule.high >> 16) << 16 | pick(rule.low & 0xffff, rule.high & 0xffff);
  return key;
}

void check_set(const std::string& path, size_t rules, int keys_checked) {
  std::vector<FlowRule> read;
  std::vector<std::string> problems;
  ASSERT_EQ(read_flow_rules(path, read, problems), "");
  ASSERT_TRUE(problems.empty()) << problems.front();
  ASSERT_EQ(read.size(), rules);
  AclPair pair({});
  for (uint32_t i = 0; i < read.size(); ++i) pair.insert(i, acl_rule(read[i], i));
  pair.table.commit();
  std::mt19937 random(1);
  std::vector<Key> keys;
  for (int i = 0; i < keys_checked; ++i) keys.push_back(key_within(random, pair.list.rules[random() % read.size()]));
  for (int i = 0; i < keys_checked / 4; ++i) {
    Key key = key_within(random, pair.list.rules[random() % read.size()]);
    key[random() % 3] = static_cast<uint32_t>(random());
    keys.push_back(key);
  }
  pair.compare(keys);
  // And without a third of the rules, one after the other.
  for (uint32_t i = 0; i < read.size(); i += 3) pair.remove(i);
  pair.table.commit();
  pair.table.settle();
  pair.compare(keys);
}

TEST(AclTable, DecidesAsALinearListOnClassBenchSamples) {
  const std::string folder = kSourceDir + "/tests/data/classbench/";
  check_set(folder + "acl1_sample.rules", 118, 2000);
  check_set(folder + "fw1_sample.rules", 108, 2000);
  check_set(folder + "ipc1_sample.rules", 120, 2000);
}

/// The sets of an archive, as long as it lives.
struct UnpackedSets {
  explicit UnpackedSets(const std::string& archive)
      : folder(std::filesystem::temp_directory_path() / fmt::format("headrace-sets-{}", ::getpid())) {
    std::filesystem::create_directories(folder);
    good = std::system(fmt::format("tar -xf '{}' -C '{}'", archive, folder.string()).c_str()) == 0;
  }
  ~UnpackedSets() { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
  bool good = false;
};

TEST(AclTable, DecidesAsALinearListOnClassBench) {
  const std::string archive =
      kSourceDir + "/../shared/data/classbench/classbench-acl1-fw1-ipc1_1k_10k_neurocuts.tar.xz";
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << archive << " is not there";
  const UnpackedSets sets(archive);
  ASSERT_TRUE(sets.good);
  constexpr std::pair<const char*, size_t> kSets[] = {{"acl1_1k", 942},   {"fw1_1k", 857},   {"ipc1_1k", 974},
                                                      {"acl1_10k", 9774}, {"fw1_10k", 9379}, {"ipc1_10k", 9518}};
  for (const auto& [set, rules] : kSets) check_set(sets.folder / set, rules, 600);
}

/// A copy that follows by changed pages, as that of a device does.
TEST(AclTable, ACopyFollowsByChangedPages) {
  std::mt19937 random(8);
  AclTable table({4, 8, 3});
  NaiveAcl list;
  HostMirror mirror;
  uint32_t next = 0;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 60; ++i) {
      if (random() % 3 == 0 && !list.rules.empty()) {
        auto it = list.rules.begin();
        std::advance(it, static_cast<long>(random() % list.rules.size()));
        table.remove(it->first);
        list.rules.erase(it);
      } else {
        const AclRule rule = random_rule(random, 4);
        table.insert(next, rule);
        list.rules[next++] = rule;
      }
    }
    table.commit();
    table.settle();
    const AclView copy = table.mirror(mirror);
    for (int i = 0; i < 100; ++i) {
      const Key key = random_key(random, list);
      ASSERT_EQ(copy.find(key.data()).number, list.find(key.data(), 4));
    }
  }
  // Little is copied for one more change.
  mirror.copied = 0;
  table.insert(next, random_rule(random, 4));
  table.commit();
  table.mirror(mirror);
  EXPECT_LT(mirror.copied, 20000u);
}

}  // namespace
}  // namespace headrace
