#pragma once
/// \file
/// The view of a table of masked entries with priorities, for both processors. Includes no standard header.
///
/// The structure is that of TupleMerge (J. Daly et al., "TupleMerge: Fast Software Packet Processing for Online Packet
/// Classification", IEEE/ACM Transactions on Networking 27(4), 2019): entries whose masks contain a common coarser mask, a
/// *tuple*, are in one hash table under their masked values; entries with one masked value, a *group*, are compared in
/// order of priority. Tuples are asked in the order of their best priorities, until what is found is
/// better than what the others have; and, by tuple pruning
/// (V. Srinivasan, S. Suri, G. Varghese, "Packet Classification using Tuple Space Search", SIGCOMM 1999), those are
/// skipped that have no entry for one of the key's first two words, which are IPv4 addresses.

#include <headrace/shader_types.hh>

#include "tables/hash/hash_view.hh"

namespace headrace {

/// Most tuples of a table: a bit each of a word.
inline constexpr uint32_t kAclTuples = 64;

/// The tuples with entries for an address: a trie whose first level has a word for each value of the upper 16 bits, and
/// whose nodes, behind it, have one for each value of the next 8 bits. A word is that of a node: where its words are, in
/// nodes; or, with its highest bit set, the number of a set of tuples. Sets may name tuples that have no such entry, but
/// miss none.
class AclTrieView {
 public:
  static constexpr uint32_t kSet = 1u << 15;
  static constexpr uint32_t kNodeWords = 256;
  /// The first level takes the place of so many nodes.
  static constexpr uint32_t kFirstNode = 65536 / kNodeWords;

  AclTrieView() = default;
  bool operator==(const AclTrieView&) const = default;
  HEADRACE_SHADER AclTrieView(const uint16_t* words, const uint64_t* sets) : words_(words), sets_(sets) {}

  /// The word of the first level for an address.
  HEADRACE_SHADER uint32_t first(uint32_t address) const { return load_shared(words_ + (address >> 16)); }
  /// A step down: the word that a node has for a byte; a word that is no node stays. Without a branch that depends on it.
  HEADRACE_SHADER uint32_t below(uint32_t word, uint32_t byte) const {
    const uint32_t is_node = (word >> 15) - 1;
    const uint32_t under = load_shared(words_ + (at(word, byte) & is_node));
    return word ^ ((word ^ under) & is_node);
  }
  /// \param word one with kSet
  HEADRACE_SHADER uint64_t set(uint32_t word) const { return load_shared(sets_ + (word & (kSet - 1))); }
  /// The index of a node's word.
  HEADRACE_SHADER static uint32_t at(uint32_t node, uint32_t byte) { return node * kNodeWords | byte; }
  HEADRACE_SHADER const uint16_t* words() const { return words_; }
  HEADRACE_SHADER const uint64_t* sets() const { return sets_; }

 private:
  const uint16_t* words_ = nullptr;
  const uint64_t* sets_ = nullptr;
};

/// Words of an entry behind its value and its mask, which have as many words as a key.
enum AclWord : uint32_t {
  kAclPriority,
  kAclNumber,
  kAclLife,  ///< see acl_alive(); changed in place
  kAclData,  ///< what the table's user wants of a match; changed in place
  kAclLow,   ///< the two halves of a key's word kAclPortWord are not below those of this word,
  kAclHigh,  ///< and not above those of this one
  kAclMoreWords
};
/// The first of these are read together, once an entry matches.
inline constexpr uint32_t kAclOutcomeWords = 4;
static_assert(kAclData == kAclPriority + 3 && kAclData < kAclOutcomeWords);

/// Source and destination port in one word of a key.
inline constexpr uint32_t kAclPortWord = 2;

/// A block holds 1, 2, 4, 8 or 16 entries, by word: word w of entry i is at w * entries + i, so that a CPU compares all
/// at a time. Only the outcomes lie one behind the other, so that there is one place to look at when an entry has matched. A
/// place without an entry has mask 0 and value 1, which no key matches. Behind the words of a block of 16 there is one
/// more: the block with which the group goes on, with entries of no better rank; 0: none. Blocks are named by their first
/// cell * 8 + the logarithm of their entries.
struct AclBlock {
  static constexpr uint32_t kLargest = 4;

