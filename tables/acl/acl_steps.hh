#pragma once
/// \file
/// Lookups of many keys at a time on a CPU: what does not depend on its kind.
///
/// All keys take the same step before one takes the next, so that their cache misses are under way together, and so that what
/// they find does not become a branch that nobody can predict: groups are compared by the size of their blocks.

#include <algorithm>
#include <cstddef>

#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_view.hh"

namespace headrace::acl_steps {

/// Keys that go through the steps together: their state fits into the first-level cache.
inline constexpr uint32_t kRun = 64;
/// Kinds of blocks, by AclBlock::shift().
inline constexpr uint32_t kSizes = AclBlock::kLargest + 1;

/// The state of keys on their way.
struct Run {
  struct Item {
    uint32_t key, block;
  };
  uint64_t tuples[kRun];  ///< that are still to be asked, by key
  uint32_t active[kRun];  ///< keys of this round
  uint32_t hashes[kRun];  ///< by place in `active`
  Item groups[kSizes][kRun];
  uint32_t group_counts[kSizes];
};

/// Where an address's word of the next level of a trie is, behind the word at `index`; the same place, if that names a set.
/// Without a branch, which would depend on the address: a node lies behind those that lead to it, and what names a set is
/// negative.
[[gnu::always_inline]] inline int64_t step_down(const uint16_t* words, int64_t index, uint32_t byte) {
  const int64_t word = static_cast<int16_t>(load_shared(words + index));
  return std::max<int64_t>(word * AclTrieView::kNodeWords | byte, index);
}

/// Hashes a key for the next of its tuples, and asks for the bucket.
template <uint32_t kWords>
[[gnu::always_inline]] inline uint32_t hash_key(const AclGeneration& table, const uint32_t* key, uint64_t tuples) {
  // What has no tuple is hashed as well, so that there is no branch.
  const uint32_t tuple = lowest_bit(tuples | uint64_t{1} << (kAclTuples - 1));
  const uint32_t hash = acl_hash<kWords>(key, table.masks + tuple * kWords, acl_seed(table.seed, tuple));
  table.groups.prefetch(hash);
  return hash;
}

/// The tuples of a key.
[[gnu::always_inline]] inline uint64_t tuples_of(const AclGeneration& table, const uint32_t* key) {
  const uint16_t* const first = table.tries[0].words();
  const uint16_t* const second = table.tries[1].words();
  const uint32_t a = key[0], b = key[1];
  const int64_t x = step_down(first, step_down(first, a >> 16, a >> 8 & 0xff), a & 0xff);
  const int64_t y = step_down(second, step_down(second, b >> 16, b >> 8 & 0xff), b & 0xff);
  return table.tries[0].set(load_shared(first + x)) & table.tries[1].set(load_shared(second + y));
}

/// Takes the first tuple of each of `n` keys. Returns how many have some.
template <uint32_t kWords>
[[gnu::always_inline]] inline uint32_t first_tuples(const AclGeneration& shared, const uint32_t* keys, uint32_t n,
                                                    Run& run) {
  const AclGeneration table = shared;
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t tuples = run.tuples[i];
    run.hashes[count] = hash_key<kWords>(table, keys + i * kWords, tuples);
    run.tuples[i] = tuples & (tuples - 1);
    run.active[count] = i;
    count += tuples != 0 ? 1 : 0;
  }
  return count;
}

/// Takes another tuple of each active key.
template <uint32_t kWords>
[[gnu::always_inline]] inline void next_tuples(const AclGeneration& table, const uint32_t* keys, uint32_t count,
                                               Run& run) {
  for (uint32_t j = 0; j < count; ++j) {
    const uint32_t i = run.active[j];
    const uint64_t tuples = run.tuples[i];
    run.hashes[j] = hash_key<kWords>(table, keys + i * kWords, tuples);
    run.tuples[i] = tuples & (tuples - 1);
  }
}

/// Looks up groups, and sorts them by the size of their first block.
template <uint32_t kWords, typename Cpu>
[[gnu::always_inline]] inline void find_groups(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                               uint32_t count, Run& run) {
  const HashView groups = lookup.table().groups;
  const AclCell* const cells = lookup.table().cells;
  for (uint32_t& size : run.group_counts) size = 0;
  for (uint32_t j = 0; j < count; ++j) {
    const uint32_t i = run.active[j];
    const uint32_t block = Cpu::template group_of<kWords>(lookup, groups, run.hashes[j], keys + i * kWords, matches[i]);
    prefetch_line(cells + AclBlock::cell(block));
    const uint32_t size = AclBlock::shift(block);
    run.groups[size][run.group_counts[size]++] = {i, block};
  }
}

