#pragma once
/// \file
/// One table of a switch: the entries for readers, and an index by what messages name.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "control/openflow/pipeline/flow_entry.hh"
#include "tables/acl/acl_table.hh"
#include "tables/key/key_match.hh"

namespace headrace::openflow {

/// Entries with one mask, their values one behind the other without the words that no bit of the mask is in.
struct MaskGroup {
  KeyMatch mask;  ///< without a value
  std::vector<uint8_t> words;
  std::vector<uint32_t> values;
  std::vector<uint32_t> numbers;  ///< of entries, by slot

  const uint32_t* value(size_t slot) const { return values.data() + slot * words.size(); }
};

/// Entries are known by numbers, which are unique among all tables. Those that messages name with one match are found by it;
/// those within a match or that overlap it are looked for among masks that can have some: by their values where the mask
/// says all of them, else one by one.
class FlowTable {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  /// Words of the keys of all fields of OpenFlow 1.0, and of all fields.
  static constexpr uint32_t kNarrow = 12, kWide = 32;

  /// \param entries by number
  /// \param place where readers find the entries
  FlowTable(std::vector<FlowEntry>& entries, const AclGeneration** place, uint64_t seed);

  size_t size() const { return size_; }
  /// Of the keys that readers have to make.
  uint32_t key_words() const { return key_words_; }
  KeyMatch match_of(uint32_t number) const;

  /// The entry with this match and rank; kNone if there is none.
  uint32_t find(const KeyMatch& match, uint32_t rank) const;
  /// Calls `visit(number)` for each entry that matches no key outside of `match`.
  void each_within(const KeyMatch& match, const std::function<void(uint32_t)>& visit) const;
  /// Whether some key may match both `match` and an entry of the same rank.
  bool overlaps(const KeyMatch& match, uint32_t rank) const;

  /// Adds the entry of a number, whose rank and program are there. Throws std::bad_alloc, with the table as it was.
  void insert(uint32_t number, const KeyMatch& match);
  void remove(uint32_t number);
  /// Its program has changed, for readers at once.
  void program_changed(uint32_t number) { acl_->set_data(number, entries_[number].program->index); }
  /// What was inserted and removed becomes visible.
  void commit() { acl_->commit(); }
  /// Appends the numbers that have been removed and that no packet can bring back: see AclTable::settle().
  void settle(std::vector<uint32_t>& free, size_t most);
  bool behind() const;
  /// Removed numbers that are not free yet.
  size_t resting() const;

  AclView mirror(Mirror& mirror) const { return acl_->mirror(mirror); }
  size_t memory_bytes() const { return acl_->memory_bytes(); }
  const AclTable& acl() const { return *acl_; }

 private:
  static uint32_t words_for(const KeyMatch& match);
  void widen();
  MaskGroup& group_for(const KeyMatch& match);
  void index(uint32_t number, const KeyMatch& match);
  void drop_index(uint32_t number);

  std::vector<FlowEntry>& entries_;
  const AclGeneration** const place_;
  const uint64_t seed_;
  uint32_t key_words_ = kNarrow;
  size_t size_ = 0;
  std::unique_ptr<AclTable> acl_;
  std::deque<std::unique_ptr<AclTable>> narrower_;  ///< whose removed numbers are not free yet
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<MaskGroup>>> masks_;  // by hash
  std::unordered_multimap<uint64_t, uint32_t> numbers_;                          // by the hash of mask and value
};

}  // namespace headrace::openflow
