#include "tables/acl/acl_groups.hh"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "headrace/rcu.hh"

namespace headrace {

namespace {

/// Words of a key (see tables/key/packet_key_view.hh) with addresses of IP, ARP, Ethernet and neighbor discovery.
constexpr uint32_t kAddressWords = 0x7fff00e3;

template <typename T>
void discard(std::unique_ptr<T>& part) {
  rcu::retire([old = std::shared_ptr<T>(std::move(part))] {});
}

}  // namespace

AclGroups::AclGroups(const AclOptions& options, size_t count, const std::function<Entry(size_t)>& entry_of,
                     std::vector<Handle>& handles)
    : words_(options.words),
      collisions_(options.collisions),
      seed_(options.seed),
      made_for_few_(count <= kFew),
      groups_(count),
      blocks_(options.words),
      index_(std::make_unique<DeviceArray<AclIndex>>(1)),
      masks_(std::make_unique<DeviceArray<uint32_t>>(size_t{kAclTuples} * options.words)) {
  handles.clear();
  handles.reserve(count);
  TrieItems items;
  if (made_for_few_) add_tuple(Mask{});
  for (size_t i = 0; i < count; ++i) {
    const Entry entry = entry_of(i);
    if (needs_room()) make_room();
    const uint32_t tuple = choose_tuple(entry);
    handles.push_back({hash_of(entry.data(), tuple), static_cast<uint8_t>(tuple)});
    put(entry, handles.back());
    raise_best(tuple, entry[2 * words_ + kAclPriority]);
    use_words(&entry[words_]);
    ++tuple_entries_[tuple];
    for (uint32_t side = 0; side < 2; ++side) {
      if (const auto item = trie_item(entry, side, tuple)) {
        items[side].push_back(*item);
      } else {
        widen(side, tuple);
      }
    }
  }
  for (uint32_t side = 0; side < 2; ++side) tries_[side] = make_trie(items[side], wide_[side]);
  coarsenings_ = 0;
}

std::unique_ptr<AclTrie> AclGroups::make_trie(std::vector<AclTrie::Item>& items, uint64_t wide) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return std::make_unique<AclTrie>(items, wide);
}

void AclGroups::add_items(uint32_t number, Handle handle, TrieItems& items) const {
  const Entry entry = find(number, handle);
  for (uint32_t side = 0; side < 2; ++side)
    if (const auto item = trie_item(entry, side, handle.tuple)) items[side].push_back(*item);
}

void AclGroups::renew_tries(TrieItems& items) {
  std::unique_ptr<AclTrie> tries[2] = {make_trie(items[0], wide_[0]), make_trie(items[1], wide_[1])};
  auto index = copy_of_index();
  for (uint32_t side = 0; side < 2; ++side) tries_[side].swap(tries[side]);
  std::swap(index_, index);
  discard(index);
  trie_coarsenings_ = 0;
}

std::unique_ptr<DeviceArray<AclIndex>> AclGroups::copy_of_index() const {
  auto index = std::make_unique<DeviceArray<AclIndex>>(1);
  (*index)[0] = (*index_)[0];
  return index;
}

AclGroups::~AclGroups() {
  discard(index_);
  discard(masks_);
}

uint32_t AclGroups::hash_of(const uint32_t* value, uint32_t tuple) const {
  const uint32_t* const mask = tuple_mask(tuple);
  return words_ == 4    ? acl_hash<4>(value, mask, acl_seed(seed_, tuple))
         : words_ == 12 ? acl_hash<12>(value, mask, acl_seed(seed_, tuple))
                        : acl_hash<32>(value, mask, acl_seed(seed_, tuple));
}

/// The first block of the group that has `value` under the tuple's mask; 0 if there is none.
uint32_t AclGroups::group_of(const uint32_t* value, uint32_t tuple, uint32_t hash) const {
  const uint32_t* const mask = tuple_mask(tuple);
  uint32_t found = 0;
  groups_.view().each(hash, [&](uint32_t block) {
    uint32_t different = 0;
    for (uint32_t i = 0; i < words_; ++i) different |= (blocks_.word(block, 0, i) ^ value[i]) & mask[i];
    if (different == 0) found = block;
    return different == 0;
  });
  return found;
}

