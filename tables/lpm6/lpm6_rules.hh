#pragma once
/// \file
/// The routes behind an Lpm6, as a trie.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tables/lpm6/lpm6_view.hh"

namespace headrace {

/// The bits of a key that a prefix of `length` (0 to 128) keeps.
constexpr Lpm6Key lpm6_mask(int length) {
  if (length == 0) return {0, 0};
  if (length <= 64) return {~uint64_t{0} << (64 - length), 0};
  return {~uint64_t{0}, ~uint64_t{0} << (128 - length)};
}
constexpr Lpm6Key lpm6_clean(Lpm6Key key, int length) {
  const Lpm6Key mask = lpm6_mask(length);
  return {key.high & mask.high, key.low & mask.low};
}
constexpr bool operator==(const Lpm6Key& a, const Lpm6Key& b) { return a.high == b.high && a.low == b.low; }
constexpr bool operator<(const Lpm6Key& a, const Lpm6Key& b) {
  return a.high != b.high ? a.high < b.high : a.low < b.low;
}

/// Prefixes and their next hops in a trie of six bits a level: the truth from which the table for lookups is made.
///
/// A node at depth d stands for 6*d bits. It holds the rules that are one to six bits longer, as a tree bitmap (W.
/// Eatherton, G. Varghese, Z. Dittia, "Tree bitmap: hardware/software IP lookups with incremental updates", CCR 2004):
/// rule number 2^r - 2 + v has r bits more than the node, of value v. The rule of length 0 is kept apart.
class Lpm6Rules {
 public:
  static constexpr int kStride = 6;
  static constexpr int kDepths = 22;  // 6 * 22 >= 128
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kRoot = 0;

  /// For each of the 64 slots of a node, its longest rule plus one, or 0 if it has none.
  using Cover = std::array<uint8_t, 64>;

  Lpm6Rules() : nodes_(1) {}

  /// The six bits of a key behind the first `6 * depth`; behind bit 128 zeros.
  static constexpr uint32_t slot_of(Lpm6Key key, int depth) {
    const int at = kStride * depth;
    if (at <= 58) return static_cast<uint32_t>(key.high >> (58 - at)) & 63;
    if (at < 64) return static_cast<uint32_t>(key.high << (at - 58) | key.low >> (122 - at)) & 63;
    if (at <= 122) return static_cast<uint32_t>(key.low >> (122 - at)) & 63;
    return static_cast<uint32_t>(key.low << (at - 122)) & 63;
  }
  /// The depth at which a prefix of `length` > 0 ends.
  static constexpr int depth_of(int length) { return (length - 1) / kStride; }
  /// The number that a prefix of `length` > 0 has in the node where it ends.
  static constexpr uint32_t number_of(Lpm6Key key, int length) {
    const int bits = length - kStride * depth_of(length);
    return (1u << bits) - 2 + (slot_of(key, depth_of(length)) >> (kStride - bits));
  }
  /// Bits that rule `number` has more than its node.
  static constexpr int bits_of(uint32_t number) { return static_cast<int>(std::bit_width(number + 2)) - 1; }
  /// The length and the bits of rule `number` in the node at `depth` with the bits `key`.
  static constexpr int length_of(int depth, uint32_t number) { return kStride * depth + bits_of(number); }
  static constexpr Lpm6Key prefix_of(Lpm6Key key, int depth, uint32_t number) {
    const int bits = bits_of(number);
    return extend(key, depth, (number + 2 - (1u << bits)) << (kStride - bits));
  }

  size_t size() const { return size_ + shortest_.has_value(); }
  size_t node_count() const { return nodes_.size() - free_nodes_.size(); }
  size_t bytes() const {
    return nodes_.capacity() * sizeof(Node) + words_.capacity() * sizeof(uint32_t) +
           free_nodes_.capacity() * sizeof(uint32_t);
  }
  /// Makes room so that adding or removing one rule does not allocate.
  void reserve_for_one();

  std::optional<uint32_t>& shortest() { return shortest_; }
  const std::optional<uint32_t>& shortest() const { return shortest_; }

  /// The child of `node` in `slot`, or kNone.
  uint32_t child(uint32_t node, uint32_t slot) const {
    const Node& n = nodes_[node];
    return n.children >> slot & 1 ? words_[n.child_list + rank(n.children, slot)] : kNone;
  }
  uint64_t children(uint32_t node) const { return nodes_[node].children; }
  bool is_empty(uint32_t node) const {
    const Node& n = nodes_[node];
    return (n.children | n.rules[0] | n.rules[1]) == 0;
  }
  /// Makes a child that is not there yet.
  uint32_t add_child(uint32_t node, uint32_t slot);
  /// Removes an empty child.
  void remove_child(uint32_t node, uint32_t slot);