  HEADRACE_SHADER static uint32_t cell(uint32_t block) { return block >> 3; }
  HEADRACE_SHADER static uint32_t shift(uint32_t block) { return block & 7; }
  /// Where a word of an entry is in a block for keys of `key_words`.
  HEADRACE_SHADER static size_t place(uint32_t key_words, uint32_t shift, uint32_t index, uint32_t word) {
    const uint32_t more = word - 2 * key_words;
    return more < kAclOutcomeWords ? (size_t{2 * key_words} << shift) + index * kAclOutcomeWords + more
                                   : (size_t{word} << shift) + index;
  }
};

/// The unit of memory for blocks: a cache line.
struct alignas(64) AclCell {
  uint32_t w[16];
};

/// What changes in place beside blocks and groups.
struct alignas(64) AclIndex {
  /// No entry of the tuple, or of one with a higher number, has a better priority.
  uint32_t best[kAclTuples];
  /// Words of a key, a bit each, of which no other one is under the mask of an entry.
  uint32_t used;
  /// The number of the last commit.
  uint32_t version;
  /// The first block of the only group, if there is one tuple, and it has no mask: all entries are in it. 0: not so.
  uint32_t only_group;
};

/// Where the parts of a table are.
struct AclGeneration {
  const AclIndex* index = nullptr;
  /// For words 0 and 1 of a key.
  AclTrieView tries[2];
  /// The tuples' masks, each of `words` words.
  const uint32_t* masks = nullptr;
  const AclCell* cells = nullptr;
  HashView groups;
  uint64_t seed = 0;
  uint32_t words = 0;
};

/// What a lookup found.
struct AclMatch {
  static constexpr uint32_t kNone = 0xffffffffu;

  uint32_t number = kNone;  ///< of the entry; kNone: none matches
  uint32_t data = 0;
  uint32_t priority = 0;
};

/// Whether an entry is in the table as of a commit. An entry that is settled has life 0. Before, the lower half says with
/// which commit it appeared, the upper half with which one it went, in 15 bits above a bit that is set if it has been so.
HEADRACE_SHADER bool acl_alive(uint32_t life, uint32_t version) {
  const auto passed = [version](uint32_t half) { return (((version << 1) - (half & 0xfffe)) & 0xffff) < 0x8000; };
  const bool born = (life & 1) == 0 || passed(life);
  const bool dead = (life >> 16 & 1) != 0 && passed(life >> 16);
  return born && !dead;
}

HEADRACE_SHADER uint32_t lowest_bit(uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__ffsll(static_cast<long long>(bits)) - 1);
#else
  return static_cast<uint32_t>(__builtin_ctzll(bits));
#endif
}

/// What the hashes of a tuple begin with: those of two tuples have no bits of a key in common.
HEADRACE_SHADER uint64_t acl_seed(uint64_t seed, uint32_t tuple) { return seed + tuple * 0xd6e8feb86659fd93ull; }

/// The hash of a key under a tuple's mask.
template <uint32_t kWords>
HEADRACE_SHADER uint32_t acl_hash(const uint32_t* key, const uint32_t* mask, uint64_t seed) {
  static_assert(kWords % 4 == 0);
  uint64_t h = seed;
  for (uint32_t i = 0; i < kWords; i += 4) {
    const Quad bits = load_quad(mask + i);
    const uint64_t a = (uint64_t{key[i + 1]} << 32 | key[i]) & bits.pair(0);
    const uint64_t b = (uint64_t{key[i + 3]} << 32 | key[i + 2]) & bits.pair(1);
    h = fold_multiply(a ^ h, b ^ 0x9e3779b97f4a7c15ull);
  }
  return static_cast<uint32_t>(h ^ h >> 32);
}

/// Looks keys of `kWords` words up: see AclView.
template <uint32_t kWords>
class AclLookup {
 public:
  HEADRACE_SHADER explicit AclLookup(const AclGeneration& table)
      : table_(table), version_(load_version(table.index)), used_(load_shared(&table.index->used)) {}

