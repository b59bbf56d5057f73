/// \file
/// Lookups of many addresses at a time on a CPU. All go down the trie by one level at a time, so that their cache
/// misses are under way together, and without a branch that depends on an address.

#include <cstddef>

#include "tables/lpm6/lpm6_view.hh"
#include "tables/memory/sanitizers.hh"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {

/// What lookup_batch() calls. A run is short enough for the first-level cache.
struct Lpm6Batch {
  static constexpr uint32_t kRun = 128;
  /// Levels of nodes that 64 bits of an address last for.
  static constexpr int kLevels = 10;
  using Function = void (*)(const Lpm6View&, const Lpm6Key*, uint32_t*, uint32_t);

  /// Answers number `at[i]` of nodes. So many loads are under way together that none needs to be asked for first.
  static void load_answers(const Lpm6Generation& g, const auto* at, uint32_t* words, uint32_t n) {
    if (g.wide) {
      for (uint32_t i = 0; i < n; ++i) words[i] = Lpm6View::load_answer<uint32_t>(g.answers, at[i]);
    } else {
      for (uint32_t i = 0; i < n; ++i) words[i] = Lpm6View::load_answer<uint8_t>(g.answers, at[i]);
    }
  }

  static void plain(const Lpm6View& view, const Lpm6Key* keys, uint32_t* next_hops, uint32_t n);
#if defined(__x86_64__)
  static void avx512(const Lpm6View& view, const Lpm6Key* keys, uint32_t* next_hops, uint32_t n);
  /// Halves of eight nodes, which lie `at` bytes behind `from`.
  struct Halves {
    __m512i bits;
    __m512i base;  ///< in the lower 32 bits
  };
  static Halves load_halves(const char* from, const uint64_t* at);
#endif
  static Function best();
};

void Lpm6Batch::plain(const Lpm6View& view, const Lpm6Key* keys, uint32_t* next_hops, uint32_t n) {
  const Lpm6Generation& g = *view.generation();
  // Addresses on their way: the bits behind the first level, the node, the place among the keys; and the same of those
  // at their last node. Each goes to both lists, of which one then grows: a branch would be a guess.
  uint64_t rest[kRun], last_rest[kRun];
  uint32_t at[kRun], last_at[kRun];
  uint32_t key[kRun], last_key[kRun];
  for (uint32_t j = 0; j < n; ++j) at[j] = load_shared(g.first + Lpm6View::first_index(keys[j].high));

  uint32_t count = 0, ended = 0;
  for (uint32_t j = 0; j < n; ++j) {
    const uint32_t word = at[j], leads = word >> 31, node = word ^ Lpm6View::kNode;
    const int taken = Lpm6View::first_bits(keys[j].high);
    next_hops[j] = word - 1;
    rest[count] = keys[j].high << taken | keys[j].low >> (64 - taken);
    at[count] = node;
    key[count] = j;
    count += leads;
    __builtin_prefetch(g.nodes + (node & (0 - leads)));
  }
  for (int level = 0; level < kLevels && count > 0; ++level) {
    uint32_t still = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t bits = rest[i];
      const uint32_t node = at[i], j = key[i];
      const uint32_t slot = static_cast<uint32_t>(bits >> 58);
      const Lpm6Half down = Lpm6View::load_half(&g.nodes[node].down);
      const uint32_t child = down.base + Lpm6View::ones(down.bits & Lpm6View::below(slot));
      const uint32_t leads = static_cast<uint32_t>(down.bits >> slot) & 1;
      last_rest[ended] = bits;
      last_at[ended] = node;
      last_key[ended] = j;
      rest[still] = bits << 6;
      at[still] = child;
      key[still] = j;
      still += leads;
      ended += 1 - leads;
      __builtin_prefetch(g.nodes + (node ^ ((node ^ child) & (0 - leads))));
    }
    count = still;
  }
  for (uint32_t i = 0; i < ended; ++i) {
    const Lpm6Half runs = Lpm6View::load_half(&g.nodes[last_at[i]].runs);
    last_at[i] = runs.base + Lpm6View::ones(runs.bits << (63 - (last_rest[i] >> 58))) - 1;
  }
  load_answers(g, last_at, last_at, ended);
  for (uint32_t i = 0; i < ended; ++i) next_hops[last_key[i]] = last_at[i] - 1;
  // Few addresses go deeper than 78 bits.
  for (uint32_t i = 0; i < count; ++i) next_hops[key[i]] = view.lookup(keys[key[i]]);
}

