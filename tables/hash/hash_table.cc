#include "tables/hash/hash_table.hh"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace headrace {

namespace {

uint64_t make_pair_word(uint32_t hash, uint32_t value) { return uint64_t{value} << 32 | hash; }

}  // namespace

size_t HashTable::home_count(size_t pairs) { return std::bit_ceil(std::max<size_t>(pairs * 2 / 7, 8)); }

HashTable::HashTable(size_t pairs) {
  const size_t home = home_count(pairs);
  // A quarter for continuations: more than twice of what evenly spread hashes need.
  buckets_ = std::make_unique<Buckets>(home + home / 4 + 1);
  mask_ = static_cast<uint32_t>(home - 1);
  next_spare_ = static_cast<uint32_t>(home);
}

HashTable::~HashTable() {
  rcu::retire([old = std::shared_ptr<Buckets>(std::move(buckets_))] {});
}

template <typename Word>
void HashTable::publish(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  const size_t at =
      static_cast<size_t>(reinterpret_cast<const char*>(&word) - reinterpret_cast<const char*>(buckets_->data()));
  buckets_->changed(at / sizeof(HashBucket), 1);
}

uint64_t* HashTable::find(uint32_t hash, uint32_t value) const {
  const uint64_t wanted = make_pair_word(hash, value);
  for (uint32_t at = hash & mask_;;) {
    HashBucket& bucket = (*buckets_)[at];
    for (uint64_t& pair : bucket.pairs)
      if (pair == wanted) return &pair;
    if (bucket.next == 0) return nullptr;
    at = bucket.next;
  }
}

bool HashTable::full_for(size_t pairs) const {
  if ((size_ + pairs - 1) * 2 >= (size_t{mask_} + 1) * 7) return true;
  size_t spares = buckets_->size() - 1 - next_spare_ + spares_.free.size();
  if (spares >= pairs) return false;
  if (!spares_.resting.empty() && rcu::elapsed(spares_.grace)) spares += spares_.resting.size();
  return spares < pairs;
}

uint32_t HashTable::take_spare() {
  if (spares_.free.empty() && !spares_.resting.empty() && rcu::elapsed(spares_.grace)) {
    spares_.free.swap(spares_.resting);
    if (!spares_.unlinked.empty()) begin_grace();
  }
  if (spares_.free.empty()) return next_spare_++;
  const uint32_t spare = spares_.free.back();
  spares_.free.pop_back();
  publish((*buckets_)[spare].next, uint32_t{0});
  return spare;
}

void HashTable::begin_grace() {
  spares_.resting.swap(spares_.unlinked);
  spares_.grace = rcu::start_grace();
}

void HashTable::put(uint32_t hash, uint32_t value) {
  uint32_t at = hash & mask_;
  for (;;) {
    HashBucket& bucket = (*buckets_)[at];
    for (uint64_t& pair : bucket.pairs) {
      if (pair >> 32 != 0) continue;
      publish(pair, make_pair_word(hash, value));
      ++size_;
      return;
    }
    if (bucket.next == 0) break;
    at = bucket.next;
  }
  // The new bucket is complete before it can be reached.
  const uint32_t spare = take_spare();
  publish((*buckets_)[spare].pairs[0], make_pair_word(hash, value));
  publish((*buckets_)[at].next, spare);
  ++size_;
}

void HashTable::renew() {
  // Hashes may be spread so unevenly that it is not home buckets that are missing.
  const size_t continued = next_spare_ - (size_t{mask_} + 1);
  const size_t home = (size_t{mask_} + 1) * (size_ >= size_t{mask_} + 1 ? 2 : 1);
  for (size_t spare = std::max(home / 4, 2 * continued);; spare *= 2) {
    auto larger = std::make_unique<Buckets>(home + spare + 1);
    std::swap(buckets_, larger);
    const uint32_t old_mask = std::exchange(mask_, static_cast<uint32_t>(home - 1));
    const uint32_t old_next = std::exchange(next_spare_, static_cast<uint32_t>(home));
    const size_t old_size = std::exchange(size_, 0);
    Spares old_spares = std::exchange(spares_, {});
    for (size_t i = 0; i < larger->size() && size_ < old_size; ++i) {
      for (const uint64_t pair : (*larger)[i].pairs) {
        if (pair >> 32 == 0) continue;
        if (next_spare_ + 1 >= buckets_->size()) break;
        put(static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32));
      }
    }
    if (size_ == old_size && next_spare_ + 1 < buckets_->size()) {
      rcu::retire([old = std::shared_ptr<Buckets>(std::move(larger))] {});
      return;
    }
    std::swap(buckets_, larger);
    mask_ = old_mask;
    next_spare_ = old_next;
    size_ = old_size;
    spares_ = std::move(old_spares);
  }
}

void HashTable::insert(uint32_t hash, uint32_t value) {
  if (full()) renew();
  put(hash, value);
}

bool HashTable::erase(uint32_t hash, uint32_t value) {
  uint64_t* const pair = find(hash, value);
  if (pair == nullptr) return false;
  publish(*pair, uint64_t{0});
  --size_;
  const auto at =
      static_cast<size_t>(reinterpret_cast<const char*>(pair) - reinterpret_cast<const char*>(buckets_->data())) /
      sizeof(HashBucket);
  if (at > mask_) unlink_if_empty(hash, static_cast<uint32_t>(at));
  return true;
}

/// Takes a bucket that continues others out of its chain when it has no pair. Readers that are in it can go on from there.
void HashTable::unlink_if_empty(uint32_t hash, uint32_t empty) {
  const HashBucket& bucket = (*buckets_)[empty];
  if (std::any_of(std::begin(bucket.pairs), std::end(bucket.pairs), [](uint64_t pair) { return pair != 0; })) return;
  uint32_t before = hash & mask_;
  while ((*buckets_)[before].next != empty) before = (*buckets_)[before].next;
  publish((*buckets_)[before].next, bucket.next);
  spares_.unlinked.push_back(empty);
  if (spares_.resting.empty()) begin_grace();
}

bool HashTable::replace(uint32_t hash, uint32_t value, uint32_t new_value) {
  uint64_t* const pair = find(hash, value);
  if (pair == nullptr) return false;
  publish(*pair, make_pair_word(hash, new_value));
  return true;
}

}  // namespace headrace
