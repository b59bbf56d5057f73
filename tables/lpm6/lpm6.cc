#include "tables/lpm6/lpm6.hh"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "tables/lpm6/lpm6_table.hh"

namespace headrace {

namespace {

/// Units that one change takes at most: a way of new nodes, one list of children that grows and one that is copied.
constexpr uint32_t kNodesOfChange = Lpm6Rules::kDepths + 2 * 64;
constexpr uint32_t kAnswersOfChange = Lpm6Rules::kDepths + 2 * 64;
/// Blocks that one change gives back at most.
constexpr size_t kBlocksOfChange = 2 * Lpm6Rules::kDepths + 4;

constexpr uint32_t kNode = Lpm6View::kNode;

uint32_t ones(uint64_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }
uint32_t rank(uint64_t bits, uint32_t slot) { return ones(bits & ((uint64_t{1} << slot) - 1)); }

/// One of the two parts of the first level.
struct Region {
  uint32_t begin, words;  ///< in the first level
  int bits;               ///< of an address that it takes
  uint64_t base;          ///< the first address's upper half

  /// Words from first to second that a prefix covers; none if it lies in the other part.
  std::pair<uint32_t, uint32_t> range(Lpm6Key prefix, int length) const {
    const uint64_t last = prefix.high | ~lpm6_mask(length).high;
    const uint64_t end = base + ((uint64_t{words} << (64 - bits)) - 1);
    const uint64_t from = std::max(prefix.high, base), to = std::min(last, end);
    if (from > to) return {0, 0};
    return {begin + static_cast<uint32_t>((from - base) >> (64 - bits)),
            begin + static_cast<uint32_t>((to - base) >> (64 - bits)) + 1};
  }
  Lpm6Key key_of(uint32_t word) const { return {base + (uint64_t{word - begin} << (64 - bits)), 0}; }
};
constexpr Region kGlobal{0, Lpm6View::kGlobalWords, Lpm6View::kGlobalBits, uint64_t{1} << 61};
constexpr Region kOther{Lpm6View::kGlobalWords, Lpm6View::kFirstWords - Lpm6View::kGlobalWords, Lpm6View::kOtherBits,
                        0};

/// The part of the first level where a prefix lies. The shortest lie in both.
const Region& region_of(Lpm6Key prefix, int length) { return length >= 3 && prefix.high >> 61 == 1 ? kGlobal : kOther; }
bool reaches(const Region& region, Lpm6Key prefix, int length) {
  return length < 3 || &region == &region_of(prefix, length);
}

}  // namespace

// --- Memory ---------------------------------------------------------------------------------------------------------

void Lpm6Blocks::collect(size_t more) {
  while (first_resting_ < resting_.size() && rcu::elapsed(resting_[first_resting_].grace)) {
    const Resting& block = resting_[first_resting_];
    free_[block.size].push_back(block.at);
    ++first_resting_;
  }
  if (resting_.capacity() - resting_.size() >= more) return;
  resting_.erase(resting_.begin(), resting_.begin() + static_cast<std::ptrdiff_t>(first_resting_));
  first_resting_ = 0;
  if (resting_.capacity() - resting_.size() < resting_.size() + more) resting_.reserve(2 * resting_.size() + more);
}

Lpm6::Table::Table(uint32_t node_capacity, uint32_t answer_capacity, bool wide)
    : memory(kNodesAt + size_t{node_capacity} * sizeof(Lpm6Node) +
             size_t{answer_capacity} * (wide ? sizeof(uint32_t) : sizeof(uint8_t))),
      answers_at(kNodesAt + size_t{node_capacity} * sizeof(Lpm6Node)),
      changes(memory.bytes()),
      node_blocks(node_capacity),
      answer_blocks(answer_capacity),
      generation{first(), nodes(), memory.data() + answers_at, wide} {}

// --- From rules to a table ------------------------------------------------------------------------------------------

Lpm6::Runs Lpm6::runs_of(const Lpm6Rules::Cover& cover, uint64_t children) {
  Runs runs;
  for (uint64_t left = ~children; left != 0; left &= left - 1) {
    const int slot = std::countr_zero(left);
    const uint8_t rule = cover[static_cast<size_t>(slot)];
    if (runs.count > 0 && rule == runs.rules[runs.count - 1]) continue;
    // The first run begins at slot 0, whether that has an answer or a child: then ranks begin at 1.
    runs.starts |= runs.count == 0 ? 1 : uint64_t{1} << slot;
    runs.rules[runs.count++] = rule;
  }
  return runs;
}

void Lpm6::compile_node(const Lpm6Rules& rules, uint32_t rule_node, uint32_t inherited, Table& table, uint32_t node) {
  const Lpm6Rules::Cover cover = rules.cover(rule_node);
  const uint64_t children = rules.children(rule_node);
  const Runs runs = runs_of(cover, children);
  Lpm6Node made{};
  made.runs.bits = runs.starts;
  if (runs.count > 0) made.runs.base = table.answer_blocks.take(runs.count);
  for (uint32_t i = 0; i < runs.count; ++i) {
    table.store_answer(made.runs.base + i, word_of(rules, rule_node, runs.rules[i], inherited));
  }
  made.down.bits = children;
  if (children != 0) made.down.base = table.node_blocks.take(ones(children));
  table.store_node(table.nodes()[node], made);
  uint32_t child = made.down.base;
  for (uint64_t left = children; left != 0; left &= left - 1) {
    const uint32_t slot = static_cast<uint32_t>(std::countr_zero(left));
    compile_node(rules, rules.child(rule_node, slot), word_of(rules, rule_node, cover[slot], inherited), table,
                 child++);
  }
}

/// A new table of all rules, with room for twice as many, and for next hops that need a word if `wide`.
std::unique_ptr<Lpm6::Table> Lpm6::compile(const Lpm6Rules& rules, bool wide) {
  const size_t nodes = rules.node_count();
  // A rule begins and ends a run, and each node has at least one.
  const size_t answers = nodes + 2 * rules.size();
  auto table = std::make_unique<Table>(static_cast<uint32_t>(std::max(size_t{1} << 16, 2 * nodes)),
                                       static_cast<uint32_t>(std::max(size_t{1} << 17, 2 * answers)), wide);
  uint32_t* const first = table->first();

  struct Short {
    Lpm6Key prefix;
    int length;
    uint32_t word;
  };
  struct Long {
    uint32_t rule_node;
    uint32_t at;
  };
  std::vector<Short> shorts;
  std::vector<Long> longs;
  if (rules.shortest()) shorts.push_back({{}, 0, *rules.shortest() + 1});
  const auto visit = [&](const auto& self, uint32_t rule_node, int depth, Lpm6Key key) -> void {
    const Region& region = region_of(key, Lpm6Rules::kStride * depth);
    if (Lpm6Rules::kStride * depth == region.bits) {
      longs.push_back({rule_node, region.range(key, region.bits).first});
      return;
    }
    rules.for_each_of(rule_node, [&](uint32_t rule, uint32_t next_hop) {
      shorts.push_back({Lpm6Rules::prefix_of(key, depth, rule), Lpm6Rules::length_of(depth, rule), next_hop + 1});
    });
    for (uint64_t left = rules.children(rule_node); left != 0; left &= left - 1) {
      const uint32_t slot = static_cast<uint32_t>(std::countr_zero(left));
      self(self, rules.child(rule_node, slot), depth + 1, Lpm6Rules::extend(key, depth, slot));
    }
  };
  visit(visit, Lpm6Rules::kRoot, 0, Lpm6Key{});

  std::stable_sort(shorts.begin(), shorts.end(), [](const Short& a, const Short& b) { return a.length < b.length; });
  for (const Short& rule : shorts) {
    for (const Region* region : {&kGlobal, &kOther}) {
      if (!reaches(*region, rule.prefix, rule.length)) continue;
      const auto [begin, end] = region->range(rule.prefix, rule.length);
      std::fill(first + begin, first + end, rule.word);
      std::fill(&table->depths[begin], &table->depths[begin] + (end - begin), static_cast<uint8_t>(rule.length));
    }
  }
  table->changed(first, Lpm6View::kFirstWords * sizeof *first);
  for (const Long& root : longs) {
    const uint32_t node = table->node_blocks.take(1);
    compile_node(rules, root.rule_node, first[root.at], *table, node);
    first[root.at] = kNode | node;
  }
  return table;
}

Lpm6::Lpm6() : table_(compile(rules_, false)), current_(&table_->generation) {}

Lpm6::~Lpm6() { discard(std::move(table_)); }

// --- A change of one route ------------------------------------------------------------------------------------------

/// Changes one route in rules and table. prepare() has made room, so nothing here can fail.
class Lpm6::Change {
 public:
  Change(Lpm6& owner, Lpm6Key prefix, int length)
      : rules_(owner.rules_), table_(*owner.table_), prefix_(prefix), length_(length) {}
  ~Change();

