#pragma once
/// \file
/// The tuples with entries for an address: the owner, on the host.

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "headrace/mirror.hh"
#include "tables/acl/acl_view.hh"
#include "tables/memory/device_array.hh"

namespace headrace {

/// A trie of tuples; see AclTrieView. Its nodes are made with it. Later prefixes only add tuples to sets, so that readers
/// see a set that is right or names too many; a new trie makes the sets exact again.
class AclTrie {
 public:
  struct Item {
    uint32_t prefix;  // host bits are clear
    uint8_t length;
    uint8_t tuple;
    auto operator<=>(const Item&) const = default;
  };
  /// Prefixes shorter than this would fill a large part of a trie, and are not for it.
  static constexpr int kShortest = 8;

  /// \param items sorted
  /// \param wide tuples, a bit each, that are in all sets
  AclTrie(std::span<const Item> items, uint64_t wide);
  ~AclTrie();
  AclTrie(const AclTrie&) = delete;
  AclTrie& operator=(const AclTrie&) = delete;

  /// Adds a tuple for a prefix. True if a set has changed.
  bool add(const Item& item);
  /// Adds a tuple for all addresses.
  void widen(uint8_t tuple);

  AclTrieView view() const { return {words_->data(), sets_->data()}; }
  AclTrieView mirror(Mirror& mirror) const { return {words_->mirror(mirror), sets_->mirror(mirror)}; }
  size_t memory_bytes() const { return words_->bytes() + sets_->bytes(); }

 private:
  /// A node pays where it tells this many prefixes apart: it takes 512 bytes.
  static constexpr size_t kPrefixesOfNode = 4;
  static constexpr uint32_t kMostNodes = AclTrieView::kSet - AclTrieView::kFirstNode, kMostSets = AclTrieView::kSet;
  /// The word of the set of all tuples, for when there are too many different ones.
  static constexpr uint16_t kAll = AclTrieView::kSet;

  static size_t count_nodes(std::span<const Item> items, int level);
  void fill(size_t base, std::span<const Item> items, int level);
  bool add_below(size_t first, size_t last, const Item& item, int level);
  uint64_t set(uint16_t word) const { return view().set(word); }
  /// The word of a set.
  uint16_t word_of(uint64_t set);

  std::unique_ptr<DeviceArray<uint16_t>> words_;
  std::unique_ptr<DeviceArray<uint64_t>> sets_;
  std::unordered_map<uint64_t, uint16_t> set_words_;
  size_t set_count_ = 1;
  uint32_t nodes_ = 0;
};

}  // namespace headrace
