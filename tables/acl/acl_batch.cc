/// \file
/// Lookups of many keys at a time on a CPU. All take the same step before one takes the next, so that their cache misses
/// are under way together.

#include "tables/acl/acl_batch.hh"

#include <cstring>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {

namespace {

/// Keys that go through the steps together: their state fits into the first-level cache.
constexpr uint32_t kAclRun = 64;

/// The state of keys on their way.
struct AclRun {
  uint64_t tuples[kAclRun];  ///< that are still to be asked, by key
  uint32_t active[kAclRun];  ///< keys with such tuples
  uint32_t left[kAclRun];    ///< those of them that go on
  uint32_t hashes[kAclRun];  ///< by place in `active`
  uint32_t blocks[kAclRun];  ///< the same; 0: the tuple has no such group
  /// Places in `active` of groups with one entry, or none, and of others. What they have is unpredictable for a branch.
  uint32_t singles[kAclRun], several[kAclRun];
  uint32_t single_count, several_count;
};

/// A step down a trie, without a branch that depends on an address.
[[gnu::always_inline]] inline uint32_t step_down(const uint16_t* words, uint32_t word, uint32_t byte) {
  const uint32_t is_node = 0u - (word >> 15);
  const uint32_t below = load_shared(words + (static_cast<uint32_t>(AclTrieView::at(word, byte)) & is_node));
  return word ^ ((word ^ below) & is_node);
}

/// Finds the tuples of each key. Returns how many have some.
template <uint32_t kWords>
[[gnu::always_inline]] inline uint32_t find_tuples(const AclGeneration& table, const uint32_t* keys, uint32_t n,
                                                   AclRun& run) {
  const uint16_t* const first = table.tries[0].words();
  const uint16_t* const second = table.tries[1].words();
  const uint64_t wide0 = load_shared(&table.index->wide[0]), wide1 = load_shared(&table.index->wide[1]);
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t a = keys[i * kWords], b = keys[i * kWords + 1];
    uint32_t x = load_shared(first + (a >> 16)), y = load_shared(second + (b >> 16));
    x = step_down(first, x, a >> 8 & 0xff);
    y = step_down(second, y, b >> 8 & 0xff);
    x = step_down(first, x, a & 0xff);
    y = step_down(second, y, b & 0xff);
    const uint64_t tuples = (table.tries[0].set(x) | wide0) & (table.tries[1].set(y) | wide1);
    run.tuples[i] = tuples;
    run.active[count] = i;
    count += tuples != 0 ? 1 : 0;
  }
  return count;
}

/// Takes a tuple of each active key and hashes the key for it.
template <uint32_t kWords>
[[gnu::always_inline]] inline void hash_keys(const AclLookup<kWords>& lookup, const uint32_t* keys, uint32_t count,
                                             AclRun& run) {
  const AclGeneration& table = lookup.table();
  const uint32_t* const masks = table.masks;
  const uint64_t seed = table.seed;
  const HashView groups = table.groups;
  for (uint32_t j = 0; j < count; ++j) {
    uint64_t& tuples = run.tuples[run.active[j]];
    const uint32_t tuple = lowest_bit(tuples);
    tuples &= tuples - 1;
    const uint32_t hash =
        acl_hash<kWords>(keys + run.active[j] * kWords, masks + tuple * kWords, acl_seed(seed, tuple));
    run.hashes[j] = hash;
    groups.prefetch(hash);
  }
}

/// Looks up groups, and compares the keys with those that it comes across in passing: with all but the last one.
template <uint32_t kWords, typename Steps>
[[gnu::always_inline]] inline void find_groups(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                               uint32_t count, AclRun& run) {
  const HashView groups = lookup.table().groups;
  const AclCell* const cells = lookup.table().cells;
  uint32_t singles = 0, several = 0;
  for (uint32_t j = 0; j < count; ++j) {
    const uint32_t i = run.active[j];
    const uint32_t block =
        Steps::template last_group<kWords>(lookup, groups, run.hashes[j], keys + i * kWords, matches[i]);
    prefetch_line(cells + AclBlock::cell(block));
    run.blocks[j] = block;
    const uint32_t single = AclBlock::shift(block) == 0 ? 1 : 0;
    run.singles[singles] = run.several[several] = j;
    singles += single;
    several += 1 - single;
  }
  run.single_count = singles;
  run.several_count = several;
}