uint32_t AclGroups::group_size(uint32_t block) const {
  uint32_t size = 0;
  for (; block != 0; block = blocks_.next(block)) size += blocks_.count(block);
  return size;
}

bool AclGroups::have_tuple(const Mask& mask) const {
  for (uint32_t tuple = 0; tuple < tuple_count_; ++tuple)
    if (std::equal(tuple_mask(tuple), tuple_mask(tuple) + words_, mask.begin())) return true;
  return false;
}

uint32_t AclGroups::add_tuple(const Mask& mask) {
  const uint32_t tuple = tuple_count_++;
  for (uint32_t i = 0; i < words_; ++i) publish((*masks_)[size_t{tuple} * words_ + i], mask[i]);
  masks_->changed(size_t{tuple} * words_, words_);
  ++coarsenings_;
  publish_only_group();
  return tuple;
}

std::vector<AclGroups::Mask> AclGroups::coarser(const uint32_t* mask) const {
  // Entries share whole bytes of addresses; what is left of prefixes, and other fields, is compared. If that does not part
  // them, whole bytes of all fields do, and at last all bits.
  Mask addresses{}, bytes{}, all{};
  for (uint32_t i = 0; i < words_; ++i) {
    all[i] = mask[i];
    for (uint32_t byte = 0xff; byte != 0; byte <<= 8) bytes[i] |= (mask[i] & byte) == byte ? byte : 0;
    if (kAddressWords >> i & 1) addresses[i] = bytes[i];
  }
  return {addresses, bytes, all};
}

/// The tuple for an entry: the first one whose group has room, else a new one, as coarse as possible. When there are too
/// many, the one with the smallest group.
uint32_t AclGroups::choose_tuple(const Entry& entry) {
  const uint32_t* const mask = &entry[words_];
  uint32_t best = kAclTuples;
  uint32_t best_size = ~uint32_t{0};
  for (uint32_t tuple = 0; tuple < tuple_count_; ++tuple) {
    const uint32_t* const coarse = tuple_mask(tuple);
    uint32_t beyond = 0;
    for (uint32_t i = 0; i < words_; ++i) beyond |= coarse[i] & ~mask[i];
    if (beyond != 0) continue;
    const uint32_t size = group_size(group_of(entry.data(), tuple, hash_of(entry.data(), tuple)));
    if (size < collisions_) return tuple;
    if (size < best_size) {
      best = tuple;
      best_size = size;
    }
  }
  if (tuple_count_ < kAclTuples - 1)
    for (const Mask& coarse : coarser(mask))
      if (!have_tuple(coarse)) return add_tuple(coarse);
  // The tuple without a mask takes what no other one can: it is the linear list.
  return best != kAclTuples ? best : add_tuple(Mask{});
}

std::optional<AclTrie::Item> AclGroups::trie_item(const Entry& entry, uint32_t side, uint32_t tuple) const {
  const uint32_t mask = entry[words_ + side];
  const int length = std::countl_one(mask);
  if (length < AclTrie::kShortest) return std::nullopt;
  return AclTrie::Item{entry[side] & ~uint32_t{0} << (32 - length), static_cast<uint8_t>(length),
                       static_cast<uint8_t>(tuple)};
}

void AclGroups::widen(uint32_t side, uint32_t tuple) {
  const uint64_t bit = uint64_t{1} << tuple;
  if (wide_[side] & bit) return;
  wide_[side] |= bit;
  if (tries_[side]) tries_[side]->widen(static_cast<uint8_t>(tuple));
  ++coarsenings_;
}

void AclGroups::raise_best(uint32_t tuple, uint32_t priority) {
  AclIndex& index = (*index_)[0];
  if (priority <= index.best[tuple]) return;
  for (uint32_t i = tuple + 1; i-- > 0 && index.best[i] < priority;) publish(index.best[i], priority);
  index_->changed(0, 1);
}

void AclGroups::use_words(const uint32_t* mask) {
  uint32_t& used = (*index_)[0].used;
  uint32_t now = used;
  for (uint32_t i = 0; i < words_; ++i) now |= (mask[i] != 0 ? 1u : 0u) << i;
  if (now == used) return;
  publish(used, now);
  index_->changed(0, 1);
}