/// Compares keys with the entries of groups whose first blocks have 2^kShift of them.
template <uint32_t kWords, uint32_t kShift, typename Cpu>
[[gnu::always_inline]] inline void compare_groups(const AclLookup<kWords>& lookup, const uint32_t* keys,
                                                  AclMatch* matches, const Run& run) {
  const Run::Item* const items = run.groups[kShift];
  const uint32_t count = run.group_counts[kShift];
  for (uint32_t k = 0; k < count; ++k) {
    const Run::Item item = items[k];
    Cpu::template compare<kWords, kShift>(lookup, item.block, keys + item.key * kWords, matches[item.key]);
  }
}

/// Compares keys with all entries of a table, whose first block has 2^kShift of them.
template <uint32_t kWords, uint32_t kShift, typename Cpu>
[[gnu::always_inline]] inline void scan(const AclLookup<kWords>& shared, uint32_t block, const uint32_t* keys,
                                        AclMatch* matches, size_t n) {
  const AclLookup<kWords> lookup = shared;
  for (size_t i = 0; i < n; ++i) {
    AclMatch match;
    Cpu::template compare<kWords, kShift>(lookup, block, keys + i * kWords, match);
    matches[i] = match;
  }
}
template <uint32_t kWords, typename Cpu>
[[gnu::always_inline]] inline void scan_all(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* keys,
                                            AclMatch* matches, size_t n) {
  switch (AclBlock::shift(block)) {
    case 0:
      return scan<kWords, 0, Cpu>(lookup, block, keys, matches, n);
    case 1:
      return scan<kWords, 1, Cpu>(lookup, block, keys, matches, n);
    case 2:
      return scan<kWords, 2, Cpu>(lookup, block, keys, matches, n);
    case 3:
      return scan<kWords, 3, Cpu>(lookup, block, keys, matches, n);
    default:
      return scan<kWords, AclBlock::kLargest, Cpu>(lookup, block, keys, matches, n);
  }
}

/// Keeps the keys that must go on with another tuple, and returns how many there are.
[[gnu::always_inline]] inline uint32_t keep_active(const AclIndex& index, const AclMatch* matches, uint32_t count,
                                                   Run& run) {
  uint32_t left = 0;
  for (uint32_t j = 0; j < count; ++j) {
    const uint32_t i = run.active[j];
    const uint64_t tuples = run.tuples[i];
    const uint32_t best = load_shared(&index.best[lowest_bit(tuples | uint64_t{1} << (kAclTuples - 1))]);
    run.active[left] = i;
    left += (tuples != 0 ? 1u : 0u) & (best >= matches[i].priority ? 1u : 0u);
  }
  return left;
}

/// The steps for a kind of processor. `Cpu` has its functions `group_of` and `compare`, and calls these from functions that
/// are compiled for it: see acl_batch.cc.
template <uint32_t kWords, typename Cpu>
[[gnu::always_inline]] inline void find_all(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
  const AclLookup<kWords> lookup(*view.generation());
  const AclGeneration& table = lookup.table();
  // A table of few entries needs no hashes.
  if (const uint32_t only = load_shared(&table.index->only_group); only != 0)
    return Cpu::template few<kWords>(lookup, only, keys, matches, n);
  Run run;
  for (size_t at = 0; at < n; at += kRun, keys += kRun * kWords, matches += kRun) {
    const auto part = static_cast<uint32_t>(std::min<size_t>(n - at, kRun));
    std::fill_n(matches, part, AclMatch());
    Cpu::template tuples<kWords>(table, keys, part, run);
    uint32_t count = first_tuples<kWords>(table, keys, part, run);
    while (count > 0) {
      Cpu::template groups<kWords>(lookup, keys, matches, count, run);
      Cpu::template entries<kWords>(lookup, keys, matches, run);
      count = keep_active(*table.index, matches, count, run);
      next_tuples<kWords>(table, keys, count, run);
    }
  }
}

}  // namespace headrace::acl_steps