/// Compares keys with the entries of groups. Returns how many keys have a tuple left.
template <uint32_t kWords, typename Steps>
[[gnu::always_inline]] inline uint32_t compare_groups(const AclLookup<kWords>& lookup, const uint32_t* keys,
                                                      AclMatch* matches, AclRun& run) {
  const AclIndex& index = *lookup.table().index;
  uint32_t left = 0;
  const auto end_round = [&](uint32_t i) {
    // Without a branch, for it would be a guess.
    const uint64_t tuples = run.tuples[i];
    const uint32_t best = load_shared(&index.best[lowest_bit(tuples | uint64_t{1} << 63)]);
    run.tuples[i] = tuples & (uint64_t{0} - (best >= matches[i].priority ? 1 : 0));
    run.left[left] = i;
    left += run.tuples[i] != 0 ? 1 : 0;
  };
  for (uint32_t k = 0; k < run.single_count; ++k) {
    const uint32_t j = run.singles[k], i = run.active[j];
    Steps::template compare_single<kWords>(lookup, run.blocks[j], keys + i * kWords, matches[i]);
    end_round(i);
  }
  for (uint32_t k = 0; k < run.several_count; ++k) {
    const uint32_t j = run.several[k], i = run.active[j];
    Steps::template compare<kWords>(lookup, run.blocks[j], keys + i * kWords, matches[i]);
    end_round(i);
  }
  std::memcpy(run.active, run.left, left * sizeof(uint32_t));
  return left;
}