void AclGroups::publish_only_group() {
  const auto has_no_mask = [&](uint32_t tuple) {
    return std::all_of(tuple_mask(tuple), tuple_mask(tuple) + words_, [](uint32_t word) { return word == 0; });
  };
  uint32_t only = 0;
  if (tuple_count_ == 1 && has_no_mask(0)) {
    const Entry any{};
    only = group_of(any.data(), 0, hash_of(any.data(), 0));
  }
  uint32_t& now = (*index_)[0].only_group;
  if (only == now) return;
  publish(now, only);
  index_->changed(0, 1);
}

AclGeneration AclGroups::generation() const {
  return {index_->data(), {tries_[0]->view(), tries_[1]->view()}, masks_->data(), blocks_.data(), groups_.view(), seed_,
          words_};
}

AclGeneration AclGroups::mirror(Mirror& mirror) const {
  return {index_->mirror(mirror),
          {tries_[0]->mirror(mirror), tries_[1]->mirror(mirror)},
          masks_->mirror(mirror),
          blocks_.mirror(mirror),
          groups_.mirror(mirror),
          seed_,
          words_};
}

/// Those who have a generation must see one state of the table, also of the index, so all that does not only grow is
/// copied.
void AclGroups::make_room() {
  // What may fail comes first: nothing that readers can reach is retired then.
  auto index = copy_of_index();
  auto blocks = blocks_.copy();
  groups_.renew();
  blocks_.replace(std::move(blocks));
  std::swap(index_, index);
  discard(index);
}

AclGroups::Handle AclGroups::insert(const Entry& entry) {
  const uint32_t tuple = choose_tuple(entry);
  const Handle handle{hash_of(entry.data(), tuple), static_cast<uint8_t>(tuple)};
  // Nobody misses the entry before the commit, but then it must be found.
  for (uint32_t side = 0; side < 2; ++side) {
    if (const auto item = trie_item(entry, side, tuple)) {
      trie_coarsenings_ += tries_[side]->add(*item) ? 1 : 0;
    } else {
      widen(side, tuple);
    }
  }
  raise_best(tuple, entry[2 * words_ + kAclPriority]);
  use_words(&entry[words_]);
  put(entry, handle);
  ++tuple_entries_[tuple];
  return handle;
}

/// Puts an entry into its group, by rank.
void AclGroups::put(const Entry& entry, Handle handle) {
  const uint32_t priority = entry[2 * words_ + kAclPriority], number = entry[2 * words_ + kAclNumber];
  const auto before = [&](uint32_t block, uint32_t index) {
    const uint32_t other = blocks_.word(block, index, 2 * words_ + kAclPriority);
    return priority != other ? priority > other : number < blocks_.word(block, index, 2 * words_ + kAclNumber);
  };
  const auto alone = [&] {
    const uint32_t block = blocks_.take(1);
    blocks_.write(block, 0, entry.data());
    return block;
  };
  const uint32_t first = group_of(entry.data(), handle.tuple, handle.hash);
  if (first == 0) {
    groups_.insert(handle.hash, alone());
    publish_only_group();
    return;
  }
  // The first block with an entry that the new one ranks before, or the last block.
  Place place{0, first, 0};
  uint32_t count = blocks_.count(first);
  while (blocks_.next(place.block) != 0 && !before(place.block, count - 1)) {
    place = {place.block, blocks_.next(place.block), 0};
    count = blocks_.count(place.block);
  }
  while (place.index < count && !before(place.block, place.index)) ++place.index;
  if (place.index == count && count < AclBlocks::room(place.block)) {
    blocks_.write(place.block, count, entry.data());
    return;
  }
  if (place.index == count && count == AclBlocks::kMostEntries) {
    const uint32_t last = blocks_.take(AclBlocks::kMostEntries);
    blocks_.write(last, 0, entry.data());
    blocks_.set_next(place.block, last);
    return;
  }
  // A copy takes the block's place: one block, or two if it is full.
  const uint32_t total = count + 1;
  const bool chained = place.before != 0 || blocks_.next(place.block) != 0;
  const uint32_t in_first = total <= AclBlocks::kMostEntries ? total : total / 2;
  const uint32_t copy = blocks_.take(in_first < total || chained ? AclBlocks::kMostEntries : in_first);
  const uint32_t second = in_first < total ? blocks_.take(AclBlocks::kMostEntries) : 0;
  Entry moved;
  for (uint32_t i = 0; i < total; ++i) {
    if (i == place.index) {
      moved = entry;
    } else {
      blocks_.copy(place.block, i < place.index ? i : i - 1, moved.data());
    }
    blocks_.write(i < in_first ? copy : second, i < in_first ? i : i - in_first, moved.data());
  }
  if (second != 0) blocks_.set_next(second, blocks_.next(place.block));
  if (second != 0 || chained) blocks_.set_next(copy, second != 0 ? second : blocks_.next(place.block));
  replace_block(place, handle.hash, copy);
}

