#pragma once
/// \file
/// The routes behind an Lpm4, by exact prefix.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "tables/memory/huge_array.hh"

namespace headrace {

/// A hash map from (prefix, length) to a next hop, at eight bytes a slot: a million routes take 16 MiB.
///
/// Prefixes must have their host bits clear and next hops fit into 31 bits. Linear probing, at most two slots in three
/// in use.
class Lpm4Rules {
 public:
  struct Rule {
    uint32_t prefix;
    int length;
    uint32_t next_hop;
  };

  size_t size() const { return size_; }
  size_t bytes() const { return slots_.bytes(); }

  /// Makes room for `count` rules in all.
  void reserve(size_t count) {
    if (3 * count > 2 * slots_.size()) rehash(std::max(kSmallest, std::bit_ceil(count + count / 2 + 1)));
  }

  /// Adds the rule. False, and no change, if the prefix has one.
  bool add(uint32_t prefix, int length, uint32_t next_hop) {
    reserve(size_ + 1);
    const uint64_t key = key_of(prefix, length);
    const size_t at = locate(key);
    if (slots_[at] != 0) return false;
    slots_[at] = key << kValueBits | next_hop;
    ++size_;
    if (per_length_[length]++ == 0) lengths_ |= uint64_t{1} << length;
    return true;
  }

  /// Changes the next hop of a rule. False if there is none.
  bool replace(uint32_t prefix, int length, uint32_t next_hop) {
    if (size_ == 0) return false;
    const uint64_t key = key_of(prefix, length);
    const size_t at = locate(key);
    if (slots_[at] == 0) return false;
    slots_[at] = key << kValueBits | next_hop;
    return true;
  }

  bool erase(uint32_t prefix, int length) {
    if (size_ == 0) return false;
    size_t hole = locate(key_of(prefix, length));
    if (slots_[hole] == 0) return false;
    // Close the gap: a later rule of the same run moves into the hole unless its own place lies behind the hole.
    const size_t mask = slots_.size() - 1;
    for (size_t at = (hole + 1) & mask; slots_[at] != 0; at = (at + 1) & mask) {
      const size_t home = home_of(slots_[at] >> kValueBits);
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole] = 0;
    --size_;
    if (--per_length_[length] == 0) lengths_ &= ~(uint64_t{1} << length);
    return true;
  }

  std::optional<uint32_t> find(uint32_t prefix, int length) const {
    if (size_ == 0) return std::nullopt;
    const uint64_t slot = slots_[locate(key_of(prefix, length))];
    if (slot == 0) return std::nullopt;
    return static_cast<uint32_t>(slot & kValueMask);
  }

  /// The longest rule of at most `longest` bits that holds `address`.
  std::optional<Rule> match(uint32_t address, int longest) const {
    uint64_t lengths = longest < 0 ? 0 : lengths_ & ((uint64_t{2} << longest) - 1);
    while (lengths != 0) {
      const int length = std::bit_width(lengths) - 1;
      lengths ^= uint64_t{1} << length;
      const uint32_t prefix = address & mask_of(length);
      if (const std::optional<uint32_t> next_hop = find(prefix, length)) return Rule{prefix, length, *next_hop};
    }
    return std::nullopt;
  }

  /// Calls visit(Rule) for each rule, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] == 0) continue;
      const uint64_t key = slots_[i] >> kValueBits;
      const int length = 32 - std::countr_zero(key);
      visit(Rule{static_cast<uint32_t>(key >> 1) & mask_of(length), length,
                 static_cast<uint32_t>(slots_[i] & kValueMask)});
    }
  }

  /// Fetches the place of a rule that is to be inserted soon.
  void prefetch(uint32_t prefix, int length) const { __builtin_prefetch(&slots_[home_of(key_of(prefix, length))], 1); }

  static constexpr uint32_t mask_of(int length) { return length == 0 ? 0 : ~uint32_t{0} << (32 - length); }

 private:
  static constexpr size_t kSmallest = 1024;
  static constexpr int kValueBits = 31;
  static constexpr uint64_t kValueMask = (uint64_t{1} << kValueBits) - 1;

  /// 33 bits, never 0: the prefix's bits, then a one that tells the length.
  static constexpr uint64_t key_of(uint32_t prefix, int length) {
    return uint64_t{prefix} << 1 | uint64_t{1} << (32 - length);
  }

  size_t home_of(uint64_t key) const {
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash >> shift_;
  }

  /// The slot of `key`, or the empty slot where it belongs.
  size_t locate(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = home_of(key);
    while (slots_[at] != 0 && slots_[at] >> kValueBits != key) at = (at + 1) & mask;
    return at;
  }

  void rehash(size_t slots) {
    HugeArray<uint64_t> old(slots);
    old.swap(slots_);
    shift_ = 64 - (std::bit_width(slots) - 1);
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] != 0) slots_[locate(old[i] >> kValueBits)] = old[i];
    }
  }

  /// 0, or the key above the next hop.
  HugeArray<uint64_t> slots_;
  int shift_ = 63;
  size_t size_ = 0;
  uint32_t per_length_[33] = {};
  /// Bit n: there are rules of length n.
  uint64_t lengths_ = 0;
};

}  // namespace headrace
