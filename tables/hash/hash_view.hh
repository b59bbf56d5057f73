#pragma once
/// \file
/// The view of a hash table in buckets of a cache line, for both processors. Includes no standard header.

#include <headrace/shader_types.hh>

#include "tables/hash/quad_view.hh"

namespace headrace {

/// A cache line of a hash table: seven pairs of a hash and a value. Pairs are read and written as one word each. Value 0:
/// the pair is free. A full bucket continues in another one.
struct alignas(64) HashBucket {
  static constexpr uint32_t kPairs = 7;

  uint64_t pairs[kPairs];  ///< value << 32 | hash
  uint32_t next;           ///< index of the bucket that continues this one; 0: none
  uint32_t spare;
};
static_assert(sizeof(HashBucket) == 64);

/// The high and the low half of a product, combined: a fast mixer of 128 bits into 64 (Wang Yi, "wyhash").
HEADRACE_SHADER uint64_t fold_multiply(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b) ^ (a * b);
#else
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
#endif
}

/// Finds the values of a hash. Trivially copyable; valid until the reader's next quiescent state (headrace/rcu.hh).
///
/// A value is the index of something that the caller compares with its key: different keys may have the same hash.
class HashView {
 public:
  HashView() = default;
  bool operator==(const HashView&) const = default;
  /// \param mask home buckets minus one, a power of two minus one; buckets that continue others follow them
  HEADRACE_SHADER HashView(const HashBucket* buckets, uint32_t mask) : buckets_(buckets), mask_(mask) {}

  /// Calls `visit(value)` for each value of `hash` until it returns true.
  template <typename Visit>
  HEADRACE_SHADER void each(uint32_t hash, Visit&& visit) const {
    const HashBucket* bucket = buckets_ + (hash & mask_);
    for (;;) {
      // All at once, for a device waits as long for one part as for all.
      Quad quads[4];
      for (uint32_t i = 0; i < 4; ++i) quads[i] = load_quad(&bucket->pairs[2 * i]);
      uint32_t hits = 0;
      for (uint32_t i = 0; i < HashBucket::kPairs; ++i) {
        const Quad& quad = quads[i / 2];
        hits |= (quad.w[i % 2 * 2] == hash && quad.w[i % 2 * 2 + 1] != 0 ? 1u : 0u) << i;
      }
      for (; hits != 0; hits &= hits - 1) {
        // By selection, since a device cannot index registers; and at one place, where its threads meet.
        uint32_t value = 0;
        for (uint32_t i = 0; i < HashBucket::kPairs; ++i)
          value = (hits & (0u - hits)) == 1u << i ? quads[i / 2].w[i % 2 * 2 + 1] : value;
        if (visit(value)) return;
      }
      if (quads[3].w[2] == 0) [[likely]]
        return;
      bucket = buckets_ + quads[3].w[2];
    }
  }

  /// Asks for the cache line that `each(hash)` reads first.
  HEADRACE_SHADER void prefetch(uint32_t hash) const { prefetch_line(buckets_ + (hash & mask_)); }

  HEADRACE_SHADER const HashBucket* buckets() const { return buckets_; }
  HEADRACE_SHADER uint32_t mask() const { return mask_; }

 private:
  const HashBucket* buckets_ = nullptr;
  uint32_t mask_ = 0;
};

}  // namespace headrace