  HEADRACE_SHADER AclMatch find(const uint32_t* key) const {
    AclMatch found;
    uint64_t left = tuples_of(key);
    if (left == 0) return found;
    // What the next tuple needs is loaded with what this one needs: a device waits for each load that depends on another.
    uint32_t tuple = lowest_bit(left);
    uint32_t best = load_shared(&table_.index->best[tuple]);
    while (best >= found.priority) {
      const uint32_t hash = hash_of(key, tuple);
      left &= left - 1;
      tuple = left != 0 ? lowest_bit(left) : tuple;
      best = load_shared(&table_.index->best[tuple]);
      table_.groups.each(hash, [&](uint32_t block) {
        compare(block, key, found);
        return false;
      });
      if (left == 0) break;
    }
    return found;
  }

  /// The tuples that may have an entry for a key.
  HEADRACE_SHADER uint64_t tuples_of(const uint32_t* key) const {
    // Both tries at a time, for the same reason.
    const AclTrieView &first = table_.tries[0], &second = table_.tries[1];
    const uint32_t a = key[0], b = key[1];
    uint32_t x = first.first(a), y = second.first(b);
    if (!(x & y & AclTrieView::kSet)) {
      x = first.below(x, a >> 8 & 0xff);
      y = second.below(y, b >> 8 & 0xff);
      x = first.below(x, a & 0xff);
      y = second.below(y, b & 0xff);
    }
    return first.set(x) & second.set(y);
  }
  HEADRACE_SHADER uint32_t hash_of(const uint32_t* key, uint32_t tuple) const {
    return acl_hash<kWords>(key, table_.masks + tuple * kWords, acl_seed(table_.seed, tuple));
  }

  /// Compares a key with the entries of a group from `block` on; improves `found`.
  HEADRACE_SHADER void compare(uint32_t block, const uint32_t* key, AclMatch& found) const {
    const uint32_t* words = words_of(block);
    uint32_t shift = AclBlock::shift(block);
    uint32_t first = 0, next = 0;  // the entry of the block to go on with
    uint32_t left = 0;             // entries from `first` on that are worth a look, a bit each
    for (;;) {
      // Threads of a device meet behind this loop, each with such an entry.
      while (left == 0) {
        if (next == 1u << shift) {
          block = shift == AclBlock::kLargest ? next_of(words) : 0;
          if (block == 0) return;
          words = words_of(block);
          next = 0;
        }
        first = next;
        next = first + kStep < 1u << shift ? first + kStep : 1u << shift;
        left = candidates(words, shift, first, key);
      }
      const uint32_t index = first + lowest_bit(left);
      if (kWords == 4 ? take(words, index, shift, found) : compare_rest(words, shift, index, key, found)) return;
      left &= left - 1;
    }
  }
  HEADRACE_SHADER const uint32_t* words_of(uint32_t block) const { return table_.cells[AclBlock::cell(block)].w; }
  HEADRACE_SHADER static uint32_t next_of(const uint32_t* words) {
    return load_shared(words + ((2 * kWords + kAclMoreWords) << AclBlock::kLargest));
  }
  /// Makes an entry that matches, at `index` of a block, the best one, if it is. False if the entry is not in the table;
  /// the group's others may match then. Else none of them is better.
  HEADRACE_SHADER bool take(const uint32_t* block, uint32_t index, uint32_t shift, AclMatch& found) const {
    return take(outcome_of(block, index, shift), found);
  }

  HEADRACE_SHADER static bool in_range(uint32_t value, uint32_t low, uint32_t high) {
    return value - low <= high - low;
  }

  HEADRACE_SHADER const AclGeneration& table() const { return table_; }
  /// See AclIndex.
  HEADRACE_SHADER uint32_t used() const { return used_; }

