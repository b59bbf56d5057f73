#include "tables/acl/acl_batch.hh"

#include <immintrin.h>

#include "tables/acl/acl_steps.hh"
#include "tables/memory/sanitizers.hh"

namespace headrace {

namespace {

using acl_steps::Run;

/// For every processor.
struct PlainAclSteps {
  /// The last group of a hash, or 0; compares the key with those before it.
  template <uint32_t kWords>
  [[gnu::always_inline]] static uint32_t group_of(const AclLookup<kWords>& lookup, const HashView& groups,
                                                  uint32_t hash, const uint32_t* key, AclMatch& match) {
    uint32_t last = 0;
    groups.each(hash, [&](uint32_t block) {
      if (last != 0) [[unlikely]]
        lookup.compare(last, key, match);
      last = block;
      return false;
    });
    return last;
  }
  template <uint32_t kWords, uint32_t kShift>
  [[gnu::always_inline]] static void compare(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* key,
                                             AclMatch& match) {
    if (kShift != 0 || block != 0) lookup.compare(block, key, match);
  }

  template <uint32_t kWords>
  [[gnu::noinline]] static void tuples(const AclGeneration& table, const uint32_t* keys, uint32_t n, Run& run) {
    for (uint32_t i = 0; i < n; ++i) run.tuples[i] = acl_steps::tuples_of(table, keys + i * kWords);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static void groups(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                       uint32_t n, Run& run) {
    acl_steps::find_groups<kWords, PlainAclSteps>(lookup, keys, matches, n, run);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static void entries(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                        const Run& run) {
    acl_steps::compare_groups<kWords, 0, PlainAclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 1, PlainAclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 2, PlainAclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 3, PlainAclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 4, PlainAclSteps>(lookup, keys, matches, run);
  }
  template <uint32_t kWords>
  [[gnu::noinline]] static void few(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* keys,
                                    AclMatch* matches, size_t n) {
    acl_steps::scan_all<kWords, PlainAclSteps>(lookup, block, keys, matches, n);
  }
  template <uint32_t kWords>
  static void find(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
    acl_steps::find_all<kWords, PlainAclSteps>(view, keys, matches, n);
  }
};

// Functions for a processor of their own, and those that call them: nothing can be inlined by force but from the outermost
// one, for the same processor.
#define HEADRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2"))) inline
#define HEADRACE_AVX512_CALL __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2"), noinline, flatten))

/// A bucket, and the entries of a block, in few comparisons.
struct Avx512AclSteps {
  template <uint32_t kWords>
  HEADRACE_AVX512 static uint32_t group_of(const AclLookup<kWords>& lookup, const HashView& groups, uint32_t hash,
                                           const uint32_t* key, AclMatch& match) {
    using Word [[gnu::may_alias]] = uint64_t;
    constexpr uint32_t kNone = HashBucket::kPairs;  // the place of `next` and `spare`, which is 0
    const HashBucket* const bucket = groups.buckets() + (hash & groups.mask());
    const uint32_t equal =
        _mm512_mask_cmpeq_epi32_mask(0x1555, _mm512_load_si512(bucket), _mm512_set1_epi32(static_cast<int>(hash)));
    if (((equal & (equal - 1)) | load_shared(&bucket->next)) != 0) [[unlikely]]
      return one_of_several<kWords>(lookup, hash, key, match);
    // Both halves of a pair at once, as they may be changing.
    const auto* const pairs = reinterpret_cast<const Word*>(bucket);
    const uint64_t pair = load_shared(pairs + _tzcnt_u32(equal | 1u << 2 * kNone) / 2);
    return static_cast<uint32_t>(pair) == hash ? static_cast<uint32_t>(pair >> 32) : 0;
  }

  template <uint32_t kWords, uint32_t kShift>
  HEADRACE_AVX512 static void compare(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* key,
                                      AclMatch& found) {
    do {
      const uint32_t* const words = lookup.words_of(block);
      for (uint32_t matching = matching_entries<kWords, kShift>(words, key, lookup.used()); matching != 0;
           matching &= matching - 1)
        if (lookup.take(words, _tzcnt_u32(matching), kShift, found)) return;
      block = kShift == AclBlock::kLargest ? lookup.next_of(words) : 0;
    } while (block != 0);
  }

  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void tuples(const AclGeneration& table, const uint32_t* keys, uint32_t n, Run& run) {
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16, keys += 16 * kWords) {
      __m512i addresses[2];
      load_addresses<kWords>(keys, addresses);
      __m256i first[2], second[2];
      find_sets(table.tries[0], addresses[0], first);
      find_sets(table.tries[1], addresses[1], second);
      for (uint32_t half = 0; half < 2; ++half)
        _mm512_storeu_si512(run.tuples + i + 8 * half,
                            _mm512_and_si512(_mm512_i32gather_epi64(first[half], table.tries[0].sets(), 8),
                                             _mm512_i32gather_epi64(second[half], table.tries[1].sets(), 8)));
    }
    for (; i < n; ++i, keys += kWords) run.tuples[i] = acl_steps::tuples_of(table, keys);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void groups(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                          uint32_t n, Run& run) {
    acl_steps::find_groups<kWords, Avx512AclSteps>(lookup, keys, matches, n, run);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void entries(const AclLookup<kWords>& lookup, const uint32_t* keys, AclMatch* matches,
                                           const Run& run) {
    acl_steps::compare_groups<kWords, 0, Avx512AclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 1, Avx512AclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 2, Avx512AclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 3, Avx512AclSteps>(lookup, keys, matches, run);
    acl_steps::compare_groups<kWords, 4, Avx512AclSteps>(lookup, keys, matches, run);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void few(const AclLookup<kWords>& lookup, uint32_t block, const uint32_t* keys,
                                       AclMatch* matches, size_t n) {
    acl_steps::scan_all<kWords, Avx512AclSteps>(lookup, block, keys, matches, n);
  }
  template <uint32_t kWords>
  HEADRACE_AVX512_CALL static void find(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
    acl_steps::find_all<kWords, Avx512AclSteps>(view, keys, matches, n);
  }

 private:
  /// Words 0 and 1 of 16 keys.
  template <uint32_t kWords>
  HEADRACE_AVX512 static void load_addresses(const uint32_t* keys, __m512i* addresses) {
    if constexpr (kWords == 4) {
      const __m512i both = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
      const __m512i x = _mm512_permutex2var_epi32(_mm512_loadu_si512(keys), both, _mm512_loadu_si512(keys + 16));
      const __m512i y = _mm512_permutex2var_epi32(_mm512_loadu_si512(keys + 32), both, _mm512_loadu_si512(keys + 48));
      addresses[0] = _mm512_shuffle_i64x2(x, y, 0x44);
      addresses[1] = _mm512_shuffle_i64x2(x, y, 0xee);
    } else {
      const __m512i places = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                                _mm512_set1_epi32(kWords));
      addresses[0] = _mm512_i32gather_epi32(places, keys, 4);
      addresses[1] = _mm512_i32gather_epi32(places, keys + 1, 4);
    }
  }
  /// The numbers of the sets of 16 addresses, as acl_steps::step_down() finds them.
  HEADRACE_AVX512 static void find_sets(const AclTrieView& trie, __m512i addresses, __m256i* sets) {
    constexpr int kOrOfAnd = 0xea;  // (a & b) | c
    const __m512i byte = _mm512_set1_epi32(AclTrieView::kNodeWords - 1);
    __m512i index = _mm512_srli_epi32(addresses, 16);
    for (const __m512i part : {_mm512_srli_epi32(addresses, 8), addresses}) {
      const __m512i two = _mm512_i32gather_epi32(index, trie.words(), 2);
      const __m512i node = _mm512_srai_epi32(_mm512_slli_epi32(two, 16), 8);
      index = _mm512_max_epi32(index, _mm512_ternarylogic_epi32(part, byte, node, kOrOfAnd));
    }
    const __m512i numbers =
        _mm512_and_si512(_mm512_i32gather_epi32(index, trie.words(), 2), _mm512_set1_epi32(AclTrieView::kSet - 1));
    sets[0] = _mm512_castsi512_si256(numbers);
    sets[1] = _mm512_extracti64x4_epi64(numbers, 1);
  }

  /// What group_of() returns, for few keys.
  template <uint32_t kWords>
  [[gnu::noinline]] static uint32_t one_of_several(const AclLookup<kWords>& lookup, uint32_t hash, const uint32_t* key,
                                                   AclMatch& match) {
    return PlainAclSteps::group_of<kWords>(lookup, lookup.table().groups, hash, key, match);
  }

  HEADRACE_AVX512 static __m128i load128(const uint32_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  HEADRACE_AVX512 static __m256i load256(const uint32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  /// The bits under a mask in which a key differs from a value.
  static constexpr int kDifferent = 0x6a;  // (key & mask) ^ value

  /// The places of a block whose entries match. A word of all entries that fit lies in a register, or several words; what
  /// differs is collected, and what ports lack to bounds.
  template <uint32_t kWords, uint32_t kShift>
  HEADRACE_AVX512 static uint32_t matching_entries(const uint32_t* words, const uint32_t* key,
                                                   [[maybe_unused]] uint32_t used) {
    const uint32_t* const masks = words + (kWords << kShift);
    const uint32_t* const low = words + ((2 * kWords + kAclLow) << kShift);
    const uint32_t* const high = low + (1u << kShift);
    const auto ports = static_cast<int>(key[kAclPortWord]);
    if constexpr (kShift == 4) {
      __m512i different = _mm512_setzero_si512();
      // Keys of more words have many that no entry uses. Word 0 also tells places without an entry.
      uint32_t left = kWords == 4 ? 0xf : used | 1;
      for (uint32_t i = 0; kWords == 4 ? i < kWords : left != 0; ++i, left &= left - 1) {
        if constexpr (kWords > 4) i = _tzcnt_u32(left);
        different =
            _mm512_or_si512(different, _mm512_ternarylogic_epi32(_mm512_set1_epi32(static_cast<int>(key[i])),
                                                                 _mm512_loadu_si512(masks + 16 * i),
                                                                 _mm512_loadu_si512(words + 16 * i), kDifferent));
      }
      const __m512i p = _mm512_set1_epi32(ports);
      const __m512i outside = _mm512_or_si512(_mm512_subs_epu16(_mm512_loadu_si512(low), p),
                                              _mm512_subs_epu16(p, _mm512_loadu_si512(high)));
      different = _mm512_or_si512(different, outside);
      return _mm512_testn_epi32_mask(different, different);
    } else if constexpr (kShift == 3) {
      const __m512i two = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
      __m512i different = _mm512_setzero_si512();
      for (uint32_t i = 0; i < kWords; i += 2) {
        const __m128i pair = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(key + i));
        different = _mm512_or_si512(
            different, _mm512_ternarylogic_epi32(_mm512_permutexvar_epi32(two, _mm512_castsi128_si512(pair)),
                                                 _mm512_loadu_si512(masks + 8 * i), _mm512_loadu_si512(words + 8 * i),
                                                 kDifferent));
      }
      const __m256i p = _mm256_set1_epi32(ports);
      const __m256i outside = _mm256_or_si256(_mm256_subs_epu16(load256(low), p), _mm256_subs_epu16(p, load256(high)));
      const __m256i all = _mm256_or_si256(
          outside, _mm256_or_si256(_mm512_castsi512_si256(different), _mm512_extracti64x4_epi64(different, 1)));
      return _mm256_testn_epi32_mask(all, all);
    } else if constexpr (kShift == 2) {
      const __m512i four = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
      __m512i different = _mm512_setzero_si512();
      for (uint32_t i = 0; i < kWords; i += 4)
        different = _mm512_or_si512(
            different, _mm512_ternarylogic_epi32(
                           _mm512_permutexvar_epi32(four, _mm512_castsi128_si512(load128(key + i))),
                           _mm512_loadu_si512(masks + 4 * i), _mm512_loadu_si512(words + 4 * i), kDifferent));
      const __m256i half = _mm256_or_si256(_mm512_castsi512_si256(different), _mm512_extracti64x4_epi64(different, 1));
      const __m128i p = _mm_set1_epi32(ports);
      const __m128i outside = _mm_or_si128(_mm_subs_epu16(load128(low), p), _mm_subs_epu16(p, load128(high)));
      const __m128i all =
          _mm_or_si128(outside, _mm_or_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
      return _mm_testn_epi32_mask(all, all);
    } else if constexpr (kShift == 1) {
      const __m256i four = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
      __m256i different = _mm256_setzero_si256();
      for (uint32_t i = 0; i < kWords; i += 4)
        different = _mm256_or_si256(
            different,
            _mm256_ternarylogic_epi32(_mm256_permutexvar_epi32(four, _mm256_castsi128_si256(load128(key + i))),
                                      load256(masks + 2 * i), load256(words + 2 * i), kDifferent));
      // The upper bounds lie behind the lower ones.
      const __m128i p = _mm_set1_epi32(ports), bounds = load128(low);
      const __m128i outside = _mm_blend_epi32(_mm_subs_epu16(bounds, p), _mm_subs_epu16(p, bounds), 0xc);
      const __m128i half = _mm_or_si128(
          outside, _mm_or_si128(_mm256_castsi256_si128(different), _mm256_extracti128_si256(different, 1)));
      const __m128i all = _mm_or_si128(half, _mm_shuffle_epi32(half, 0x4e));
      return _mm_testn_epi32_mask(all, all) & 3u;
    } else {
      __m128i different = _mm_setzero_si128();
      for (uint32_t i = 0; i < kWords; i += 4)
        different = _mm_or_si128(
            different, _mm_ternarylogic_epi32(load128(key + i), load128(masks + i), load128(words + i), kDifferent));
      const __m128i p = _mm_set1_epi32(ports), bounds = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(low));
      const __m128i outside = _mm_blend_epi32(_mm_subs_epu16(bounds, p), _mm_subs_epu16(p, bounds), 2);
      const __m128i all = _mm_or_si128(different, outside);
      return static_cast<uint32_t>(_mm_testz_si128(all, all));
    }
  }
};

template <typename Cpu>
void find_with(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
  if (view.words() == 4) {
    Cpu::template find<4>(view, keys, matches, n);
  } else if (view.words() == 12) {
    Cpu::template find<12>(view, keys, matches, n);
  } else {
    Cpu::template find<32>(view, keys, matches, n);
  }
}

using FindBatch = void (*)(const AclView&, const uint32_t*, AclMatch*, size_t);

FindBatch best_find_batch() {
  // A sanitizer would take words that are loaded together for races.
  if (!kThreadSanitizer && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
    return find_with<Avx512AclSteps>;
  return find_with<PlainAclSteps>;
}

}  // namespace

void acl_find_batch(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n) {
  static const FindBatch find = best_find_batch();
  find(view, keys, matches, n);
}

}  // namespace headrace