/// How a CPU without long vectors looks into buckets and blocks.
struct PlainAclSteps {
  /// The last group of a hash, or 0; compares the key with those before it.
  template <uint32_t kWords>
  static uint32_t last_group(const AclLookup<kWords>& lookup, const HashView& groups, uint32_t hash,
                             const uint32_t* key, AclMatch& match) {
    uint32_t last = 0;
    groups.each(hash, [&](uint32_t block) {
      if (last != 0) [[unlikely]]
        compare<kWords>(lookup, last, key, match);
      last = block;
      return false;
    });
    return last;
  }
  template <uint32_t kWords>
  static void compare(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* key, AclMatch& found) {
    lookup.compare(block, key, found);
  }
  template <uint32_t kWords>
  static void compare_single(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* key, AclMatch& found) {
    if (block != 0) lookup.compare(block, key, found);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static uint32_t tuples(const AclGeneration& table, const uint32_t* keys, uint32_t n, AclRun& run) {
    return find_tuples<kWords>(table, keys, n, run);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static void hash(const AclLookup<kWords>& lookup, const uint32_t* keys, uint32_t n, AclRun& run) {
    hash_keys<kWords>(lookup, keys, n, run);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static void groups(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                       uint32_t n, AclRun& run) {
    find_groups<kWords, PlainAclSteps>(lookup, keys, matches, n, run);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static uint32_t entries(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                            AclRun& run) {
    return compare_groups<kWords, PlainAclSteps>(lookup, keys, matches, run);
  }
};

/// Runs all keys through the steps of `Steps`, whose functions are compiled for its processor.
template <uint32_t kWords, typename Steps>
void find_all(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
  const AclLookup<kWords> lookup(*view.generation());
  AclRun run;
  for (size_t at = 0; at < n; at += kAclRun) {
    const auto part = static_cast<uint32_t>(n - at < kAclRun ? n - at : kAclRun);
    for (uint32_t i = 0; i < part; ++i) matches[at + i] = AclMatch();
    const uint32_t* const part_keys = keys + at * kWords;
    uint32_t count = Steps::template tuples<kWords>(lookup.table(), part_keys, part, run);
    while (count > 0) {
      Steps::template hash<kWords>(lookup, part_keys, count, run);
      Steps::template groups<kWords>(lookup, part_keys, matches + at, count, run);
      count = Steps::template entries<kWords>(lookup, part_keys, matches + at, run);
    }
  }
}

template <typename Steps>
void find_with(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
  if (view.words() == 4) {
    find_all<4, Steps>(view, keys, matches, n);
  } else if (view.words() == 12) {
    find_all<12, Steps>(view, keys, matches, n);
  } else {
    find_all<32, Steps>(view, keys, matches, n);
  }
}

#if defined(__x86_64__)

// Steps are compiled for a processor of their own, and the functions that call them are not: nothing can be inlined by force
// but from the outermost one, for the same processor.
#define HEADRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2"))) inline
#define HEADRACE_AVX512_CALL __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2"), noinline, flatten))

/// A bucket, and the entries of a block, in one comparison of each word.
struct Avx512AclSteps {
  template <uint32_t kWords>
  HEADRACE_AVX512 static uint32_t last_group(const AclLookup<kWords>& lookup, const HashView& groups, uint32_t hash,
                                             const uint32_t* key, AclMatch& match) {
    uint32_t last = 0;
    const HashBucket* bucket = groups.buckets() + (hash & groups.mask());
    for (;;) {
      const __m512i words = _mm512_load_si512(bucket);
      uint32_t equal = _mm512_mask_cmpeq_epi32_mask(0x1555, words, _mm512_set1_epi32(static_cast<int>(hash)));
      for (; equal != 0; equal &= equal - 1) {
        // Both halves of a pair at once, as they may be changing.
        const uint64_t pair = load_shared(&bucket->pairs[_tzcnt_u32(equal) / 2]);
        if (static_cast<uint32_t>(pair) != hash || pair >> 32 == 0) continue;
        if (last != 0) [[unlikely]]
          compare<kWords>(lookup, last, key, match);
        last = static_cast<uint32_t>(pair >> 32);
      }
      const uint32_t next = load_shared(&bucket->next);
      if (next == 0) [[likely]]
        return last;
      bucket = groups.buckets() + next;
    }
  }

  template <uint32_t kWords>
  HEADRACE_AVX512 static void compare(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* key,
                                      AclMatch& found) {
    do {
      const uint32_t shift = AclBlock::shift(block);
      const uint32_t* const words = lookup.words_of(block);
      uint32_t matching = many<kWords>(words, shift, key);
      for (; matching != 0; matching &= matching - 1)
        if (lookup.take(words, _tzcnt_u32(matching), shift, found)) return;
      block = shift == AclBlock::kLargest ? lookup.next_of(words) : 0;
    } while (block != 0);
  }

  template <uint32_t kWords>
  HEADRACE_AVX512 static void compare_single(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* key,
                                             AclMatch& found) {
    const uint32_t* const words = lookup.words_of(block);
    __mmask8 equal = 0xf;
    for (uint32_t i = 0; i < kWords; i += 4)
      equal = _mm_mask_cmpeq_epi32_mask(equal, _mm_and_si128(load(key + i), load(words + kWords + i)), load(words + i));
    const uint32_t low = words[2 * kWords + kAclLow], high = words[2 * kWords + kAclHigh], ports = key[kAclPortWord];
    // One branch for all that must hold.
    const uint32_t outside = (lookup.in_range(ports >> 16, low >> 16, high >> 16) ? 0u : 1u) |
                             (lookup.in_range(ports & 0xffff, low & 0xffff, high & 0xffff) ? 0u : 1u);
    if (((equal ^ 0xfu) | outside | (block != 0 ? 0u : 1u)) == 0) lookup.take(words, 0, 0, found);
  }

  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static uint32_t tuples(const AclGeneration& table, const uint32_t* keys, uint32_t n,
                                              AclRun& run) {
    return find_tuples<kWords>(table, keys, n, run);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void hash(const AclLookup<kWords>& lookup, const uint32_t* keys, uint32_t n,
                                        AclRun& run) {
    hash_keys<kWords>(lookup, keys, n, run);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void groups(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                          uint32_t n, AclRun& run) {
    find_groups<kWords, Avx512AclSteps>(lookup, keys, matches, n, run);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static uint32_t entries(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                               AclRun& run) {
    return compare_groups<kWords, Avx512AclSteps>(lookup, keys, matches, run);
  }

 private:
  HEADRACE_AVX512 static __m128i load(const uint32_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  /// The places of a block whose entries match.
  template <uint32_t kWords>
  HEADRACE_AVX512 static uint32_t many(const uint32_t* words, uint32_t shift, const uint32_t* key) {
    const size_t stride = size_t{1} << shift;
    const uint32_t* value = words;
    const uint32_t* more = words + (size_t{kWords} << shift);
    auto equal = static_cast<__mmask16>((1u << stride) - 1);
    const __mmask16 places = equal;
    for (uint32_t i = 0; i < kWords; ++i, value += stride, more += stride)
      equal = _mm512_mask_cmpeq_epi32_mask(
          equal, _mm512_and_si512(_mm512_set1_epi32(static_cast<int>(key[i])), _mm512_maskz_loadu_epi32(places, more)),
          _mm512_maskz_loadu_epi32(places, value));
    more += kAclLow * stride;
    const __m512i ports = _mm512_set1_epi32(static_cast<int>(key[kAclPortWord]));
    const __mmask32 above = _mm512_cmpge_epu16_mask(ports, _mm512_maskz_loadu_epi32(places, more));
    const uint32_t within = _mm512_mask_cmple_epu16_mask(above, ports, _mm512_maskz_loadu_epi32(places, more + stride));
    return equal & _pext_u32(within & within >> 1, 0x55555555);
  }
};

#endif

using FindBatch = void (*)(const AclView&, const uint32_t*, AclMatch*, size_t);

FindBatch best_find_batch() {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer would take words that are loaded together for races.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("bmi2"))
    return find_with<Avx512AclSteps>;
#endif
  return find_with<PlainAclSteps>;
}

}  // namespace

void acl_find_batch(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
  static const FindBatch find = best_find_batch();
  find(view, keys, matches, n);
}

}  // namespace headrace
