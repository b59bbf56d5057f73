#include "tables/acl/acl_trie.hh"

#include <algorithm>

#include "headrace/rcu.hh"

namespace headrace {

namespace {

/// Where the bits that a level looks at end.
constexpr int kLevelEnds[] = {16, 24, 32};
constexpr int kLastLevel = 2;

/// The word of a level that an address belongs to.
uint32_t slot_of(uint32_t address, int level) {
  return level == 0 ? address >> 16 : address >> (32 - kLevelEnds[level]) & 0xff;
}

/// Calls `visit(slot, items)` for each word of a level and the prefixes below it that are longer than the level.
template <typename Visit>
void each_slot(std::span<const AclTrie::Item> items, int level, Visit&& visit) {
  std::vector<AclTrie::Item> deeper;
  for (size_t i = 0; i < items.size();) {
    const uint32_t slot = slot_of(items[i].prefix, level);
    deeper.clear();
    for (; i < items.size() && slot_of(items[i].prefix, level) == slot; ++i)
      if (items[i].length > kLevelEnds[level]) deeper.push_back(items[i]);
    if (!deeper.empty()) visit(slot, std::span<const AclTrie::Item>(deeper));
  }
}

/// Whether a node is worth it: without one, a word has the tuples of all prefixes.
bool several_tuples(std::span<const AclTrie::Item> items) {
  return std::any_of(items.begin(), items.end(),
                     [&](const AclTrie::Item& item) { return item.tuple != items.front().tuple; });
}

}  // namespace

size_t AclTrie::count_nodes(std::span<const Item> items, int level) {
  size_t nodes = 0;
  if (level == kLastLevel) return 0;
  each_slot(items, level, [&](uint32_t, std::span<const Item> deeper) {
    if (deeper.size() >= kPrefixesOfNode && several_tuples(deeper)) nodes += 1 + count_nodes(deeper, level + 1);
  });
  return nodes;
}

AclTrie::AclTrie(std::span<const Item> items, uint64_t wide) {
  const size_t nodes = std::min<size_t>(count_nodes(items, 0), kMostNodes);
  // One word more: a gather of the last one loads two.
  words_ = std::make_unique<DeviceArray<uint16_t>>((AclTrieView::kFirstNode + nodes) * AclTrieView::kNodeWords + 1);
  sets_ = std::make_unique<DeviceArray<uint64_t>>(kMostSets);
  (*sets_)[0] = ~uint64_t{0};
  set_words_ = {{~uint64_t{0}, kAll}};
  std::fill_n(words_->data(), words_->size(), word_of(wide));
  fill(0, items, 0);
}

AclTrie::~AclTrie() {
  rcu::retire([words = std::shared_ptr<DeviceArray<uint16_t>>(std::move(words_)),
               sets = std::shared_ptr<DeviceArray<uint64_t>>(std::move(sets_))] {});
}

uint16_t AclTrie::word_of(uint64_t set) {
  if (const auto known = set_words_.find(set); known != set_words_.end()) return known->second;
  if (set_count_ == kMostSets) return kAll;
  const size_t number = set_count_++;
  const auto word = static_cast<uint16_t>(AclTrieView::kSet | number);
  set_words_.emplace(set, word);
  // Readers may come to know the word only afterwards.
  __atomic_store_n(&(*sets_)[number], set, __ATOMIC_RELEASE);
  sets_->changed(number, 1);
  return word;
}

/// Fills the words of a level, which begin at `base` and have the tuples of shorter prefixes already.
void AclTrie::fill(size_t base, std::span<const Item> items, int level) {
  DeviceArray<uint16_t>& words = *words_;
  const int end = kLevelEnds[level];
  for (const Item& item : items) {
    if (item.length > end) continue;
    const size_t first = base + slot_of(item.prefix, level);
    for (size_t i = first; i < first + (size_t{1} << (end - item.length)); ++i)
      words[i] = word_of(set(words[i]) | uint64_t{1} << item.tuple);
  }
  each_slot(items, level, [&](uint32_t slot, std::span<const Item> deeper) {
    uint16_t& word = words[base + slot];
    const bool divide = level < kLastLevel && deeper.size() >= kPrefixesOfNode && several_tuples(deeper);
    if (divide && nodes_ < kMostNodes) {
      const uint32_t node = AclTrieView::kFirstNode + nodes_++;
      const size_t child = AclTrieView::at(node, 0);
      std::fill_n(&words[child], AclTrieView::kNodeWords, word);
      word = static_cast<uint16_t>(node);
      fill(child, deeper, level + 1);
    } else {
      uint64_t tuples = set(word);
      for (const Item& item : deeper) tuples |= uint64_t{1} << item.tuple;
      word = word_of(tuples);
    }
  });
}

bool AclTrie::add_below(size_t first, size_t last, const Item& item, int level) {
  bool changed = false;
  for (size_t i = first; i < last; ++i) {
    const uint16_t word = (*words_)[i];
    if (!(word & AclTrieView::kSet)) {
      const size_t child = AclTrieView::at(word, 0);
      const int end = kLevelEnds[level + 1];
      const size_t begin = item.length > kLevelEnds[level] ? slot_of(item.prefix, level + 1) : 0;
      const size_t count = item.length <= kLevelEnds[level] ? size_t{AclTrieView::kNodeWords}
                           : item.length < end              ? size_t{1} << (end - item.length)
                                                            : 1;
      changed |= add_below(child + begin, child + begin + count, item, level + 1);
    } else if (const uint64_t bit = uint64_t{1} << item.tuple; (set(word) & bit) == 0) {
      __atomic_store_n(&(*words_)[i], word_of(set(word) | bit), __ATOMIC_RELEASE);
      words_->changed(i, 1);
      changed = true;
    }
  }
  return changed;
}

bool AclTrie::add(const Item& item) {
  const size_t first = slot_of(item.prefix, 0);
  return add_below(first, first + (item.length < 16 ? size_t{1} << (16 - item.length) : 1), item, 0);
}

void AclTrie::widen(uint8_t tuple) {
  set_words_.clear();
  for (size_t i = 0; i < set_count_; ++i) {
    const uint64_t set = (*sets_)[i] | uint64_t{1} << tuple;
    __atomic_store_n(&(*sets_)[i], set, __ATOMIC_RELEASE);
    set_words_.try_emplace(set, static_cast<uint16_t>(AclTrieView::kSet | i));
  }
  sets_->changed(0, set_count_);
}

}  // namespace headrace
