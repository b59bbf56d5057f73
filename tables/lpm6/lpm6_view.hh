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
  Lpm6Half runs;  ///< bit s: another answer begins at slot s; the answers lie side by side from answers[base] on
};
static_assert(sizeof(Lpm6Node) == 32);

/// One form of a table, as a processor reads it.
///
/// The layout is that of Poptrie (H. Asai, Y. Ohara, "Poptrie: a compressed trie with population count for fast and
/// scalable software IP routing table lookup", SIGCOMM 2015) behind a first level for IPv6 as it is allocated. `first`
/// has 2^21 words for the addresses of 2000::/3 by their bits 3 to 23, then 2^18 words for all others by their first 18
/// bits. A word with its highest bit clear is the answer: 0 for no route, else the next hop plus one. With its highest
/// bit set the other bits number a node for the six bits that follow.
struct Lpm6Generation {
  const uint32_t* first = nullptr;
  const Lpm6Node* nodes = nullptr;
  const uint32_t* answers = nullptr;
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
  HEADRACE_SHADER explicit Lpm6View(const Lpm6Generation* generation) : generation_(generation) {}

  /// The next hop of the longest prefix that holds `key`, or kMiss.
  HEADRACE_SHADER uint32_t lookup(Lpm6Key key) const {
    const uint32_t word = load_shared(generation_->first + first_index(key.high));
    if (!(word & kNode)) return word - 1;
    const int taken = first_bits(key.high);
    return descend(word ^ kNode, key.high << taken | key.low >> (64 - taken), key.low << taken);
  }

  /// Looks up `count` addresses that lie in memory: on a CPU much faster than one by one, since the table's cache
  /// misses are under way together and no branch depends on an address.
  HEADRACE_SHADER void lookup_batch(const Lpm6Key* keys, uint32_t* next_hops, size_t count) const {
    while (count > 0) {
      const uint32_t n = count < kRun ? static_cast<uint32_t>(count) : kRun;
      lookup_run(keys, next_hops, n);
      keys += n;
      next_hops += n;
      count -= n;
    }
  }

  HEADRACE_SHADER const Lpm6Generation* generation() const { return generation_; }

 private:
  static constexpr uint32_t kRun = 128;
  /// Levels of nodes that 64 bits of an address last for.
  static constexpr int kLevels = 10;

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
    // In one access that passes by the first-level cache, which might keep what lay here in an earlier life.
    const uint4 words = __ldcg(reinterpret_cast<const uint4*>(half));
    return {uint64_t{words.y} << 32 | words.x, words.z, 0};
#else
    return {load_shared(&half->bits), load_shared(&half->base), 0};
#endif
  }
  static HEADRACE_SHADER void prefetch([[maybe_unused]] const void* line) {
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    __builtin_prefetch(line);
#endif
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
    return load_shared(generation_->answers + (runs.base + run)) - 1;
  }

  /// Takes up to kRun addresses down the trie level by level.
  HEADRACE_SHADER void lookup_run(const Lpm6Key* keys, uint32_t* next_hops, uint32_t n) const {
    const Lpm6Node* const nodes = generation_->nodes;
    const uint32_t* const answers = generation_->answers;
    uint32_t at[kRun];    // a word of the first level, then a node, then an answer
    uint64_t rest[kRun];  // the bits behind the first level
    uint16_t below_first[kRun], active[kRun];
    for (uint32_t j = 0; j < n; ++j) at[j] = load_shared(generation_->first + first_index(keys[j].high));

    uint32_t count = 0;
    for (uint32_t j = 0; j < n; ++j) {
      const uint32_t word = at[j];
      const int taken = first_bits(keys[j].high);
      const uint32_t leads = word >> 31;
      next_hops[j] = word - 1;
      at[j] = word ^ kNode;
      rest[j] = keys[j].high << taken | keys[j].low >> (64 - taken);
      below_first[count] = active[count] = static_cast<uint16_t>(j);
      count += leads;
      prefetch(leads ? static_cast<const void*>(nodes + (word ^ kNode)) : nodes);
    }
    const uint32_t answered = count;

    for (int level = 0; level < kLevels && count > 0; ++level) {
      const int shift = 58 - 6 * level;
      uint32_t still = 0;
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t j = active[i];
        const Lpm6Node* const node = nodes + at[j];
        const uint32_t slot = static_cast<uint32_t>(rest[j] >> shift) & 63;
        const Lpm6Half down = load_half(&node->down);
        const Lpm6Half runs = load_half(&node->runs);
        const uint32_t child = down.base + ones(down.bits & below(slot));
        const uint32_t answer = runs.base + ones(runs.bits << (63 - slot)) - 1;
        const bool leads = down.bits >> slot & 1;
        at[j] = leads ? child : answer;
        prefetch(leads ? static_cast<const void*>(nodes + child) : answers + answer);
        active[still] = static_cast<uint16_t>(j);
        still += leads;
      }
      count = still;
    }
    // Addresses that go deeper than 78 bits are few.
    for (uint32_t i = 0; i < count; ++i) at[active[i]] = 0;
    for (uint32_t i = 0; i < answered; ++i) {
      const uint32_t j = below_first[i];
      next_hops[j] = load_shared(answers + at[j]) - 1;
    }
    for (uint32_t i = 0; i < count; ++i) next_hops[active[i]] = lookup(keys[active[i]]);
  }

  const Lpm6Generation* generation_ = nullptr;
};

}  // namespace headrace
