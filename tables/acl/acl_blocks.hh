#pragma once
/// \file
/// The memory of a table's groups: blocks of entries that readers walk while they are replaced.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/acl/acl_view.hh"
#include "tables/memory/device_array.hh"

namespace headrace {

/// Blocks of entries, see AclBlock. A block that was given up is used again when every rcu::Reader that was online has
/// passed a quiescent state.
class AclBlocks {
 public:
  static constexpr uint32_t kMostEntries = 1u << AclBlock::kLargest;

  /// \param key_words of an entry's value and of its mask
  explicit AclBlocks(uint32_t key_words);
  ~AclBlocks();

  /// Whether so many calls of take() in a row might not succeed.
  bool short_of(uint32_t blocks) const { return used_ + blocks * cells_of(AclBlock::kLargest) > cells_->size(); }
  /// All in another array, twice as large if there is little room. Throws std::bad_alloc.
  std::unique_ptr<DeviceArray<AclCell>> copy() const;
  /// Goes on with a copy() of what there is. Readers go on with the old array, which does not change any more.
  void replace(std::unique_ptr<DeviceArray<AclCell>> copy);
  /// A block with room for `entries`, at most kMostEntries, that has none.
  uint32_t take(uint32_t entries);
  /// Nobody can reach the block any more, except readers that are in it already.
  void give_up(uint32_t block);
  /// What was given up until now may be used again after a grace period from now on.
  void begin_grace();

  static uint32_t room(uint32_t block) { return 1u << AclBlock::shift(block); }
  uint32_t entry_words() const { return 2 * key_words_ + kAclMoreWords; }
  /// A word of an entry in its block.
  uint32_t& word(uint32_t block, uint32_t index, uint32_t word) {
    return words(block)[AclBlock::place(key_words_, AclBlock::shift(block), index, word)];
  }
  uint32_t word(uint32_t block, uint32_t index, uint32_t word) const {
    return words(block)[AclBlock::place(key_words_, AclBlock::shift(block), index, word)];
  }
  bool empty(uint32_t block, uint32_t index) const {
    return word(block, index, key_words_) == 0 && word(block, index, 0) == 1;
  }
  /// Entries of a block; they are in its first places.
  uint32_t count(uint32_t block) const;
  /// The block with which the group goes on; 0: none.
  uint32_t next(uint32_t block) const { return AclBlock::shift(block) == AclBlock::kLargest ? *next_word(block) : 0; }
  /// Of a block of kMostEntries.
  void set_next(uint32_t block, uint32_t next);
  /// Writes an entry into a place that has none. Readers may be there: they must not see the entry as alive.
  void write(uint32_t block, uint32_t index, const uint32_t* entry);
  void copy(uint32_t block, uint32_t index, uint32_t* entry) const;
  /// Changes a word for readers.
  void publish(uint32_t block, uint32_t index, uint32_t word, uint32_t value);

  const AclCell* data() const { return cells_->data(); }
  const AclCell* mirror(Mirror& mirror) const { return cells_->mirror(mirror); }
  size_t memory_bytes() const { return cells_->bytes(); }

 private:
  struct Resting {
    rcu::Epoch grace;
    std::vector<uint32_t> blocks;
  };

  uint32_t cells_of(uint32_t shift) const {
    const uint32_t words = (entry_words() << shift) + (shift == AclBlock::kLargest ? 1 : 0);
    return (words * static_cast<uint32_t>(sizeof(uint32_t)) + sizeof(AclCell) - 1) / sizeof(AclCell);
  }
  uint32_t* words(uint32_t block) { return (*cells_)[AclBlock::cell(block)].w; }
  const uint32_t* words(uint32_t block) const { return (*cells_)[AclBlock::cell(block)].w; }
  const uint32_t* next_word(uint32_t block) const { return words(block) + (entry_words() << AclBlock::kLargest); }
  void changed(uint32_t block);
  void reclaim();

  const uint32_t key_words_;
  std::unique_ptr<DeviceArray<AclCell>> cells_;
  uint32_t used_ = cells_of(0);  // block 0 is none
  std::vector<uint32_t> free_[AclBlock::kLargest + 1];
  std::vector<uint32_t> given_up_;  // since the last begin_grace()
  std::deque<Resting> resting_;
};

}  // namespace headrace