#if defined(__x86_64__)

/// One load for each half: gathering bits and bases apart takes twice as many.
__attribute__((target("avx512f"), always_inline)) inline Lpm6Batch::Halves Lpm6Batch::load_halves(const char* from,
                                                                                                  const uint64_t* at) {
  const auto four = [&](const uint64_t* a) __attribute__((target("avx512f"), always_inline)) {
    const auto half = [from](uint64_t k) __attribute__((target("avx512f"), always_inline)) {
      return _mm_load_si128(reinterpret_cast<const __m128i*>(from + k));
    };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(half(a[0])), half(a[1]), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(half(a[2])), half(a[3]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  };
  const __m512i a = four(at), b = four(at + 4);
  return {_mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b),
          _mm512_permutex2var_epi64(a, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), b)};
}

/// Eight addresses in a register.
__attribute__((target("avx512f,avx512vl,avx512dq,avx512vpopcntdq,avx512vbmi2,popcnt"))) void Lpm6Batch::avx512(
    const Lpm6View& view, const Lpm6Key* keys, uint32_t* next_hops, uint32_t n) {
  const Lpm6Generation& g = *view.generation();
  constexpr int kDown = static_cast<int>(offsetof(Lpm6Node, down)), kRuns = static_cast<int>(offsetof(Lpm6Node, runs));
  static_assert(offsetof(Lpm6Half, bits) == 0 && offsetof(Lpm6Half, base) == 8);
  const char* const nodes = reinterpret_cast<const char*>(g.nodes);
  const __m512i one = _mm512_set1_epi64(1);
  alignas(64) uint64_t rest[kRun];  // the bits behind the first level
  alignas(64) uint64_t at[kRun];    // a word of the first level, bytes from the first node, then an answer
  alignas(64) uint32_t words[kRun];
  uint8_t led[kRun / 8];   // for each eight, those that the first level did not answer
  uint8_t live[kRun / 8];  // and those that are not at their last node
  const auto fetch = [&](uint32_t j) {
    for (uint32_t k = j; k < j + 8; ++k) __builtin_prefetch(nodes + at[k]);
  };

  const uint32_t eights = n / 8;
  const __m512i flip = _mm512_set1_epi64(Lpm6View::kGlobalWords);
  for (uint32_t i = 0, j = 0; i < eights; ++i, j += 8) {
    const __m512i a = _mm512_loadu_si512(keys + j), b = _mm512_loadu_si512(keys + j + 4);
    const __m512i high = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b);
    const __m512i low = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), b);
    const __mmask8 global = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(high, 61), one);
    _mm512_store_si512(at + j, _mm512_mask_blend_epi64(
                                   global, _mm512_or_si512(_mm512_srli_epi64(high, 64 - Lpm6View::kOtherBits), flip),
                                   _mm512_xor_si512(_mm512_srli_epi64(high, 64 - Lpm6View::kGlobalBits), flip)));
    _mm512_store_si512(rest + j, _mm512_mask_blend_epi64(global, _mm512_shldi_epi64(high, low, Lpm6View::kOtherBits),
                                                         _mm512_shldi_epi64(high, low, Lpm6View::kGlobalBits)));
  }
  // One by one, as the answers are: more loads are under way together than with gathers, which some processors take apart.
  for (uint32_t j = 0; j < 8 * eights; ++j) words[j] = load_shared(g.first + at[j]);
  uint32_t any = 0;
  for (uint32_t i = 0, j = 0; i < eights; ++i, j += 8) {
    const __m256i word = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + j));
    led[i] = live[i] = _mm256_movepi32_mask(word);
    any |= live[i];
    // The highest bit, which says that there is a node, leaves at the top.
    const __m512i node = _mm512_and_si512(_mm512_cvtepu32_epi64(word), _mm512_set1_epi64(Lpm6View::kNode - 1));
    _mm512_store_si512(at + j, _mm512_maskz_slli_epi64(live[i], node, 5));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(next_hops + j), _mm256_sub_epi32(word, _mm256_set1_epi32(1)));
    fetch(j);
  }
  for (int level = 0; level < kLevels && any != 0; ++level) {
    any = 0;
    for (uint32_t i = 0, j = 0; i < eights; ++i, j += 8) {
      if (live[i] == 0) continue;
      const __m512i bits_left = _mm512_load_si512(rest + j), node = _mm512_load_si512(at + j);
      const auto [bits, base] = load_halves(nodes + kDown, at + j);
      const __m512i slot = _mm512_sllv_epi64(one, _mm512_srli_epi64(bits_left, 58));
      const __mmask8 leads = _mm512_mask_test_epi64_mask(live[i], bits, slot);
      const __m512i rank = _mm512_popcnt_epi64(_mm512_and_si512(bits, _mm512_sub_epi64(slot, one)));
      const __m512i child = _mm512_add_epi64(_mm512_and_si512(base, _mm512_set1_epi64(0xffffffff)), rank);
      _mm512_store_si512(at + j, _mm512_mask_slli_epi64(node, leads, child, 5));
      _mm512_store_si512(rest + j, _mm512_mask_slli_epi64(bits_left, leads, bits_left, 6));
      live[i] = leads;
      any |= leads;
      fetch(j);
    }
  }
  for (uint32_t i = 0, j = 0; i < eights; ++i, j += 8) {
    const __m512i bits_left = _mm512_load_si512(rest + j);
    const auto [bits, base] = load_halves(nodes + kRuns, at + j);
    const __m512i up = _mm512_sub_epi64(_mm512_set1_epi64(63), _mm512_srli_epi64(bits_left, 58));
    const __m512i rank = _mm512_sub_epi64(_mm512_popcnt_epi64(_mm512_sllv_epi64(bits, up)), one);
    const __m512i answer = _mm512_add_epi64(_mm512_and_si512(base, _mm512_set1_epi64(0xffffffff)), rank);
    // One that goes on is at no answer.
    led[i] &= static_cast<uint8_t>(~live[i]);
    _mm512_store_si512(at + j, _mm512_maskz_mov_epi64(led[i], answer));
  }
  load_answers(g, at, words, 8 * eights);
  for (uint32_t i = 0, j = 0; i < eights; ++i, j += 8) {
    const __m256i word = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + j));
    _mm256_mask_storeu_epi32(next_hops + j, led[i], _mm256_sub_epi32(word, _mm256_set1_epi32(1)));
    // Few addresses go deeper than 78 bits.
    for (uint32_t left = any == 0 ? 0 : live[i]; left != 0; left &= left - 1) {
      const uint32_t k = j + static_cast<uint32_t>(__builtin_ctz(left));
      next_hops[k] = view.lookup(keys[k]);
    }
  }
  for (uint32_t j = 8 * eights; j < n; ++j) next_hops[j] = view.lookup(keys[j]);
}

#endif

Lpm6Batch::Function Lpm6Batch::best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!kThreadSanitizer && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512vbmi2")) {
    return avx512;
  }
#endif
  return plain;
}

void Lpm6View::lookup_batch(const Lpm6Key* keys, uint32_t* next_hops, size_t count) const {
  static const Lpm6Batch::Function function = Lpm6Batch::best();
  for (; count > Lpm6Batch::kRun; count -= Lpm6Batch::kRun) {
    function(*this, keys, next_hops, Lpm6Batch::kRun);
    keys += Lpm6Batch::kRun;
    next_hops += Lpm6Batch::kRun;
  }
  function(*this, keys, next_hops, static_cast<uint32_t>(count));
}

}  // namespace headrace