  /// Adds or replaces.
  void set(uint32_t next_hop);
  /// The route must be there.
  void remove();

 private:
  struct Dropped {
    Lpm6Blocks* blocks;
    uint32_t at, size;
  };

  /// Walks down to the node where the prefix ends, and makes the nodes that are missing on the way.
  void walk();
  /// The slots of the last node whose longest rule is `rule`.
  uint64_t slots_of(uint32_t rule) const;
  /// Gives `word` to the addresses of the prefix that no longer prefix of the first level holds.
  void paint(uint32_t word, int depth);
  /// Gives `word` to the addresses below a node that no rule there holds.
  void push(uint32_t rule_node, uint32_t node, uint32_t word);
  /// The answers below some slots of the last node have changed.
  void push_below(uint64_t slots);
  /// Makes the node of step `k` that of its rules, with children as given.
  void refresh(int k, Lpm6Half down);
  void replace(int k, const Lpm6Node& fresh);
  /// Gives nodes in the table to the steps that walk() has made.
  void attach_made();
  /// Removes the last node and those above that have become empty.
  void detach_empty();

  Lpm6Node& node_of(int k) { return table_.nodes()[steps_[k].node]; }
  uint32_t& first_word() { return table_.first()[region_of(prefix_, length_).range(prefix_, length_).first]; }
  void drop_nodes(uint32_t at, uint32_t size) {
    if (size != 0) dropped_[dropped_count_++] = {&table_.node_blocks, at, size};
  }
  void drop_answers(const Lpm6Half& runs) {
    if (runs.bits != 0) dropped_[dropped_count_++] = {&table_.answer_blocks, runs.base, ones(runs.bits)};
  }

