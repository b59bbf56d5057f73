#pragma once
/// \file
/// HashView::each() for a CPU: a bucket in one comparison, without a guess where the hash is.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tables/hash/hash_view.hh"

namespace headrace {

/// The places of a bucket that have `hash`, as bits 0, 2, 4 ... 12, or more: what is there may be changing.
inline uint32_t places_of_hash(const HashBucket& bucket, uint32_t hash) {
#if defined(__AVX512F__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer would take words that are loaded together for races.
  return _mm512_cmpeq_epi32_mask(_mm512_load_si512(&bucket), _mm512_set1_epi32(static_cast<int>(hash))) & 0x1555u;
#elif defined(__AVX2__) && !defined(__SANITIZE_THREAD__)
  const __m256i wanted = _mm256_set1_epi32(static_cast<int>(hash));
  const auto* const halves = reinterpret_cast<const __m256i*>(&bucket);
  const auto equal = [&](int half) {
    const __m256i same = _mm256_cmpeq_epi32(_mm256_load_si256(halves + half), wanted);
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same)));
  };
  return (equal(0) | equal(1) << 8) & 0x1555u;
#else
  uint32_t places = 0;
  for (uint32_t i = 0; i < HashBucket::kPairs; ++i)
    places |= (static_cast<uint32_t>(load_shared(&bucket.pairs[i])) == hash ? 1u : 0u) << 2 * i;
  return places;
#endif
}

/// The pair at the first place, both halves at once. What was stored before it was published is seen afterwards.
inline uint64_t load_pair(const HashBucket& bucket, uint32_t places) {
  return __atomic_load_n(&bucket.pairs[__builtin_ctz(places) / 2], __ATOMIC_ACQUIRE);
}

/// A value of `hash` that does not lie beyond its first bucket; 0: there is none, or it has just changed.
inline uint32_t first_on_cpu(const HashView& view, uint32_t hash) {
  const HashBucket& bucket = view.buckets()[hash & view.mask()];
  const uint32_t places = places_of_hash(bucket, hash);
  if (places == 0) return 0;
  const uint64_t pair = load_pair(bucket, places);
  return static_cast<uint32_t>(pair) == hash ? static_cast<uint32_t>(pair >> 32) : 0;
}

/// Calls `visit(value)` for each value of `hash` until it returns true.
template <typename Visit>
void each_on_cpu(const HashView& view, uint32_t hash, Visit&& visit) {
  const HashBucket* bucket = view.buckets() + (hash & view.mask());
  for (;;) {
    for (uint32_t places = places_of_hash(*bucket, hash); places != 0; places &= places - 1) {
      const uint64_t pair = load_pair(*bucket, places);
      if (static_cast<uint32_t>(pair) == hash && pair >> 32 != 0 && visit(static_cast<uint32_t>(pair >> 32))) return;
    }
    const uint32_t next = load_shared(&bucket->next);
    if (next == 0) [[likely]]
      return;
    bucket = view.buckets() + next;
  }
}

}  // namespace headrace