  std::optional<uint32_t> find(uint32_t node, uint32_t number) const {
    if (!has(nodes_[node], number)) return std::nullopt;
    return next_hop(node, number);
  }
  /// The next hop of a rule that is there.
  uint32_t next_hop(uint32_t node, uint32_t number) const {
    return words_[nodes_[node].next_hops + rank(nodes_[node], number)];
  }
  /// Adds a rule or changes its next hop.
  void set(uint32_t node, uint32_t number, uint32_t next_hop);
  /// Removes a rule that is there.
  void erase(uint32_t node, uint32_t number);
  /// The longest rule of `node`, of at most `bits` bits, that holds `slot`; kNone if there is none.
  uint32_t longest(uint32_t node, uint32_t slot, int bits = kStride) const {
    const Node& n = nodes_[node];
    for (; bits > 0; --bits) {
      const uint32_t number = (1u << bits) - 2 + (slot >> (kStride - bits));
      if (has(n, number)) return number;
    }
    return kNone;
  }
  Cover cover(uint32_t node) const;

  /// Calls visit(key, length, next_hop) for each rule, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    if (shortest_) visit(Lpm6Key{}, 0, *shortest_);
    for_each_below(kRoot, 0, Lpm6Key{}, visit);
  }
  /// Calls visit(number, next_hop) for the rules of one node, shorter ones first.
  template <typename Visit>
  void for_each_of(uint32_t node, Visit&& visit) const {
    const Node& n = nodes_[node];
    uint32_t at = n.next_hops;
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint64_t left = n.rules[half]; left != 0; left &= left - 1) {
        visit(64 * half + static_cast<uint32_t>(std::countr_zero(left)), words_[at++]);
      }
    }
  }
  /// `key`, the bits of a node at `depth`, with the bits of a slot behind them.
  static constexpr Lpm6Key extend(Lpm6Key key, int depth, uint32_t slot) {
    const int at = kStride * depth;
    const uint64_t s = slot;
    if (at <= 58) return {key.high | s << (58 - at), key.low};
    if (at < 64) return {key.high | s >> (at - 58), key.low | s << (122 - at)};
    if (at <= 122) return {key.high, key.low | s << (122 - at)};
    return {key.high, key.low | s >> (at - 122)};
  }

 private:
  struct Node {
    uint64_t children = 0;
    uint64_t rules[2] = {0, 0};
    uint32_t child_list = 0;  // in words_: a node for each child, in order of slots
    uint32_t next_hops = 0;   // in words_: one for each rule, in order of numbers
  };
  static constexpr uint32_t kLargest = 126;

  static uint32_t rank(uint64_t bits, uint32_t at) {
    return static_cast<uint32_t>(std::popcount(bits & ((uint64_t{1} << at) - 1)));
  }
  static uint32_t rank(const Node& n, uint32_t number) {
    if (number < 64) return rank(n.rules[0], number);
    return static_cast<uint32_t>(std::popcount(n.rules[0])) + rank(n.rules[1], number - 64);
  }
  static bool has(const Node& n, uint32_t number) { return n.rules[number >> 6] >> (number & 63) & 1; }

  /// Lists in words_: `size` words, of which freed ones of the same size are used again.
  uint32_t take_list(uint32_t size);
  void give_list(uint32_t at, uint32_t size);
  void insert_into_list(uint32_t& list, uint32_t size, uint32_t at, uint32_t value);
  void erase_from_list(uint32_t& list, uint32_t size, uint32_t at);

  template <typename Visit>
  void for_each_below(uint32_t node, int depth, Lpm6Key key, Visit&& visit) const {
    for_each_of(node, [&](uint32_t number, uint32_t next_hop) {
      visit(prefix_of(key, depth, number), length_of(depth, number), next_hop);
    });
    for (uint64_t left = nodes_[node].children; left != 0; left &= left - 1) {
      const uint32_t slot = static_cast<uint32_t>(std::countr_zero(left));
      for_each_below(child(node, slot), depth + 1, extend(key, depth, slot), visit);
    }
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> free_nodes_;
  std::vector<uint32_t> words_;
  /// For each size the first free list, plus one; its first word leads to the next.
  std::array<uint32_t, kLargest + 1> free_lists_{};
  std::optional<uint32_t> shortest_;
  size_t size_ = 0;
};

}  // namespace headrace