/// Publishes `new_block`, 0 for none, in the place of a block.
void AclGroups::replace_block(const Place& place, uint32_t hash, uint32_t new_block) {
  const uint32_t successor = new_block != 0 ? new_block : blocks_.next(place.block);
  if (place.before != 0) {
    blocks_.set_next(place.before, successor);
  } else if (successor != 0) {
    groups_.replace(hash, place.block, successor);
  } else {
    groups_.erase(hash, place.block);
  }
  publish_only_group();
  blocks_.give_up(place.block);
}

AclGroups::Place AclGroups::find_place(uint32_t number, Handle handle) const {
  Place found;
  groups_.view().each(handle.hash, [&](uint32_t first) {
    for (uint32_t before = 0, block = first; block != 0; before = block, block = blocks_.next(block)) {
      const uint32_t count = blocks_.count(block);
      for (uint32_t i = 0; i < count; ++i) {
        if (blocks_.word(block, i, 2 * words_ + kAclNumber) != number) continue;
        found = {before, block, i};
        return true;
      }
    }
    return false;
  });
  return found;
}

AclGroups::Entry AclGroups::find(uint32_t number, Handle handle) const {
  const Place place = find_place(number, handle);
  Entry entry{};
  blocks_.copy(place.block, place.index, entry.data());
  return entry;
}

uint32_t AclGroups::get(uint32_t number, Handle handle, AclWord word) const {
  const Place place = find_place(number, handle);
  return blocks_.word(place.block, place.index, 2 * words_ + word);
}

void AclGroups::set(uint32_t number, Handle handle, AclWord word, uint32_t value) {
  const Place place = find_place(number, handle);
  blocks_.publish(place.block, place.index, 2 * words_ + word, value);
}

void AclGroups::erase(uint32_t number, Handle handle) {
  const Place place = find_place(number, handle);
  const uint32_t count = blocks_.count(place.block);
  const bool chained = place.before != 0 || blocks_.next(place.block) != 0;
  uint32_t copy = 0;
  if (count > 1) {
    copy = blocks_.take(chained ? AclBlocks::kMostEntries : count - 1);
    Entry moved;
    for (uint32_t i = 0; i + 1 < count; ++i) {
      blocks_.copy(place.block, i < place.index ? i : i + 1, moved.data());
      blocks_.write(copy, i, moved.data());
    }
    if (chained) blocks_.set_next(copy, blocks_.next(place.block));
  }
  replace_block(place, handle.hash, copy);
  --tuple_entries_[handle.tuple];
}

void AclGroups::publish_version(uint32_t version) {
  publish((*index_)[0].version, version);
  index_->changed(0, 1);
  blocks_.begin_grace();
}

AclGroups::TupleFigures AclGroups::figures(uint32_t tuple) const {
  TupleFigures figures;
  figures.entries = tuple_entries_[tuple];
  const HashView groups = groups_.view();
  for (size_t i = 0; i < groups_.bucket_count(); ++i) {
    for (const uint64_t pair : groups.buckets()[i].pairs) {
      const auto block = static_cast<uint32_t>(pair >> 32);
      if (block == 0) continue;
      Entry entry{};
      blocks_.copy(block, 0, entry.data());
      if (hash_of(entry.data(), tuple) != static_cast<uint32_t>(pair)) continue;
      ++figures.groups;
      figures.largest_group = std::max<size_t>(figures.largest_group, group_size(block));
    }
  }
  return figures;
}

size_t AclGroups::memory_bytes() const {
  return groups_.memory_bytes() + blocks_.memory_bytes() + tries_[0]->memory_bytes() + tries_[1]->memory_bytes() +
         index_->bytes() + masks_->bytes();
}

}  // namespace headrace
