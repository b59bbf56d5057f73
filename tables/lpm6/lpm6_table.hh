#pragma once
/// \file
/// The memory of an IPv6 longest-prefix table: one array of bytes, and the allocation of its parts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/lpm6/lpm6.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {

/// Hands out blocks of 1 to 64 units of an array. A block that is given back rests until no reader can be in it.
class Lpm6Blocks {
 public:
  explicit Lpm6Blocks(uint32_t capacity) : capacity_(capacity) {}

  /// Units used so far, from the first.
  uint32_t top() const { return top_; }
  uint32_t capacity() const { return capacity_; }
  size_t resting() const { return resting_.size() - first_resting_; }

  /// The first unit of a block. There must be room: see has_room().
  uint32_t take(uint32_t size) {
    used_ += size;
    if (!free_[size].empty()) {
      const uint32_t at = free_[size].back();
      free_[size].pop_back();
      return at;
    }
    const uint32_t at = top_;
    top_ += size;
    return at;
  }
  /// Whether blocks of `units` in all can be taken whatever their sizes.
  bool has_room(uint32_t units) const { return capacity_ - top_ >= units; }
  /// Units in blocks that were taken and not given back.
  uint32_t used() const { return used_; }

  /// Gives a block back that readers are in until `grace` is over.
  void give(uint32_t at, uint32_t size, rcu::Epoch grace) {
    used_ -= size;
    resting_.push_back({grace, at, size});
  }
  /// Makes room for blocks to be given back without allocation, and takes those whose rest is over.
  void collect(size_t more);

 private:
  struct Resting {
    rcu::Epoch grace;
    uint32_t at;
    uint32_t size;
  };

  uint32_t capacity_;
  uint32_t top_ = 0;
  uint32_t used_ = 0;
  std::array<std::vector<uint32_t>, 65> free_;
  std::vector<Resting> resting_;  // oldest first, from first_resting_ on
  size_t first_resting_ = 0;
};

/// A generation, the memory that it points to and what the writer knows about it.
struct Lpm6::Table {
  Table(uint32_t node_capacity, uint32_t answer_capacity, bool wide);

  uint32_t* first() { return reinterpret_cast<uint32_t*>(memory.data()); }
  Lpm6Node* nodes() { return reinterpret_cast<Lpm6Node*>(memory.data() + kNodesAt); }
  /// Whether answers are words, and not bytes.
  bool wide() const { return generation.wide != 0; }
  size_t answer_size() const { return wide() ? sizeof(uint32_t) : sizeof(uint8_t); }

  /// All that changes what readers may see goes through these three. Replaces a word; what was written before is seen by
  /// whoever reads the new one.
  void store_word(uint32_t& word, uint32_t value) { store(word, value); }
  /// Replaces an answer of a node: a next hop plus one, or 0.
  void store_answer(uint32_t at, uint32_t word) {
    std::byte* const place = memory.data() + answers_at + at * answer_size();
    if (wide())
      store(*reinterpret_cast<uint32_t*>(place), word);
    else
      store(*reinterpret_cast<uint8_t*>(place), static_cast<uint8_t>(word));
  }
  /// Writes a node that no reader can reach yet.
  void store_node(Lpm6Node& node, const Lpm6Node& value) {
    __atomic_store_n(&node.down.bits, value.down.bits, __ATOMIC_RELAXED);
    __atomic_store_n(&node.down.base, value.down.base, __ATOMIC_RELAXED);
    __atomic_store_n(&node.runs.bits, value.runs.bits, __ATOMIC_RELAXED);
    __atomic_store_n(&node.runs.base, value.runs.base, __ATOMIC_RELAXED);
    changed(&node, sizeof node);
  }
  template <typename T>
  void store(T& place, T value) {
    __atomic_store_n(&place, value, __ATOMIC_RELEASE);
    changed(&place, sizeof place);
  }
  void changed(const void* place, size_t size) {
    const size_t begin = static_cast<size_t>(static_cast<const std::byte*>(place) - memory.data());
    changes.mark(begin, begin + size);
  }

  static constexpr size_t kNodesAt = (Lpm6View::kFirstWords * sizeof(uint32_t) + 4095) / 4096 * 4096;

  /// The first level, nodes, answers.
  HugeArray<std::byte> memory;
  size_t answers_at;
  ChangedPages changes;
  /// For each word of the first level, the length of the longest route behind it that ends there.
  HugeArray<uint8_t> depths{Lpm6View::kFirstWords};
  Lpm6Blocks node_blocks;
  Lpm6Blocks answer_blocks;
  Lpm6Generation generation;
};

}  // namespace headrace
