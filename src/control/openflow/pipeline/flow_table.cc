#include "control/openflow/pipeline/flow_table.hh"

#include <algorithm>
#include <utility>

#include "tables/hash/hash_view.hh"

namespace headrace::openflow {

namespace {

/// Whether all bits of `part` are in `whole`.
bool is_part(const KeyMatch& part, const KeyMatch& whole) {
  uint32_t missing = 0;
  for (uint32_t i = 0; i < key_word::kCount; ++i) missing |= part.mask[i] & ~whole.mask[i];
  return missing == 0;
}

bool same_mask(const KeyMatch& a, const KeyMatch& b) { return a.mask == b.mask && a.low == b.low && a.high == b.high; }

uint64_t hash_of_mask(const KeyMatch& match) {
  uint64_t h = uint64_t{match.low} << 32 | match.high;
  for (uint32_t i = 0; i < key_word::kCount; i += 2)
    h = fold_multiply(h ^ (uint64_t{match.mask[i]} << 32 | match.mask[i + 1]), 0x9e3779b97f4a7c15ull + i);
  return h;
}

/// Of a group's mask and the value of a match under it.
uint64_t hash_of_value(const MaskGroup& group, const KeyMatch& match) {
  uint64_t h = fold_multiply(reinterpret_cast<uintptr_t>(&group) ^ 0xe7037ed1a0b428dbull, 0x9e3779b97f4a7c15ull);
  for (const uint8_t word : group.words)
    h = fold_multiply(h ^ (match.value[word] & group.mask.mask[word]), 0x9e3779b97f4a7c15ull + word);
  return h;
}

/// Whether an entry's value is that of a match, where the match has bits.
bool value_is(const MaskGroup& group, size_t slot, const KeyMatch& match) {
  const uint32_t* const value = group.value(slot);
  uint32_t different = 0;
  for (size_t i = 0; i < group.words.size(); ++i) {
    const uint32_t word = group.words[i];
    different |= (value[i] ^ match.value[word]) & match.mask[word] & group.mask.mask[word];
  }
  return different == 0;
}

bool ranges_meet(const KeyMatch& a, const KeyMatch& b) {
  const auto meet = [&](uint32_t shift) {
    const uint32_t low = std::max(a.low >> shift & 0xffff, b.low >> shift & 0xffff);
    const uint32_t high = std::min(a.high >> shift & 0xffff, b.high >> shift & 0xffff);
    return low <= high;
  };
  return meet(0) && meet(16);
}

/// Whether ports between `part`'s bounds are between `whole`'s.
bool ranges_within(const KeyMatch& part, const KeyMatch& whole) {
  return part.low >> 16 >= whole.low >> 16 && (part.low & 0xffff) >= (whole.low & 0xffff) &&
         part.high >> 16 <= whole.high >> 16 && (part.high & 0xffff) <= (whole.high & 0xffff);
}

AclRule acl_rule_of(const KeyMatch& match, const FlowEntry& entry) {
  AclRule rule;
  rule.value = match.value;
  rule.mask = match.mask;
  rule.low = match.low;
  rule.high = match.high;
  rule.priority = entry.rank;
  rule.data = entry.program->index;
  return rule;
}

}  // namespace

FlowTable::FlowTable(std::vector<FlowEntry>& entries, const AclGeneration** place, uint64_t seed)
    : entries_(entries), place_(place), seed_(seed) {
  AclOptions options;
  options.words = key_words_;
  options.seed = seed_;
  acl_ = std::make_unique<AclTable>(options);
  acl_->publish_at(place_);
}

uint32_t FlowTable::words_for(const KeyMatch& match) {
  for (uint32_t word = kNarrow; word < kWide; ++word)
    if (match.mask[word] != 0) return kWide;
  return kNarrow;
}

KeyMatch FlowTable::match_of(uint32_t number) const {
  const FlowEntry& entry = entries_[number];
  const MaskGroup& group = *entry.masks;
  KeyMatch match = group.mask;
  for (size_t i = 0; i < group.words.size(); ++i) match.value[group.words[i]] = group.value(entry.slot)[i];
  return match;
}

uint32_t FlowTable::find(const KeyMatch& match, uint32_t rank) const {
  const auto groups = masks_.find(hash_of_mask(match));
  if (groups == masks_.end()) return kNone;
  for (const auto& group : groups->second) {
    if (!same_mask(group->mask, match)) continue;
    const auto [begin, end] = numbers_.equal_range(hash_of_value(*group, match));
    for (auto it = begin; it != end; ++it) {
      const FlowEntry& entry = entries_[it->second];
      if (entry.masks == group.get() && entry.rank == rank && value_is(*group, entry.slot, match)) return it->second;
    }
  }
  return kNone;
}

void FlowTable::each_within(const KeyMatch& match, const std::function<void(uint32_t)>& visit) const {
  std::vector<uint32_t> found;  // visit() may change the table
  for (const auto& [hash, groups] : masks_) {
    for (const auto& group : groups) {
      if (!is_part(match, group->mask) || !ranges_within(group->mask, match)) continue;
      if (group->mask.mask == match.mask) {
        const auto [begin, end] = numbers_.equal_range(hash_of_value(*group, match));
        for (auto it = begin; it != end; ++it) {
          const FlowEntry& entry = entries_[it->second];
          if (entry.masks == group.get() && value_is(*group, entry.slot, match)) found.push_back(it->second);
        }
      } else {
        for (size_t slot = 0; slot < group->numbers.size(); ++slot)
          if (value_is(*group, slot, match)) found.push_back(group->numbers[slot]);
      }
    }
  }
  for (const uint32_t number : found) visit(number);
}

bool FlowTable::overlaps(const KeyMatch& match, uint32_t rank) const {
  for (const auto& [hash, groups] : masks_) {
    for (const auto& group : groups) {
      if (!ranges_meet(group->mask, match)) continue;
      if (is_part(group->mask, match)) {
        const auto [begin, end] = numbers_.equal_range(hash_of_value(*group, match));
        for (auto it = begin; it != end; ++it) {
          const FlowEntry& entry = entries_[it->second];
          if (entry.masks == group.get() && entry.rank == rank && value_is(*group, entry.slot, match)) return true;
        }
      } else {
        for (size_t slot = 0; slot < group->numbers.size(); ++slot)
          if (entries_[group->numbers[slot]].rank == rank && value_is(*group, slot, match)) return true;
      }
    }
  }
  return false;
}

MaskGroup& FlowTable::group_for(const KeyMatch& match) {
  auto& groups = masks_[hash_of_mask(match)];
  for (const auto& group : groups)
    if (same_mask(group->mask, match)) return *group;
  auto made = std::make_unique<MaskGroup>();
  made->mask = match;
  made->mask.value = {};
  for (uint32_t word = 0; word < key_word::kCount; ++word)
    if (match.mask[word] != 0) made->words.push_back(static_cast<uint8_t>(word));
  groups.push_back(std::move(made));
  return *groups.back();
}

void FlowTable::index(uint32_t number, const KeyMatch& match) {
  MaskGroup& group = group_for(match);
  numbers_.emplace(hash_of_value(group, match), number);
  for (const uint8_t word : group.words) group.values.push_back(match.value[word] & match.mask[word]);
  group.numbers.push_back(number);
  entries_[number].masks = &group;
  entries_[number].slot = static_cast<uint32_t>(group.numbers.size() - 1);
}

void FlowTable::drop_index(uint32_t number) {
  FlowEntry& entry = entries_[number];
  MaskGroup& group = *entry.masks;
  const auto [begin, end] = numbers_.equal_range(hash_of_value(group, match_of(number)));
  numbers_.erase(std::find_if(begin, end, [number](const auto& one) { return one.second == number; }));
  // The last entry of the group takes the place.
  const size_t stride = group.words.size(), last = group.numbers.size() - 1;
  if (entry.slot != last)
    std::copy_n(group.values.end() - static_cast<std::ptrdiff_t>(stride), stride,
                group.values.begin() + static_cast<std::ptrdiff_t>(entry.slot * stride));
  group.values.resize(last * stride);
  group.numbers[entry.slot] = group.numbers[last];
  entries_[group.numbers[last]].slot = entry.slot;
  group.numbers.pop_back();
  entry.masks = nullptr;
  if (last != 0) return;
  const auto groups = masks_.find(hash_of_mask(group.mask));
  std::erase_if(groups->second, [&](const auto& one) { return one.get() == &group; });
  if (groups->second.empty()) masks_.erase(groups);
}

void FlowTable::insert(uint32_t number, const KeyMatch& match) {
  if (words_for(match) > key_words_) widen();
  index(number, match);
  try {
    acl_->insert(number, acl_rule_of(match, entries_[number]));
  } catch (...) {
    drop_index(number);
    throw;
  }
  ++size_;
}

void FlowTable::remove(uint32_t number) {
  acl_->remove(number);
  drop_index(number);
  --size_;
}

/// Makes the table anew with keys of all fields. Readers find all of it in one moment.
void FlowTable::widen() {
  AclOptions options;
  options.words = kWide;
  options.seed = seed_;
  auto made = std::make_unique<AclTable>(options);
  for (const auto& [hash, groups] : masks_)
    for (const auto& group : groups)
      for (const uint32_t number : group->numbers)
        made->insert(number, acl_rule_of(match_of(number), entries_[number]));
  made->commit();
  acl_->commit();
  acl_->publish_at(nullptr);
  made->publish_at(place_);
  std::swap(acl_, made);
  narrower_.push_back(std::move(made));
  key_words_ = kWide;
}

void FlowTable::settle(std::vector<uint32_t>& free, size_t most) {
  const auto take = [&](AclTable& table) {
    const std::vector<uint32_t> some = table.settle(most);
    free.insert(free.end(), some.begin(), some.end());
  };
  for (const auto& table : narrower_) take(*table);
  while (!narrower_.empty() && narrower_.front()->resting() == 0) narrower_.pop_front();
  take(*acl_);
}

bool FlowTable::behind() const {
  return acl_->behind() ||
         std::any_of(narrower_.begin(), narrower_.end(), [](const auto& table) { return table->behind(); });
}

size_t FlowTable::resting() const {
  size_t count = acl_->resting();
  for (const auto& table : narrower_) count += table->resting();
  return count;
}

}  // namespace headrace::openflow
