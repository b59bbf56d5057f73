#include "tables/acl/acl_blocks.hh"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace headrace {

AclBlocks::AclBlocks(uint32_t key_words) : key_words_(key_words), cells_(std::make_unique<DeviceArray<AclCell>>(1024)) {
  // Block 0 has one entry, which matches nothing, so that a lookup need not know that it has no block.
  word(0, 0, 0) = 1;
}

AclBlocks::~AclBlocks() {
  rcu::retire([old = std::shared_ptr<DeviceArray<AclCell>>(std::move(cells_))] {});
}

std::unique_ptr<DeviceArray<AclCell>> AclBlocks::copy() const {
  auto larger = std::make_unique<DeviceArray<AclCell>>(cells_->size() * (used_ > cells_->size() / 2 ? 2 : 1));
  std::memcpy(static_cast<void*>(larger->data()), cells_->data(), used_ * sizeof(AclCell));
  return larger;
}

void AclBlocks::replace(std::unique_ptr<DeviceArray<AclCell>> copy) {
  std::swap(cells_, copy);
  rcu::retire([old = std::shared_ptr<DeviceArray<AclCell>>(std::move(copy))] {});
}

uint32_t AclBlocks::take(uint32_t entries) {
  const auto shift = static_cast<uint32_t>(std::bit_width(entries - 1));
  std::vector<uint32_t>& free = free_[shift];
  if (free.empty()) reclaim();
  uint32_t block = used_ << 3 | shift;
  if (free.empty()) {
    used_ += cells_of(shift);
  } else {
    block = free.back();
    free.pop_back();
  }
  // Readers come to the block by loads that order nothing but what depends on them.
  uint32_t* const word = words(block);
  for (uint32_t i = 0; i < entry_words() << shift; ++i)
    __atomic_store_n(word + i, i < 1u << shift ? 1 : 0, __ATOMIC_RELAXED);
  if (shift == AclBlock::kLargest) __atomic_store_n(word + (entry_words() << shift), 0, __ATOMIC_RELAXED);
  changed(block);
  return block;
}

uint32_t AclBlocks::count(uint32_t block) const {
  uint32_t count = 0;
  while (count < room(block) && !empty(block, count)) ++count;
  return count;
}

void AclBlocks::write(uint32_t block, uint32_t index, const uint32_t* entry) {
  // From the last word to the first: the life before all that a key may match.
  for (uint32_t i = entry_words(); i-- > 0;)
    __atomic_store_n(&word(block, index, i), entry[i], i < 2 * key_words_ ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
  changed(block);
}

void AclBlocks::copy(uint32_t block, uint32_t index, uint32_t* entry) const {
  for (uint32_t i = 0; i < entry_words(); ++i) entry[i] = word(block, index, i);
}

void AclBlocks::publish(uint32_t block, uint32_t index, uint32_t which, uint32_t value) {
  __atomic_store_n(&word(block, index, which), value, __ATOMIC_RELEASE);
  changed(block);
}

void AclBlocks::set_next(uint32_t block, uint32_t next) {
  __atomic_store_n(words(block) + (entry_words() << AclBlock::kLargest), next, __ATOMIC_RELEASE);
  changed(block);
}

void AclBlocks::changed(uint32_t block) { cells_->changed(AclBlock::cell(block), cells_of(AclBlock::shift(block))); }

void AclBlocks::give_up(uint32_t block) {
  given_up_.push_back(block);
  if (given_up_.size() >= 1024) begin_grace();
}

void AclBlocks::begin_grace() {
  if (given_up_.empty()) return;
  resting_.push_back({rcu::start_grace(), std::exchange(given_up_, {})});
}

void AclBlocks::reclaim() {
  while (!resting_.empty() && rcu::elapsed(resting_.front().grace)) {
    for (const uint32_t block : resting_.front().blocks) free_[AclBlock::shift(block)].push_back(block);
    resting_.pop_front();
  }
}

}  // namespace headrace
