#pragma once
/// \file
/// The structure that lookups in a table of masked entries walk: tuples, groups and blocks.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/mirror.hh"
#include "tables/acl/acl_blocks.hh"
#include "tables/acl/acl_trie.hh"
#include "tables/acl/acl_view.hh"
#include "tables/hash/hash_table.hh"

namespace headrace {

/// What a table is made with.
struct AclOptions {
  /// Words of a key: 4, 12 or 32.
  uint32_t words = 4;
  /// A group gets no more entries than this while a finer tuple would part them (the paper's collision limit c).
  uint32_t collisions = 40;
  /// Makes hashes hard to guess; any number.
  uint64_t seed = 0x9ae16a3b2f90404full;
};

/// Entries in groups, found by number and changed in place under readers. An entry consists of value, mask, and what
/// AclWord names.
class AclGroups {
 public:
  static constexpr uint32_t kMostWords = 32;
  using Entry = std::array<uint32_t, 2 * kMostWords + kAclMoreWords>;

  /// A table that is made with no more entries than this has all of them in one group: to look at all is faster than to hash.
  static constexpr size_t kFew = AclBlocks::kMostEntries;

  /// Where an entry was put; for erase() and find().
  struct Handle {
    uint32_t hash = 0;
    uint8_t tuple = 0;
  };

  /// \param entry makes the i-th of `count` entries, which are sorted by rank, so that tuples are made in the order of their
  /// best priorities. `handles` gets their handles.
  AclGroups(const AclOptions& options, size_t count, const std::function<Entry(size_t)>& entry,
            std::vector<Handle>& handles);
  ~AclGroups();
  AclGroups(const AclGroups&) = delete;
  AclGroups& operator=(const AclGroups&) = delete;

  /// Whether the next insert() or erase() may lack memory.
  bool needs_room() const {
    constexpr uint32_t kMostBlocks = 3;
    return groups_.full() || blocks_.short_of(kMostBlocks);
  }
  /// Makes sure that it does not. Views are outdated then: those who have one go on with a copy of the structure that does not
  /// change any more. Throws std::bad_alloc, with all as it was.
  void make_room();
  Handle insert(const Entry& entry);
  void erase(uint32_t number, Handle handle);
  Entry find(uint32_t number, Handle handle) const;
  uint32_t get(uint32_t number, Handle handle, AclWord word) const;
  /// Replaces a word of an entry, for readers as well.
  void set(uint32_t number, Handle handle, AclWord word, uint32_t value);
  /// Makes what was inserted and erased visible as commit `version`.
  void publish_version(uint32_t version);
  uint32_t version() const { return (*index_)[0].version; }

  /// It was made for kFew entries, and has more now: made anew it would not be one group.
  bool outgrown(size_t entries) const { return made_for_few_ && entries > kFew; }
  /// Insertions that made lookups look for more than a table made anew would have to,
  size_t coarsenings() const { return coarsenings_; }
  /// and those after which new tries do as well.
  size_t trie_coarsenings() const { return trie_coarsenings_; }
  /// The prefixes of entries, for the tries.
  using TrieItems = std::array<std::vector<AclTrie::Item>, 2>;
  void add_items(uint32_t number, Handle handle, TrieItems& items) const;
  /// Makes tries of `items` anew. Views are outdated then, as by make_room(). Throws std::bad_alloc.
  void renew_tries(TrieItems& items);

  AclGeneration generation() const;
  AclGeneration mirror(Mirror& mirror) const;
  uint32_t entry_words() const { return 2 * words_ + kAclMoreWords; }

  struct TupleFigures {
    size_t entries = 0;
    size_t groups = 0;
    size_t largest_group = 0;
  };
  uint32_t tuple_count() const { return tuple_count_; }
  const uint32_t* tuple_mask(uint32_t tuple) const { return &(*masks_)[size_t{tuple} * words_]; }
  TupleFigures figures(uint32_t tuple) const;
  size_t memory_bytes() const;

 private:
  struct Place {
    uint32_t before = 0;  // the block in front of it; 0: it is the first of its group
    uint32_t block = 0;
    uint32_t index = 0;
  };
  using Mask = std::array<uint32_t, kMostWords>;

  template <typename T>
  static void publish(T& word, T value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  }
  uint32_t hash_of(const uint32_t* value, uint32_t tuple) const;
  uint32_t group_of(const uint32_t* value, uint32_t tuple, uint32_t hash) const;
  uint32_t group_size(uint32_t block) const;
  uint32_t choose_tuple(const Entry& entry);
  uint32_t add_tuple(const Mask& mask);
  bool have_tuple(const Mask& mask) const;
  /// Masks for a new tuple for entries with `mask`, the coarsest first.
  std::vector<Mask> coarser(const uint32_t* mask) const;
  /// The side of an entry for a trie; nothing if it is for too many addresses.
  std::optional<AclTrie::Item> trie_item(const Entry& entry, uint32_t side, uint32_t tuple) const;
  void widen(uint32_t side, uint32_t tuple);
  static std::unique_ptr<AclTrie> make_trie(std::vector<AclTrie::Item>& items, uint64_t wide);
  /// Those who have a generation go on with an index that does not change any more.
  std::unique_ptr<DeviceArray<AclIndex>> copy_of_index() const;
  void put(const Entry& entry, Handle handle);
  Place find_place(uint32_t number, Handle handle) const;
  void replace_block(const Place& place, uint32_t hash, uint32_t new_block);
  /// Before an entry that gets into a tuple is seen.
  void raise_best(uint32_t tuple, uint32_t priority);
  void use_words(const uint32_t* mask);
  /// Says where all entries are, when a group, the first one, or a tuple has been made.
  void publish_only_group();

  const uint32_t words_;
  const uint32_t collisions_;
  const uint64_t seed_;
  const bool made_for_few_;
  HashTable groups_;
  AclBlocks blocks_;
  std::unique_ptr<DeviceArray<AclIndex>> index_;
  std::unique_ptr<DeviceArray<uint32_t>> masks_;
  std::unique_ptr<AclTrie> tries_[2];
  /// Tuples with entries that are for a large part of all values of word 0 or 1: never pruned by that word.
  uint64_t wide_[2] = {};
  uint32_t tuple_count_ = 0;
  size_t tuple_entries_[kAclTuples] = {};
  size_t coarsenings_ = 0;
  size_t trie_coarsenings_ = 0;
};

}  // namespace headrace
