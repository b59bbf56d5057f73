#include "tables/lpm6/lpm6_rules.hh"

#include <algorithm>
#include <cstring>

namespace headrace {

namespace {

/// Room for `count` more, growing as push_back() does.
template <typename T>
void reserve_more(std::vector<T>& vector, size_t count) {
  if (vector.capacity() - vector.size() < count) vector.reserve(std::max(2 * vector.capacity(), vector.size() + count));
}

}  // namespace

void Lpm6Rules::reserve_for_one() {
  reserve_more(nodes_, kDepths);
  // One list of children grows, each new node but the last has one child, and one list of next hops grows.
  reserve_more(words_, 64 + kDepths + kLargest);
  // So that removals do not allocate either.
  if (free_nodes_.capacity() < nodes_.capacity()) free_nodes_.reserve(nodes_.capacity());
}

uint32_t Lpm6Rules::take_list(uint32_t size) {
  uint32_t& first = free_lists_[size];
  if (first != 0) {
    const uint32_t at = first - 1;
    first = words_[at];
    return at;
  }
  const uint32_t at = static_cast<uint32_t>(words_.size());
  words_.resize(words_.size() + size);
  return at;
}

void Lpm6Rules::give_list(uint32_t at, uint32_t size) {
  if (size == 0) return;
  words_[at] = free_lists_[size];
  free_lists_[size] = at + 1;
}

void Lpm6Rules::insert_into_list(uint32_t& list, uint32_t size, uint32_t at, uint32_t value) {
  const uint32_t fresh = take_list(size + 1);
  uint32_t* const words = words_.data();
  std::copy_n(words + list, at, words + fresh);
  words[fresh + at] = value;
  std::copy_n(words + list + at, size - at, words + fresh + at + 1);
  give_list(list, size);
  list = fresh;
}

void Lpm6Rules::erase_from_list(uint32_t& list, uint32_t size, uint32_t at) {
  const uint32_t fresh = size == 1 ? 0 : take_list(size - 1);
  uint32_t* const words = words_.data();
  std::copy_n(words + list, at, words + fresh);
  std::copy_n(words + list + at + 1, size - at - 1, words + fresh + at);
  give_list(list, size);
  list = fresh;
}

uint32_t Lpm6Rules::add_child(uint32_t node, uint32_t slot) {
  uint32_t made;
  if (free_nodes_.empty()) {
    made = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    made = free_nodes_.back();
    free_nodes_.pop_back();
    nodes_[made] = Node();
  }
  Node& n = nodes_[node];
  insert_into_list(n.child_list, static_cast<uint32_t>(std::popcount(n.children)), rank(n.children, slot), made);
  n.children |= uint64_t{1} << slot;
  return made;
}

void Lpm6Rules::remove_child(uint32_t node, uint32_t slot) {
  Node& n = nodes_[node];
  free_nodes_.push_back(child(node, slot));
  erase_from_list(n.child_list, static_cast<uint32_t>(std::popcount(n.children)), rank(n.children, slot));
  n.children &= ~(uint64_t{1} << slot);
}

void Lpm6Rules::set(uint32_t node, uint32_t number, uint32_t next_hop) {
  Node& n = nodes_[node];
  if (has(n, number)) {
    words_[n.next_hops + rank(n, number)] = next_hop;
    return;
  }
  const uint32_t count = static_cast<uint32_t>(std::popcount(n.rules[0]) + std::popcount(n.rules[1]));
  insert_into_list(n.next_hops, count, rank(n, number), next_hop);
  n.rules[number >> 6] |= uint64_t{1} << (number & 63);
  ++size_;
}

void Lpm6Rules::erase(uint32_t node, uint32_t number) {
  Node& n = nodes_[node];
  const uint32_t count = static_cast<uint32_t>(std::popcount(n.rules[0]) + std::popcount(n.rules[1]));
  erase_from_list(n.next_hops, count, rank(n, number));
  n.rules[number >> 6] &= ~(uint64_t{1} << (number & 63));
  --size_;
}

Lpm6Rules::Cover Lpm6Rules::cover(uint32_t node) const {
  Cover slots{};
  const Node& n = nodes_[node];
  // Shorter rules come first, longer ones lie over them.
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint64_t left = n.rules[half]; left != 0; left &= left - 1) {
      const uint32_t number = 64 * half + static_cast<uint32_t>(std::countr_zero(left));
      const int free_bits = kStride - bits_of(number);
      const uint32_t value = number + 2 - (1u << (kStride - free_bits));
      std::memset(&slots[value << free_bits], static_cast<int>(number + 1), size_t{1} << free_bits);
    }
  }
  return slots;
}

}  // namespace headrace
