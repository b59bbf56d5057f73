#pragma once
/// \file
/// IPv4 longest-prefix match: the owner of the table, on the host.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/lpm4/lpm4_rules.hh"
#include "tables/lpm4/lpm4_view.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {

/// A routing table for IPv4. One thread at a time changes it, while readers go on with views.
///
/// A lookup that overlaps a change gives the old or the new answer. A change of one route is written in place, entry by
/// entry. build(), clear() and changes of form make a new generation and swap one pointer; the old one lives until every
/// rcu::Reader that is online has passed a quiescent state.
///
/// Entries have 16 bits while next hops are below 32,767 and at most 32,767 blocks of 256 addresses hold a route longer
/// than 24 bits; after that 32, until the next build() or clear() that needs less. While all next hops are below 14, half
/// a byte in front of each entry of the first level holds its answer; while they are below 254, a byte.
///
/// Addresses and prefixes are in host byte order; bits of a prefix beyond its length are ignored. Functions that need
/// memory throw std::bad_alloc and leave the table as it was.
class Lpm4 {
 public:
  struct Route {
    uint32_t prefix = 0;
    int length = 0;
    uint32_t next_hop = 0;
    bool operator==(const Route&) const = default;
  };

  static constexpr uint32_t kMiss = Lpm4View::kMiss;
  static constexpr uint32_t kMaxNextHop = 0x7ffffffe;

  Lpm4();
  ~Lpm4();
  Lpm4(const Lpm4&) = delete;
  Lpm4& operator=(const Lpm4&) = delete;

  /// Adds a route. False, and no change, if the prefix has one, the length is not in 0..32 or the next hop is above
  /// kMaxNextHop.
  bool add(uint32_t prefix, int length, uint32_t next_hop);
  /// Adds a route or replaces its next hop. False only if an argument is out of range.
  bool set(uint32_t prefix, int length, uint32_t next_hop);
  /// Removes a route. False if there is none.
  bool remove(uint32_t prefix, int length);
  /// Replaces the whole table; of routes with the same prefix the last one counts. False, and no change, if a route is
  /// out of range.
  bool build(std::span<const Route> routes);
  void clear() { build({}); }

  /// The next hop of exactly this prefix.
  std::optional<uint32_t> find_exact(uint32_t prefix, int length) const;
  /// The longest route that holds `address`, as the writer sees it.
  std::optional<Route> match(uint32_t address) const;
  /// Calls visit(Route) for each route, by prefix and then by length. `visit` may change the table.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Route& route : routes()) visit(route);
  }
  /// All routes, by prefix and then by length.
  std::vector<Route> routes() const;
  size_t route_count() const { return rules_.size(); }

  /// What a reader looks up in, from any thread; take it anew after each quiescent state.
  Lpm4View view() const { return Lpm4View(current_.load(std::memory_order_acquire)); }
  uint32_t lookup(uint32_t address) const { return view().lookup(address); }
  /// The view of a device's copy. The table must not change meanwhile.
  Lpm4View mirror(Mirror& mirror) const;
  /// The word that view() reads.
  const std::atomic<const Lpm4Generation*>& generation() const { return current_; }

  bool wide() const;
  /// Blocks of 256 addresses with routes longer than 24 bits.
  size_t group_count() const { return books_.groups_made - books_.free_groups.size() - books_.resting.size(); }
  /// Bytes of the tables and the route store. What no route has touched is counted but takes no memory.
  size_t memory_bytes() const;

 private:
  struct Table;
  struct Resting {
    rcu::Epoch grace;
    uint32_t group;
  };
  /// What the writer knows about the table's entries.
  struct Books {
    /// For each block of 256 addresses, the length of the longest route of at most 24 bits that holds it.
    HugeArray<uint8_t> block_depth{kBlocks};
    /// The same for each address of each group, over all lengths.
    std::vector<uint8_t> group_depth;
    /// Routes longer than 24 bits in each group.
    std::vector<uint16_t> group_routes;
    uint32_t groups_made = 0;
    std::vector<uint32_t> free_groups;
    /// Groups that a reader may still be in, oldest first.
    std::deque<Resting> resting;

    uint32_t make_group();
  };

  static constexpr size_t kBlocks = size_t{1} << 24;

  static bool in_range(int length, uint32_t next_hop) { return length >= 0 && length <= 32 && next_hop <= kMaxNextHop; }
  void make_room_for(uint32_t next_hop);
  void paint(uint32_t prefix, int length, uint32_t value, int depth);
  template <typename Entry>
  void paint(uint32_t prefix, int length, uint32_t value, int depth);
  void open_group(uint32_t block, uint32_t group);
  template <typename Entry>
  void open_group(uint32_t block, uint32_t group);
  void close_group(uint32_t block);
  template <typename Entry>
  void close_group(uint32_t block);
  std::optional<uint32_t> group_of(uint32_t block) const;
  uint32_t take_group();
  template <typename Entry>
  static void fill(Table& table, Books& books, Lpm4Rules& rules, std::span<const Route> by_length);
  void replace(bool is_wide, uint32_t capacity, uint32_t ask);
  void publish(std::unique_ptr<Table> table);
  static void discard(std::unique_ptr<Table> table);

  Lpm4Rules rules_;
  Books books_;
  std::unique_ptr<Table> table_;
  std::atomic<const Lpm4Generation*> current_;
};

}  // namespace headrace