  Lpm6Rules& rules_;
  Table& table_;
  const Lpm6Key prefix_;
  const int length_;
  Step steps_[Lpm6Rules::kDepths];
  int last_ = 0;   // the step where the prefix ends
  int made_ = 0;   // the first step whose node walk() made; last_ + 1 if none
  int top_ = 0;    // the first step with a node in the table
  int depth_ = 0;  // the length of the rule that the last step inherits
  Dropped dropped_[kBlocksOfChange];
  size_t dropped_count_ = 0;
};

/// What readers cannot reach any more rests from now on.
Lpm6::Change::~Change() {
  if (dropped_count_ == 0) return;
  const rcu::Epoch grace = rcu::start_grace();
  for (size_t i = 0; i < dropped_count_; ++i) dropped_[i].blocks->give(dropped_[i].at, dropped_[i].size, grace);
}

void Lpm6::Change::set(uint32_t next_hop) {
  if (length_ == 0) {
    rules_.shortest() = next_hop;
    paint(next_hop + 1, 0);
    return;
  }
  walk();
  const uint32_t rule = Lpm6Rules::number_of(prefix_, length_);
  rules_.set(steps_[last_].rule_node, rule, next_hop);
  if (last_ < top_) {
    paint(next_hop + 1, length_);
  } else if (made_ <= last_) {
    attach_made();
  } else {
    refresh(last_, node_of(last_).down);
    push_below(slots_of(rule));
  }
}

void Lpm6::Change::remove() {
  if (length_ == 0) {
    rules_.shortest().reset();
    paint(0, 0);
    return;
  }
  walk();
  const Step& last = steps_[last_];
  const uint32_t rule = Lpm6Rules::number_of(prefix_, length_);
  const uint64_t slots = slots_of(rule);
  rules_.erase(last.rule_node, rule);
  if (last_ < top_) {
    const uint32_t cover = rules_.longest(last.rule_node, last.slot, Lpm6Rules::bits_of(rule) - 1);
    if (cover == Lpm6Rules::kNone) {
      paint(last.inherited, depth_);
    } else {
      paint(rules_.next_hop(last.rule_node, cover) + 1, Lpm6Rules::length_of(last_, cover));
    }
  }
  if (rules_.is_empty(last.rule_node)) {
    detach_empty();
  } else if (last_ >= top_) {
    refresh(last_, node_of(last_).down);
    push_below(slots);
  }
}

void Lpm6::Change::walk() {
  uint32_t rule_node = Lpm6Rules::kRoot;
  uint32_t inherited = rules_.shortest() ? *rules_.shortest() + 1 : 0;
  top_ = region_of(prefix_, length_).bits / Lpm6Rules::kStride;
  last_ = Lpm6Rules::depth_of(length_);
  made_ = last_ + 1;
  for (int k = 0;; ++k) {
    Step& step = steps_[k];
    step = {rule_node, Lpm6Rules::slot_of(prefix_, k), inherited, 0};
    if (k < made_ && k == top_) step.node = first_word() ^ kNode;
    if (k < made_ && k > top_) {
      const Lpm6Half& down = node_of(k - 1).down;
      step.node = down.base + rank(down.bits, steps_[k - 1].slot);
    }
    if (k == last_) return;
    const uint32_t rule = rules_.longest(rule_node, step.slot);
    if (rule != Lpm6Rules::kNone) {
      inherited = rules_.next_hop(rule_node, rule) + 1;
      depth_ = Lpm6Rules::length_of(k, rule);
    }
    const uint32_t child = rules_.child(rule_node, step.slot);
    if (child == Lpm6Rules::kNone) made_ = std::min(made_, k + 1);
    rule_node = child == Lpm6Rules::kNone ? rules_.add_child(rule_node, step.slot) : child;
  }
}

uint64_t Lpm6::Change::slots_of(uint32_t rule) const {
  const Lpm6Rules::Cover cover = rules_.cover(steps_[last_].rule_node);
  uint64_t slots = 0;
  for (size_t slot = 0; slot < cover.size(); ++slot) slots |= uint64_t{cover[slot] == rule + 1} << slot;
  return slots;
}

void Lpm6::Change::paint(uint32_t word, int depth) {
  uint32_t* const first = table_.first();
  for (const Region* region : {&kGlobal, &kOther}) {
    if (!reaches(*region, prefix_, length_)) continue;
    const auto [begin, end] = region->range(prefix_, length_);
    for (uint32_t at = begin; at < end; ++at) {
      if (table_.depths[at] > length_) continue;
      table_.depths[at] = static_cast<uint8_t>(depth);
      if (!(first[at] & kNode)) {
        table_.store_word(first[at], word);
        continue;
      }
      const Lpm6Key key = region->key_of(at);
      uint32_t rule_node = Lpm6Rules::kRoot;
      for (int k = 0; k < region->bits / Lpm6Rules::kStride; ++k) {
        rule_node = rules_.child(rule_node, Lpm6Rules::slot_of(key, k));
      }
      push(rule_node, first[at] ^ kNode, word);
    }
  }
}

void Lpm6::Change::push(uint32_t rule_node, uint32_t node, uint32_t word) {
  const Lpm6Node& n = table_.nodes()[node];
  const Lpm6Rules::Cover cover = rules_.cover(rule_node);
  const Runs runs = runs_of(cover, n.down.bits);
  for (uint32_t i = 0; i < runs.count; ++i) {
    if (runs.rules[i] == 0) table_.store_answer(n.runs.base + i, word);
  }
  uint32_t child = n.down.base;
  for (uint64_t left = n.down.bits; left != 0; left &= left - 1, ++child) {
    const uint32_t slot = static_cast<uint32_t>(std::countr_zero(left));
    if (cover[slot] == 0) push(rules_.child(rule_node, slot), child, word);
  }
}

void Lpm6::Change::push_below(uint64_t slots) {
  const Step& last = steps_[last_];
  const Lpm6Half& down = node_of(last_).down;
  for (uint64_t left = down.bits & slots; left != 0; left &= left - 1) {
    const uint32_t slot = static_cast<uint32_t>(std::countr_zero(left));
    const uint32_t rule = rules_.longest(last.rule_node, slot);
    push(rules_.child(last.rule_node, slot), down.base + rank(down.bits, slot),
         rule == Lpm6Rules::kNone ? last.inherited : rules_.next_hop(last.rule_node, rule) + 1);
  }
}

void Lpm6::Change::refresh(int k, Lpm6Half down) {
  const Step& step = steps_[k];
  const Lpm6Node& old = node_of(k);
  const Runs runs = runs_of(rules_.cover(step.rule_node), down.bits);
  Lpm6Node fresh{down, old.runs};
  // Answers are changed in place only if the node leads on where it did before: a reader who is still in an older form
  // of the node must not be told of a change that no longer concerns its address.
  const bool in_place = down.bits == old.down.bits && runs.starts == old.runs.bits;
  if (!in_place) {
    drop_answers(old.runs);
    fresh.runs = {runs.starts, runs.count == 0 ? 0 : table_.answer_blocks.take(runs.count), 0};
  }
  for (uint32_t i = 0; i < runs.count; ++i) {
    table_.store_answer(fresh.runs.base + i, word_of(rules_, step.rule_node, runs.rules[i], step.inherited));
  }
  if (!in_place) replace(k, fresh);
}

/// Puts a node in the place of another one: in a copy of the list where it stands, which then takes the list's place.
void Lpm6::Change::replace(int k, const Lpm6Node& fresh) {
  Lpm6Node* const nodes = table_.nodes();
  if (k == top_) {
    const uint32_t at = table_.node_blocks.take(1);
    table_.store_node(nodes[at], fresh);
    table_.store_word(first_word(), kNode | at);
    drop_nodes(steps_[k].node, 1);
    steps_[k].node = at;
    return;
  }
  Lpm6Half& down = node_of(k - 1).down;
  const uint32_t count = ones(down.bits), before = down.base;
  const uint32_t mine = rank(down.bits, steps_[k - 1].slot);
  const uint32_t at = table_.node_blocks.take(count);
  for (uint32_t i = 0; i < count; ++i) table_.store_node(nodes[at + i], i == mine ? fresh : nodes[before + i]);
  table_.store_word(down.base, at);
  drop_nodes(before, count);
  steps_[k].node = at + mine;
}

void Lpm6::Change::attach_made() {
  Lpm6Node* const nodes = table_.nodes();
  if (made_ <= top_) {
    const uint32_t at = table_.node_blocks.take(1);
    compile_node(rules_, steps_[top_].rule_node, steps_[top_].inherited, table_, at);
    table_.store_word(first_word(), kNode | at);
    return;
  }
  const int parent = made_ - 1;
  const Lpm6Half before = node_of(parent).down;
  const uint64_t bit = uint64_t{1} << steps_[parent].slot;
  const uint32_t count = ones(before.bits), mine = rank(before.bits, steps_[parent].slot);
  const uint32_t at = table_.node_blocks.take(count + 1);
  for (uint32_t i = 0; i < count; ++i) table_.store_node(nodes[at + i + (i >= mine)], nodes[before.base + i]);
  compile_node(rules_, steps_[made_].rule_node, steps_[made_].inherited, table_, at + mine);
  drop_nodes(before.base, count);
  refresh(parent, {before.bits | bit, at, 0});
}

void Lpm6::Change::detach_empty() {
  int left = last_;  // the last step that stays
  for (; left > 0 && rules_.is_empty(steps_[left].rule_node); --left) {
    rules_.remove_child(steps_[left - 1].rule_node, steps_[left - 1].slot);
  }
  const int gone = std::max(left + 1, top_);  // the first step whose node in the table goes
  if (gone > last_) return;
  for (int k = gone; k <= last_; ++k) {
    drop_answers(node_of(k).runs);
    if (k > gone) drop_nodes(steps_[k].node, 1);
  }
  if (gone == top_) {
    table_.store_word(first_word(), steps_[top_].inherited);
    drop_nodes(steps_[top_].node, 1);
    return;
  }
  Lpm6Node* const nodes = table_.nodes();
  const Lpm6Half before = node_of(left).down;
  const uint32_t count = ones(before.bits), mine = rank(before.bits, steps_[left].slot);
  const uint32_t at = count == 1 ? 0 : table_.node_blocks.take(count - 1);
  for (uint32_t i = 0; i < count; ++i) {
    if (i != mine) table_.store_node(nodes[at + i - (i > mine)], nodes[before.base + i]);
  }
  drop_nodes(before.base, count);
  refresh(left, {before.bits & ~(uint64_t{1} << steps_[left].slot), at, 0});
}

/// Makes room for a change of one route; a table that has none left, or whose answers are too narrow, is made anew.
void Lpm6::prepare(bool wide) {
  rules_.reserve_for_one();
  table_->node_blocks.collect(kBlocksOfChange);
  table_->answer_blocks.collect(kBlocksOfChange);
  wide |= table_->wide();
  if (table_->node_blocks.has_room(kNodesOfChange) && table_->answer_blocks.has_room(kAnswersOfChange) &&
      wide == table_->wide()) {
    return;
  }
  auto table = compile(rules_, wide);
  table->node_blocks.collect(kBlocksOfChange);
  table->answer_blocks.collect(kBlocksOfChange);
  publish(std::move(table));
}

// --- The table ------------------------------------------------------------------------------------------------------

bool Lpm6::add(Lpm6Key prefix, int length, uint32_t next_hop) {
  if (!in_range(length, next_hop) || find_exact(prefix, length)) return false;
  return set(prefix, length, next_hop);
}

bool Lpm6::set(Lpm6Key prefix, int length, uint32_t next_hop) {
  if (!in_range(length, next_hop)) return false;
  prepare(needs_word(next_hop));
  Change(*this, lpm6_clean(prefix, length), length).set(next_hop);
  return true;
}

bool Lpm6::remove(Lpm6Key prefix, int length) {
  if (!find_exact(prefix, length)) return false;
  prepare(false);
  Change(*this, lpm6_clean(prefix, length), length).remove();
  return true;
}

bool Lpm6::build(std::span<const Route> routes) {
  bool wide = false;
  for (const Route& route : routes) {
    if (!in_range(route.length, route.next_hop)) return false;
    wide |= needs_word(route.next_hop);
  }
  std::vector<Route> sorted(routes.begin(), routes.end());
  for (Route& route : sorted) route.prefix = lpm6_clean(route.prefix, route.length);
  const auto before = [](const Route& a, const Route& b) {
    return a.prefix == b.prefix ? a.length < b.length : a.prefix < b.prefix;
  };
  if (!std::is_sorted(sorted.begin(), sorted.end(), before)) std::stable_sort(sorted.begin(), sorted.end(), before);

  Lpm6Rules rules;
  // The way to the route before, of which the next one shares a part.
  uint32_t way[Lpm6Rules::kDepths] = {Lpm6Rules::kRoot};
  int way_end = 0;
  Lpm6Key last;
  for (const Route& route : sorted) {
    if (route.length == 0) {
      rules.shortest() = route.next_hop;
      continue;
    }
    const uint64_t high = route.prefix.high ^ last.high, low = route.prefix.low ^ last.low;
    const int common = high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(low);
    const int depth = Lpm6Rules::depth_of(route.length);
    for (int k = std::min({common / Lpm6Rules::kStride, way_end, depth}); k < depth; ++k) {
      const uint32_t slot = Lpm6Rules::slot_of(route.prefix, k);
      const uint32_t child = rules.child(way[k], slot);
      way[k + 1] = child == Lpm6Rules::kNone ? rules.add_child(way[k], slot) : child;
    }
    rules.set(way[depth], Lpm6Rules::number_of(route.prefix, route.length), route.next_hop);
    way_end = depth;
    last = route.prefix;
  }
  auto table = compile(rules, wide);
  rules_ = std::move(rules);
  publish(std::move(table));
  return true;
}

std::optional<uint32_t> Lpm6::find_exact(Lpm6Key prefix, int length) const {
  if (!in_range(length, 0)) return std::nullopt;
  if (length == 0) return rules_.shortest();
  uint32_t node = Lpm6Rules::kRoot;
  for (int k = 0; k < Lpm6Rules::depth_of(length); ++k) {
    node = rules_.child(node, Lpm6Rules::slot_of(prefix, k));
    if (node == Lpm6Rules::kNone) return std::nullopt;
  }
  return rules_.find(node, Lpm6Rules::number_of(prefix, length));
}

std::optional<Lpm6::Route> Lpm6::match(Lpm6Key key) const {
  std::optional<Route> best;
  if (rules_.shortest()) best = Route{{}, 0, *rules_.shortest()};
  uint32_t node = Lpm6Rules::kRoot;
  for (int k = 0; k < Lpm6Rules::kDepths && node != Lpm6Rules::kNone; ++k) {
    const uint32_t slot = Lpm6Rules::slot_of(key, k);
    const uint32_t rule = rules_.longest(node, slot);
    if (rule != Lpm6Rules::kNone) {
      const int length = Lpm6Rules::length_of(k, rule);
      best = Route{lpm6_clean(key, length), length, rules_.next_hop(node, rule)};
    }
    node = rules_.child(node, slot);
  }
  return best;
}

std::vector<Lpm6::Route> Lpm6::routes() const {
  std::vector<Route> all;
  all.reserve(rules_.size());
  rules_.for_each([&](Lpm6Key prefix, int length, uint32_t next_hop) { all.push_back({prefix, length, next_hop}); });
  std::sort(all.begin(), all.end(), [](const Route& a, const Route& b) {
    return a.prefix == b.prefix ? a.length < b.length : a.prefix < b.prefix;
  });
  return all;
}

size_t Lpm6::node_count() const { return table_->node_blocks.used(); }

size_t Lpm6::table_bytes() const {
  return Lpm6View::kFirstWords * sizeof(uint32_t) + table_->node_blocks.top() * sizeof(Lpm6Node) +
         table_->answer_blocks.top() * table_->answer_size();
}

size_t Lpm6::memory_bytes() const { return table_bytes() + table_->depths.bytes() + rules_.bytes(); }

Lpm6View Lpm6::mirror(Mirror& mirror) const {
  const std::byte* const memory = table_->memory.data();
  const auto* const copy =
      static_cast<const std::byte*>(mirror.bytes(memory, table_->memory.bytes(), &table_->changes));
  return Lpm6View(mirror.object(Lpm6Generation{reinterpret_cast<const uint32_t*>(copy),
                                               reinterpret_cast<const Lpm6Node*>(copy + Table::kNodesAt),
                                               copy + table_->answers_at, table_->generation.wide}));
}

void Lpm6::publish(std::unique_ptr<Table> table) {
  table_.swap(table);
  current_.store(&table_->generation, std::memory_order_release);
  discard(std::move(table));
}

/// Frees the table when no reader can be in it.
void Lpm6::discard(std::unique_ptr<Table> table) {
  // With no reader under way the memory goes back at once, even if rcu::reclaim() is never called.
  if (rcu::elapsed(rcu::start_grace())) return;
  rcu::retire([table = std::shared_ptr<Table>(std::move(table))] {});
}

}  // namespace headrace
