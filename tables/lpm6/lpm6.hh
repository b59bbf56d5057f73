#pragma once
/// \file
/// IPv6 longest-prefix match: the owner of the table, on the host.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/lpm6/lpm6_rules.hh"
#include "tables/lpm6/lpm6_view.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {

/// A routing table for IPv6. One thread at a time changes it, while readers go on with views.
///
/// A lookup that overlaps a change gives the old or the new answer. A change of one route writes single words: answers
/// in place, or a pointer to nodes that were made aside. build(), clear(), a table that runs out of room and the first
/// next hop above 254 make a new generation and swap one pointer. What readers may still be in is used again, or freed,
/// when every rcu::Reader that is online has passed a quiescent state.
///
/// A lookup in the table of the Internet takes five dependent loads on average. A route longer than the bits of the
/// first level costs a node of 32 bytes for each six bits that it does not share with others.
///
/// Bits of a prefix beyond its length are ignored. Functions that need memory throw std::bad_alloc and leave the table
/// as it was.
class Lpm6 {
 public:
  struct Route {
    Lpm6Key prefix;
    int length = 0;
    uint32_t next_hop = 0;
    bool operator==(const Route&) const = default;
  };

  static constexpr uint32_t kMiss = Lpm6View::kMiss;
  static constexpr uint32_t kMaxNextHop = 0x7ffffffe;

  Lpm6();
  ~Lpm6();
  Lpm6(const Lpm6&) = delete;
  Lpm6& operator=(const Lpm6&) = delete;

  /// Adds a route. False, and no change, if the prefix has one, the length is not in 0..128 or the next hop is above
  /// kMaxNextHop.
  bool add(Lpm6Key prefix, int length, uint32_t next_hop);
  /// Adds a route or replaces its next hop. False only if an argument is out of range.
  bool set(Lpm6Key prefix, int length, uint32_t next_hop);
  /// Removes a route. False if there is none.
  bool remove(Lpm6Key prefix, int length);
  /// Replaces the whole table; of routes with the same prefix the last one counts. False, and no change, if a route is
  /// out of range.
  bool build(std::span<const Route> routes);
  void clear() { build({}); }

  /// The next hop of exactly this prefix.
  std::optional<uint32_t> find_exact(Lpm6Key prefix, int length) const;
  /// The longest route that holds `key`, as the writer sees it.
  std::optional<Route> match(Lpm6Key key) const;
  /// All routes, by prefix and then by length.
  std::vector<Route> routes() const;
  size_t route_count() const { return rules_.size(); }

  /// What a reader looks up in, from any thread; take it anew after each quiescent state.
  Lpm6View view() const { return Lpm6View(current_.load(std::memory_order_acquire)); }
  uint32_t lookup(Lpm6Key key) const { return view().lookup(key); }
  /// The view of a device's copy. The table must not change meanwhile.
  Lpm6View mirror(Mirror& mirror) const;
  /// The word that view() reads.
  const std::atomic<const Lpm6Generation*>& generation() const { return current_; }

  size_t node_count() const;
  /// Bytes that lookups read: the first level, nodes and answers.
  size_t table_bytes() const;
  /// The same and what the writer keeps. What no route has touched is counted but takes no memory.
  size_t memory_bytes() const;

 private:
  struct Table;
  /// A node of the trie on the way to a prefix.
  struct Step {
    uint32_t rule_node;  ///< in rules_
    uint32_t slot;       ///< where the way goes on
    uint32_t inherited;  ///< the answer, as a word, of rules that end above this node
    uint32_t node;       ///< in the table, if it has one
  };
  /// The answers of a node in order, as runs of slots with the same rule.
  struct Runs {
    uint64_t starts = 0;
    uint32_t count = 0;
    uint8_t rules[64];  ///< number plus one, or 0: inherited
  };
  class Change;

  static bool in_range(int length, uint32_t next_hop) {
    return length >= 0 && length <= 128 && next_hop <= kMaxNextHop;
  }
  static Runs runs_of(const Lpm6Rules::Cover& cover, uint64_t children);
  /// Whether a table's answers must be words for this next hop.
  static constexpr bool needs_word(uint32_t next_hop) { return next_hop + 1 > 0xff; }
  /// A rule's answer as the table has it.
  static uint32_t word_of(const Lpm6Rules& rules, uint32_t rule_node, uint32_t rule, uint32_t inherited) {
    return rule == 0 ? inherited : rules.next_hop(rule_node, rule - 1) + 1;
  }
  static std::unique_ptr<Table> compile(const Lpm6Rules& rules, bool wide);
  static void compile_node(const Lpm6Rules& rules, uint32_t rule_node, uint32_t inherited, Table& table, uint32_t node);
  void prepare(bool wide);
  void publish(std::unique_ptr<Table> table);
  static void discard(std::unique_ptr<Table> table);

  Lpm6Rules rules_;
  std::unique_ptr<Table> table_;
  std::atomic<const Lpm6Generation*> current_;
};

}  // namespace headrace
