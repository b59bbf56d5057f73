#pragma once
/// \file
/// A hash table in buckets of a cache line: the owner, on the host.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/hash/hash_view.hh"
#include "tables/memory/device_array.hh"

namespace headrace {

/// Values by hash. One thread at a time changes the table, while readers go on with views.
///
/// A change is one store of a word, so a lookup that overlaps it gives the old or the new answer. A table that has become
/// full is copied to one of twice the size; the old one lives until every rcu::Reader that is online has passed a quiescent
/// state. Values say where keys are, so nothing but this table moves then.
///
/// Buckets hold 3.5 pairs on average at most, so that one in forty continues elsewhere; what continues a bucket is used
/// again when it has become empty. Keys that all have the same hash
/// make a chain as long as they are many: give hashes a seed that is not known outside.
class HashTable {
 public:
  /// \param pairs room for that many before the table is copied
  explicit HashTable(size_t pairs = 0);
  ~HashTable();
  HashTable(const HashTable&) = delete;
  HashTable& operator=(const HashTable&) = delete;

  /// Adds a pair; the same may be there several times. `value` is not 0. If the table is full() it is renewed first.
  void insert(uint32_t hash, uint32_t value);
  /// False if there is no such pair.
  bool erase(uint32_t hash, uint32_t value);
  /// Changes the value of a pair in one store. False if there is no such pair.
  bool replace(uint32_t hash, uint32_t value, uint32_t new_value);

  bool full() const { return full_for(1); }
  /// Whether so many pairs might not find room.
  bool full_for(size_t pairs) const;
  /// Copies all to another array, twice as large if it is needed. Readers go on with the old one, which does not change any
  /// more. Throws std::bad_alloc, and leaves the table as it was.
  void renew();

  /// Take it anew after insert() and renew().
  HashView view() const { return {buckets_->data(), mask_}; }
  /// The view of a device's copy. The table must not change meanwhile.
  HashView mirror(Mirror& mirror) const { return {buckets_->mirror(mirror), mask_}; }
  size_t size() const { return size_; }
  size_t bucket_count() const { return buckets_->size(); }
  size_t memory_bytes() const { return buckets_->bytes(); }

 private:
  using Buckets = DeviceArray<HashBucket>;

  static size_t home_count(size_t pairs);
  /// Stores a word of the current buckets for readers, and notes the change for devices.
  template <typename Word>
  void publish(Word& word, Word value);
  void put(uint32_t hash, uint32_t value);
  uint32_t take_spare();
  void begin_grace();
  void unlink_if_empty(uint32_t hash, uint32_t empty);
  uint64_t* find(uint32_t hash, uint32_t value) const;

  std::unique_ptr<Buckets> buckets_;
  uint32_t mask_ = 0;
  uint32_t next_spare_ = 0;  ///< the first bucket that never continued another one
  /// Buckets that continued others: may be used again, may when `grace` is over, and since that began.
  struct Spares {
    std::vector<uint32_t> free, resting, unlinked;
    rcu::Epoch grace = 0;
  };
  Spares spares_;
  size_t size_ = 0;
};

}  // namespace headrace
