#pragma once
/// \file
/// The view of an IPv6 longest-prefix table that elements and shaders look up in. Includes no standard header.

#include <headrace/shader_types.hh>

namespace headrace {

/// An IPv6 address as two numbers: its first and its last eight bytes, in host byte order.
struct Lpm6Key {
  uint64_t high = 0;
  uint64_t low = 0;
};

/// A map of 64 slots, and where what it counts begins.
struct alignas(16) Lpm6Half {
  uint64_t bits;
  uint32_t base;
  uint32_t unused;
};

/// Six bits of an address: one of 64 slots, which leads to a child node or to an answer.
struct alignas(32) Lpm6Node {
  Lpm6Half down;  ///< bit s: slot s has a child; the children lie side by side from nodes[base] on
  Lpm6Half runs;  ///< bit s: another answer begins at slot s; the answers lie side by side, from number `base` on
};
static_assert(sizeof(Lpm6Node) == 32);

/// One form of a table, as a processor reads it.
///
/// The layout is that of Poptrie (H. Asai, Y. Ohara, "Poptrie: a compressed trie with population count for fast and
/// scalable software IP routing table lookup", SIGCOMM 2015) behind a first level for IPv6 as it is allocated. `first`
/// has 2^21 words for the addresses of 2000::/3 by their bits 3 to 23, then 2^18 words for all others by their first 18
/// bits. A word with its highest bit clear is the answer: 0 for no route, else the next hop plus one. With its highest
/// bit set the other bits number a node for the six bits that follow. The answers of nodes are bytes, of which caches hold
/// four times as many as of words; they are words when `wide`, for next hops that do not fit.
struct Lpm6Generation {
  const uint32_t* first = nullptr;
  const Lpm6Node* nodes = nullptr;
  const void* answers = nullptr;
  uint32_t wide = 0;
};

/// Looks up addresses. Trivially copyable, one pointer; valid until the reader's next quiescent state
/// (headrace/rcu.hh). A default-made view must not be asked.
class Lpm6View {
 public:
  /// The answer when no route matches.
  static constexpr uint32_t kMiss = 0xffffffffu;
  /// In a word of the first level: the other bits number a node.
  static constexpr uint32_t kNode = 0x80000000u;

  static constexpr int kGlobalBits = 24;                              ///< bits that the first level takes of 2000::/3
  static constexpr int kOtherBits = 18;                               ///< and of other addresses
  static constexpr uint32_t kGlobalWords = uint32_t{1} << 21;         ///< words of the first level for 2000::/3
  static constexpr uint32_t kFirstWords = kGlobalWords + (1u << 18);  ///< and in all

  Lpm6View() = default;
  bool operator==(const Lpm6View&) const = default;
  HEADRACE_SHADER explicit Lpm6View(const Lpm6Generation* generation) : generation_(generation) {}

  /// The next hop of the longest prefix that holds `key`, or kMiss.
  HEADRACE_SHADER uint32_t lookup(Lpm6Key key) const {
    const uint32_t word = load_shared(generation_->first + first_index(key.high));
    if (!(word & kNode)) return word - 1;
    const int taken = first_bits(key.high);
    return descend(word ^ kNode, key.high << taken | key.low >> (64 - taken), key.low << taken);
  }

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
  /// Looks up `count` addresses that lie in memory: on a CPU much faster than one by one, since the table's cache
  /// misses are under way together and no branch depends on an address.
  void lookup_batch(const Lpm6Key* keys, uint32_t* next_hops, size_t count) const;
#endif

  HEADRACE_SHADER const Lpm6Generation* generation() const { return generation_; }

 private:
  friend struct Lpm6Batch;

  static HEADRACE_SHADER bool is_global(uint64_t high) { return high >> 61 == 1; }
  static HEADRACE_SHADER int first_bits(uint64_t high) { return is_global(high) ? kGlobalBits : kOtherBits; }
  static HEADRACE_SHADER uint32_t first_index(uint64_t high) {
    // 2000::/3 begins at index 2^21 of 2^24.
    return is_global(high) ? static_cast<uint32_t>(high >> 40) ^ kGlobalWords
                           : static_cast<uint32_t>(high >> 46) | kGlobalWords;
  }
  static HEADRACE_SHADER uint32_t ones(uint64_t bits) {
#if defined(__CUDA_ARCH__)
    return static_cast<uint32_t>(__popcll(bits));
#else
    return static_cast<uint32_t>(__builtin_popcountll(bits));
#endif
  }
  /// Bits below `slot`.
  static HEADRACE_SHADER uint64_t below(uint32_t slot) { return (uint64_t{1} << slot) - 1; }

  /// Reads half a node. Its map never changes while the node can be reached, its base may.
  static HEADRACE_SHADER Lpm6Half load_half(const Lpm6Half* half) {
#if defined(__CUDA_ARCH__)
    // In one access.
    const uint4 words = *reinterpret_cast<const uint4*>(half);
    return {uint64_t{words.y} << 32 | words.x, words.z, 0};
#else
    return {load_shared(&half->bits), load_shared(&half->base), 0};
#endif
  }

  template <typename Answer>
  static HEADRACE_SHADER uint32_t load_answer(const void* answers, size_t at) {
    return load_shared(static_cast<const Answer*>(answers) + at);
  }

  /// Goes on from node `index` with the bits of an address behind those used so far.
  HEADRACE_SHADER uint32_t descend(uint32_t index, uint64_t high, uint64_t low) const {
    const Lpm6Node* const nodes = generation_->nodes;
    for (;;) {
      const uint32_t slot = static_cast<uint32_t>(high >> 58);
      const Lpm6Half down = load_half(&nodes[index].down);
      if (!(down.bits >> slot & 1)) break;
      index = down.base + ones(down.bits & below(slot));
      high = high << 6 | low >> 58;
      low <<= 6;
    }
    const Lpm6Half runs = load_half(&nodes[index].runs);
    const uint32_t run = ones(runs.bits << (63 - (high >> 58))) - 1;
    const uint32_t at = runs.base + run;
    return (generation_->wide ? load_answer<uint32_t>(generation_->answers, at)
                              : load_answer<uint8_t>(generation_->answers, at)) -
           1;
  }

  const Lpm6Generation* generation_ = nullptr;
};

}  // namespace headrace