 private:
  HEADRACE_SHADER static uint32_t load_version(const AclIndex* index) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    return index->version;
#else
    // What was stored before this commit is seen by all later loads.
    return __atomic_load_n(&index->version, __ATOMIC_ACQUIRE);
#endif
  }

  HEADRACE_SHADER static Quad outcome_of(const uint32_t* block, uint32_t index, uint32_t shift) {
    return load_quad(block + AclBlock::place(kWords, shift, index, 2 * kWords));
  }
  HEADRACE_SHADER bool take(const Quad& outcome, AclMatch& found) const {
    if (outcome.w[kAclLife] != 0 && !acl_alive(outcome.w[kAclLife], version_)) [[unlikely]]
      return false;
    const uint32_t priority = outcome.w[kAclPriority], number = outcome.w[kAclNumber];
    if (priority > found.priority || (priority == found.priority && number < found.number))
      found = {number, outcome.w[kAclData], priority};
    return true;
  }
  HEADRACE_SHADER static bool ports_within(uint32_t ports, uint32_t low, uint32_t high) {
    return in_range(ports >> 16, low >> 16, high >> 16) && in_range(ports & 0xffff, low & 0xffff, high & 0xffff);
  }

  /// Entries of a block that are looked at together.
  static constexpr uint32_t kStep = kWords == 4 ? 4 : 8;

  /// The entries of a block, up to kStep from `first` on, that match a key of four words, a bit each; that agree with the first
  /// two words of a longer one: most entries differ in an address, if they do.
  HEADRACE_SHADER static uint32_t candidates(const uint32_t* words, uint32_t shift, uint32_t first,
                                             const uint32_t* key) {
    if constexpr (kWords == 4)
      return shift == 0   ? match_of_one(words, key)
             : shift == 1 ? match_of_two(words, key)
                          : match_of_four(words, shift, first, key);
    // One that is alone may be compared as a whole.
    if (shift == 0) return 1;
    if (shift == 1) return differences_of_two(load_quad(words), load_quad(words + 2 * kWords), key).none();
    uint32_t agree = differences_of_four(words, shift, first, 0, key).none();
    if (shift > 2) agree |= differences_of_four(words, shift, first + 4, 0, key).none() << 4;
    return agree;
  }

  /// The bits in which a key differs from some entries.
  template <uint32_t kEntries>
  struct Differences {
    uint32_t bits[kEntries];

    /// The entries without any, a bit each.
    HEADRACE_SHADER uint32_t none() const {
      uint32_t none = 0;
      for (uint32_t i = 0; i < kEntries; ++i) none |= (bits[i] == 0 ? 1u : 0u) << i;
      return none;
    }
  };
  /// Of a block of two, in two words of a key, \param value,mask the entries' words
  HEADRACE_SHADER static Differences<2> differences_of_two(const Quad& value, const Quad& mask, const uint32_t* key) {
    Differences<2> of;
    for (uint32_t i = 0; i < 2; ++i)
      of.bits[i] = ((key[0] & mask.w[i]) ^ value.w[i]) | ((key[1] & mask.w[2 + i]) ^ value.w[2 + i]);
    return of;
  }
  /// and of the four of a larger one from `first` on, in words `word` and `word` + 1.
  HEADRACE_SHADER static Differences<4> differences_of_four(const uint32_t* words, uint32_t shift, uint32_t first,
                                                            uint32_t word, const uint32_t* key) {
    const auto load = [&](uint32_t of) { return load_quad(words + (size_t{of} << shift) + first); };
    const Quad value0 = load(word), value1 = load(word + 1), mask0 = load(kWords + word),
               mask1 = load(kWords + word + 1);
    Differences<4> of;
    for (uint32_t i = 0; i < 4; ++i)
      of.bits[i] = ((key[word] & mask0.w[i]) ^ value0.w[i]) | ((key[word + 1] & mask1.w[i]) ^ value1.w[i]);
    return of;
  }

  /// The entry of a block of one, if it matches a key of four words: all in one cache line.
  HEADRACE_SHADER static uint32_t match_of_one(const uint32_t* words, const uint32_t* key) {
    const Quad value = load_quad(words), mask = load_quad(words + 4), ports = load_quad(words + 8 + kAclLow);
    uint32_t different = 0;
    for (uint32_t i = 0; i < 4; ++i) different |= (key[i] & mask.w[i]) ^ value.w[i];
    return different == 0 && ports_within(key[kAclPortWord], ports.w[0], ports.w[1]) ? 1 : 0;
  }
  /// Of a block of two, a bit each,
  HEADRACE_SHADER static uint32_t match_of_two(const uint32_t* words, const uint32_t* key) {
    const Quad value0 = load_quad(words), value2 = load_quad(words + 4), mask0 = load_quad(words + 8),
               mask2 = load_quad(words + 12), ports = load_quad(words + 2 * (8 + kAclLow));
    const Differences<2> first = differences_of_two(value0, mask0, key);
    const Differences<2> rest = differences_of_two(value2, mask2, key + 2);
    uint32_t match = first.none() & rest.none();
    for (uint32_t i = 0; i < 2; ++i)
      if (!ports_within(key[kAclPortWord], ports.w[i], ports.w[2 + i])) match &= ~(1u << i);
    return match;
  }
  /// and of four of a larger one.
  HEADRACE_SHADER static uint32_t match_of_four(const uint32_t* words, uint32_t shift, uint32_t first,
                                                const uint32_t* key) {
    uint32_t match = differences_of_four(words, shift, first, 0, key).none();
    if (match == 0) return 0;
    const Quad low = load_quad(words + (size_t{8 + kAclLow} << shift) + first);
    const Quad high = load_quad(words + (size_t{8 + kAclHigh} << shift) + first);
    match &= differences_of_four(words, shift, first, 2, key).none();
    for (uint32_t i = 0; i < 4; ++i)
      if (!ports_within(key[kAclPortWord], low.w[i], high.w[i])) match &= ~(1u << i);
    return match;
  }
  /// Compares a key of more than four words with an entry, and takes it if it matches. True if it did.
  HEADRACE_SHADER bool compare_rest(const uint32_t* words, uint32_t shift, uint32_t index, const uint32_t* key,
                                    AclMatch& found) const {
    constexpr uint32_t kTogether = 8;  // words that are loaded before any is looked at
    const auto load = [&](uint32_t word) { return load_shared(words + (size_t{word} << shift) + index); };
    const Quad outcome = outcome_of(words, index, shift);
    const uint32_t low = load(2 * kWords + kAclLow), high = load(2 * kWords + kAclHigh);
    uint32_t different = 0;
    for (uint32_t left = used_; left != 0 && different == 0;) {
      uint32_t word[kTogether], value[kTogether], mask[kTogether];
      for (uint32_t i = 0; i < kTogether; ++i) {
        word[i] = left != 0 ? lowest_bit(left) : word[0];
        left &= left - 1;
      }
      for (uint32_t i = 0; i < kTogether; ++i) {
        value[i] = load(word[i]);
        mask[i] = load(kWords + word[i]);
      }
      for (uint32_t i = 0; i < kTogether; ++i) different |= (key[word[i]] & mask[i]) ^ value[i];
    }
    return different == 0 && ports_within(key[kAclPortWord], low, high) && take(outcome, found);
  }

  const AclGeneration& table_;
  uint32_t version_;
  uint32_t used_;
};

/// Finds the entry of the best priority that matches a key; of several with one priority, that with the lowest number.
/// Trivially copyable, one pointer; valid until the reader's next quiescent state (headrace/rcu.hh).
///
/// A lookup, and a batch of them, sees the table as of one commit: all of a group of changes or none.
class AclView {
 public:
  AclView() = default;
  bool operator==(const AclView&) const = default;
  HEADRACE_SHADER explicit AclView(const AclGeneration* generation) : generation_(generation) {}

  /// `key`: as many words as the table has.
  HEADRACE_SHADER AclMatch find(const uint32_t* key) const { return find(key, words()); }
  /// The same for one who knows that the table has `words`.
  HEADRACE_SHADER AclMatch find(const uint32_t* key, uint32_t words) const {
    return words == 4    ? AclLookup<4>(*generation_).find(key)
           : words == 12 ? AclLookup<12>(*generation_).find(key)
                         : AclLookup<32>(*generation_).find(key);
  }
  HEADRACE_SHADER uint32_t words() const { return generation_->words; }
  HEADRACE_SHADER const AclGeneration* generation() const { return generation_; }

 private:
  const AclGeneration* generation_ = nullptr;
};

}  // namespace headrace
