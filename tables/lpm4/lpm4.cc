#include "tables/lpm4/lpm4.hh"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

namespace headrace {

namespace {

constexpr uint32_t kGroupSize = 256;
/// 16-bit entries hold 15 bits of next hop plus one, or of group.
constexpr uint32_t kNarrowLimit = 32767;
/// What is in front of the entries of a table with these next hops: see Lpm4Generation::ask. 0: nothing.
uint32_t ask_for(uint32_t largest_next_hop) {
  if (largest_next_hop + 1 < Lpm4Generation::kAskHalf) return Lpm4Generation::kAskHalf;
  return largest_next_hop + 1 < Lpm4Generation::kAskByte ? Lpm4Generation::kAskByte : 0;
}

template <typename Entry>
constexpr Entry kGroupFlag = static_cast<Entry>(Entry{1} << (8 * sizeof(Entry) - 1));

/// Replaces a word that readers load at the same time.
template <typename Entry>
void store_shared(Entry& word, Entry value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

/// The same; who finds the word also finds what was stored before. By a fence, because ThreadSanitizer keeps a clock for
/// each word that is stored with release, and these are up to 16 million.
template <typename Entry>
void publish_shared(Entry& word, Entry value) {
  __atomic_thread_fence(__ATOMIC_RELEASE);
  store_shared(word, value);
}

/// Room for groups in a wide table that has `groups` of them: twice as many, since more will come.
uint32_t wide_capacity(uint32_t groups) { return std::max(uint32_t{65536}, std::bit_ceil(2 * groups)); }

uint32_t clean(uint32_t prefix, int length) { return prefix & Lpm4Rules::mask_of(length); }

}  // namespace

/// A generation and the memory that it points to.
struct Lpm4::Table {
  /// \param ask Lpm4Generation::ask; 0: it has no array `answers`
  Table(bool wide, uint32_t capacity, uint32_t ask)
      : first(kBlocks * entry_size(wide)),
        groups(size_t{capacity} * kGroupSize * entry_size(wide)),
        answers(ask == 0 ? 0 : kBlocks >> halves_of(ask)),
        group_capacity(capacity),
        first_changes(first.bytes()),
        group_changes(groups.bytes()),
        answer_changes(answers.bytes()),
        generation{first.data(), groups.data(), answers.data(), wide ? 1u : 0u, 8 + halves_of(ask), 4 * halves_of(ask),
                   ask} {
    look_ahead();
  }

  static size_t entry_size(bool wide) { return wide ? sizeof(uint32_t) : sizeof(uint16_t); }
  static uint32_t halves_of(uint32_t ask) { return ask == Lpm4Generation::kAskHalf ? 1 : 0; }

  /// Says what a lookup reads first.
  void look_ahead() {
    const bool answers_first = generation.answers != nullptr;
    const auto* const ahead = answers_first ? generation.answers : reinterpret_cast<const uint8_t*>(first.data());
    // Entries have 2 or 4 bytes. A reader that finds one of the two old and one new asks for the wrong line, no more.
    const uint32_t shift = answers_first ? generation.shift : generation.wide ? 6 : 7;
    __atomic_store_n(&generation.ahead, ahead, __ATOMIC_RELAXED);
    __atomic_store_n(&generation.ahead_shift, shift, __ATOMIC_RELAXED);
  }
  uint32_t halves() const { return generation.shift - 8; }

  template <typename Entry>
  Entry* first_as() {
    return reinterpret_cast<Entry*>(first.data());
  }
  template <typename Entry>
  Entry* group_as(uint32_t group) {
    return reinterpret_cast<Entry*>(groups.data()) + size_t{group} * kGroupSize;
  }

  /// Sets what is in front of an entry of the first level.
  void store_answer(size_t block, uint32_t entry) {
    if (answers.size() == 0) return;
    const uint32_t ask = generation.ask;
    const auto shift = static_cast<uint32_t>(block & halves()) << 2;
    uint8_t& byte = answers[block >> halves()];
    // Nobody else writes.
    const uint32_t rest = byte & ~(ask << shift);
    publish_shared(byte, static_cast<uint8_t>(rest | std::min(entry, ask) << shift));
  }
  /// Replaces an entry of the first level, and then what is in front of it: who is told to ask finds the new entry.
  template <typename Entry>
  void store_first(size_t block, Entry entry) {
    publish_shared(first_as<Entry>()[block], entry);
    store_answer(block, entry);
  }
  /// The same for many entries, before there are readers.
  template <typename Entry>
  void fill_first(size_t block, size_t count, Entry entry) {
    std::fill_n(&first_as<Entry>()[block], count, entry);
    fill_answers(block, count, entry);
  }
  void fill_answers(size_t block, size_t count, uint32_t entry) {
    if (answers.size() == 0) return;
    const uint32_t halves = this->halves(), ask = generation.ask, answer = std::min(entry, ask);
    size_t end = block + count;
    if (block & halves) store_answer(block++, entry);
    if (end & halves && end > block) store_answer(--end, entry);
    std::fill_n(answers.data() + (block >> halves), (end - block) >> halves,
                static_cast<uint8_t>(answer | halves * (answer << 4)));
  }
  /// Readers no longer use `answers`. It stays as right as the rest, for those that are in it.
  void leave_answers() {
    __atomic_store_n(&generation.answers, static_cast<const uint8_t*>(nullptr), __ATOMIC_RELAXED);
    look_ahead();
  }

  HugeArray<std::byte> first;
  HugeArray<std::byte> groups;
  HugeArray<uint8_t> answers;
  /// Notes that entries of the first level, or of a group, have changed.
  template <typename Entry>
  void first_changed(size_t begin, size_t end) {
    first_changes.mark(begin * sizeof(Entry), end * sizeof(Entry));
    if (answers.size() > 0) answer_changes.mark(begin >> halves(), (end + halves()) >> halves());
  }
  template <typename Entry>
  void group_changed(uint32_t group) {
    group_changes.mark(group * kGroupSize * sizeof(Entry), (size_t{group} + 1) * kGroupSize * sizeof(Entry));
  }

  uint32_t group_capacity;
  ChangedPages first_changes, group_changes, answer_changes;
  Lpm4Generation generation;
};

Lpm4::Lpm4()
    : table_(std::make_unique<Table>(false, kNarrowLimit, Lpm4Generation::kAskHalf)), current_(&table_->generation) {}

Lpm4::~Lpm4() { discard(std::move(table_)); }

bool Lpm4::wide() const { return table_->generation.wide != 0; }

bool Lpm4::add(uint32_t prefix, int length, uint32_t next_hop) {
  if (!in_range(length, next_hop)) return false;
  prefix = clean(prefix, length);
  if (rules_.find(prefix, length)) return false;
  // What may fail comes first.
  rules_.reserve(rules_.size() + 1);
  make_room_for(next_hop);
  if (length > 24) {
    const uint32_t block = prefix >> 8;
    if (!group_of(block)) open_group(block, take_group());
    ++books_.group_routes[*group_of(block)];
  }
  rules_.add(prefix, length, next_hop);
  paint(prefix, length, next_hop + 1, length);
  return true;
}

bool Lpm4::set(uint32_t prefix, int length, uint32_t next_hop) {
  if (!in_range(length, next_hop)) return false;
  prefix = clean(prefix, length);
  if (!rules_.find(prefix, length)) return add(prefix, length, next_hop);
  make_room_for(next_hop);
  rules_.replace(prefix, length, next_hop);
  paint(prefix, length, next_hop + 1, length);
  return true;
}

bool Lpm4::remove(uint32_t prefix, int length) {
  if (!in_range(length, 0)) return false;
  prefix = clean(prefix, length);
  if (!rules_.erase(prefix, length)) return false;
  const std::optional<Lpm4Rules::Rule> cover = rules_.match(prefix, length - 1);
  paint(prefix, length, cover ? cover->next_hop + 1 : 0, cover ? cover->length : 0);
  if (length > 24 && --books_.group_routes[*group_of(prefix >> 8)] == 0) close_group(prefix >> 8);
  return true;
}

std::optional<uint32_t> Lpm4::find_exact(uint32_t prefix, int length) const {
  if (!in_range(length, 0)) return std::nullopt;
  return rules_.find(clean(prefix, length), length);
}

std::optional<Lpm4::Route> Lpm4::match(uint32_t address) const {
  const std::optional<Lpm4Rules::Rule> rule = rules_.match(address, 32);
  if (!rule) return std::nullopt;
  return Route{rule->prefix, rule->length, rule->next_hop};
}

std::vector<Lpm4::Route> Lpm4::routes() const {
  std::vector<Route> all;
  all.reserve(rules_.size());
  rules_.for_each([&](const Lpm4Rules::Rule& rule) { all.push_back({rule.prefix, rule.length, rule.next_hop}); });
  std::sort(all.begin(), all.end(),
            [](const Route& a, const Route& b) { return std::tie(a.prefix, a.length) < std::tie(b.prefix, b.length); });
  return all;
}

size_t Lpm4::memory_bytes() const {
  return table_->first.bytes() + table_->answers.bytes() +
         size_t{books_.groups_made} * kGroupSize * Table::entry_size(wide()) + books_.block_depth.bytes() +
         books_.group_depth.capacity() + books_.group_routes.capacity() * sizeof(books_.group_routes[0]) +
         rules_.bytes();
}

std::optional<uint32_t> Lpm4::group_of(uint32_t block) const {
  if (wide()) {
    const uint32_t entry = table_->first_as<uint32_t>()[block];
    if (entry & kGroupFlag<uint32_t>) return entry ^ kGroupFlag<uint32_t>;
  } else {
    const uint16_t entry = table_->first_as<uint16_t>()[block];
    if (entry & kGroupFlag<uint16_t>) return entry ^ kGroupFlag<uint16_t>;
  }
  return std::nullopt;
}

void Lpm4::make_room_for(uint32_t next_hop) {
  const Lpm4Generation& g = table_->generation;
  const bool to_wide = !wide() && next_hop >= kNarrowLimit;
  // A table without answers gets none until the next build().
  uint32_t ask = g.answers == nullptr ? 0 : g.ask;
  if (ask != 0 && next_hop + 1 >= ask) ask = ask_for(next_hop);
  if (to_wide || (ask != 0 && ask != g.ask)) {
    replace(wide() || to_wide, to_wide ? wide_capacity(books_.groups_made) : table_->group_capacity, ask);
  } else if (ask == 0 && g.answers != nullptr) {
    table_->leave_answers();
  }
}

void Lpm4::open_group(uint32_t block, uint32_t group) {
  if (wide()) {
    open_group<uint32_t>(block, group);
  } else {
    open_group<uint16_t>(block, group);
  }
}

void Lpm4::close_group(uint32_t block) {
  if (wide()) {
    close_group<uint32_t>(block);
  } else {
    close_group<uint16_t>(block);
  }
}

void Lpm4::paint(uint32_t prefix, int length, uint32_t value, int depth) {
  if (wide()) {
    paint<uint32_t>(prefix, length, value, depth);
  } else {
    paint<uint16_t>(prefix, length, value, depth);
  }
}

/// Gives `value` and `depth` to the addresses of the prefix that no longer prefix holds. Serves to add a route, to
/// replace it, and to remove it: while a route of this length is there, nothing within it has a smaller depth.
template <typename Entry>
void Lpm4::paint(uint32_t prefix, int length, uint32_t value, int depth) {
  Entry* const first = table_->first_as<Entry>();
  const auto paint_group = [&](uint32_t group, uint32_t begin, uint32_t count) {
    Entry* const entries = table_->group_as<Entry>(group);
    uint8_t* const depths = &books_.group_depth[size_t{group} * kGroupSize];
    for (uint32_t i = begin; i < begin + count; ++i) {
      if (depths[i] > length) continue;
      depths[i] = static_cast<uint8_t>(depth);
      store_shared(entries[i], static_cast<Entry>(value));
    }
    table_->group_changed<Entry>(group);
  };

  if (length > 24) {
    paint_group(first[prefix >> 8] ^ kGroupFlag<Entry>, prefix & 0xff, uint32_t{1} << (32 - length));
    return;
  }
  const uint32_t begin = prefix >> 8;
  const uint32_t end = begin + (uint32_t{1} << (24 - length));
  table_->first_changed<Entry>(begin, end);
  for (uint32_t block = begin; block < end; ++block) {
    if (books_.block_depth[block] > length) continue;
    books_.block_depth[block] = static_cast<uint8_t>(depth);
    if (first[block] & kGroupFlag<Entry>) {
      paint_group(first[block] ^ kGroupFlag<Entry>, 0, kGroupSize);
    } else {
      table_->store_first(block, static_cast<Entry>(value));
    }
  }
}

/// Makes `block`, which has an answer of its own, lead to `group`.
template <typename Entry>
void Lpm4::open_group(uint32_t block, uint32_t group) {
  const Entry entry = table_->first_as<Entry>()[block];
  Entry* const entries = table_->group_as<Entry>(group);
  for (uint32_t i = 0; i < kGroupSize; ++i) store_shared(entries[i], entry);
  std::memset(&books_.group_depth[size_t{group} * kGroupSize], books_.block_depth[block], kGroupSize);
  table_->store_first(block, static_cast<Entry>(kGroupFlag<Entry> | group));
  table_->group_changed<Entry>(group);
  table_->first_changed<Entry>(block, size_t{block} + 1);
}

/// Undoes open_group() once all addresses of the block have the same answer.
template <typename Entry>
void Lpm4::close_group(uint32_t block) {
  const uint32_t group = table_->first_as<Entry>()[block] ^ kGroupFlag<Entry>;
  table_->store_first(block, table_->group_as<Entry>(group)[0]);
  table_->first_changed<Entry>(block, size_t{block} + 1);
  books_.resting.push_back({rcu::start_grace(), group});
}

uint32_t Lpm4::Books::make_group() {
  group_depth.resize(group_depth.size() + kGroupSize);
  group_routes.resize(groups_made + 1);
  return groups_made++;
}

uint32_t Lpm4::take_group() {
  while (!books_.resting.empty() && rcu::elapsed(books_.resting.front().grace)) {
    books_.free_groups.push_back(books_.resting.front().group);
    books_.resting.pop_front();
  }
  if (!books_.free_groups.empty()) {
    const uint32_t group = books_.free_groups.back();
    books_.free_groups.pop_back();
    return group;
  }
  if (books_.groups_made == table_->group_capacity)
    replace(true, wide_capacity(books_.groups_made),
            table_->generation.answers == nullptr ? 0 : table_->generation.ask);
  return books_.make_group();
}

bool Lpm4::build(std::span<const Route> routes) {
  std::array<size_t, 34> begin_of_length{};
  uint32_t largest_next_hop = 0;
  for (const Route& route : routes) {
    if (!in_range(route.length, route.next_hop)) return false;
    largest_next_hop = std::max(largest_next_hop, route.next_hop);
    ++begin_of_length[route.length + 1];
  }
  for (size_t length = 1; length < begin_of_length.size(); ++length) {
    begin_of_length[length] += begin_of_length[length - 1];
  }
  const size_t grouped = begin_of_length[25];

  // By length, so that a longer route simply overwrites a shorter one; the last of equal prefixes comes first, and its
  // elders are left out.
  std::vector<Route> by_length(routes.size());
  std::array<size_t, 34> next = begin_of_length;
  for (size_t i = routes.size(); i-- > 0;) {
    const Route& route = routes[i];
    by_length[next[route.length]++] = {clean(route.prefix, route.length), route.length, route.next_hop};
  }

  uint32_t groups = 0;
  if (grouped < by_length.size()) {
    std::vector<bool> has_group(kBlocks);
    for (size_t i = grouped; i < by_length.size(); ++i) {
      std::vector<bool>::reference seen = has_group[by_length[i].prefix >> 8];
      groups += !seen;
      seen = true;
    }
  }

  const bool is_wide = largest_next_hop >= kNarrowLimit || groups > kNarrowLimit;
  auto table =
      std::make_unique<Table>(is_wide, is_wide ? wide_capacity(groups) : kNarrowLimit, ask_for(largest_next_hop));
  Books books;
  books.group_depth.reserve(size_t{groups} * kGroupSize);
  books.group_routes.reserve(groups);
  Lpm4Rules rules;
  rules.reserve(by_length.size());
  if (is_wide) {
    fill<uint32_t>(*table, books, rules, by_length);
  } else {
    fill<uint16_t>(*table, books, rules, by_length);
  }
  rules_ = std::move(rules);
  books_ = std::move(books);
  publish(std::move(table));
  return true;
}

/// Writes routes sorted by length into an empty table that has no readers yet.
template <typename Entry>
void Lpm4::fill(Table& table, Books& books, Lpm4Rules& rules, std::span<const Route> by_length) {
  constexpr size_t kAhead = 16;
  Entry* const first = table.first_as<Entry>();
  for (size_t i = 0; i < by_length.size(); ++i) {
    if (i + kAhead < by_length.size()) rules.prefetch(by_length[i + kAhead].prefix, by_length[i + kAhead].length);
    const Route& route = by_length[i];
    if (!rules.add(route.prefix, route.length, route.next_hop)) continue;
    const Entry value = static_cast<Entry>(route.next_hop + 1);
    const uint32_t block = route.prefix >> 8;
    if (route.length <= 24) {
      const size_t blocks = size_t{1} << (24 - route.length);
      table.fill_first(block, blocks, value);
      std::fill_n(&books.block_depth[block], blocks, static_cast<uint8_t>(route.length));
      continue;
    }
    if (!(first[block] & kGroupFlag<Entry>)) {
      const uint32_t group = books.make_group();
      std::fill_n(table.group_as<Entry>(group), kGroupSize, first[block]);
      std::fill_n(&books.group_depth[size_t{group} * kGroupSize], kGroupSize, books.block_depth[block]);
      table.fill_first(block, 1, static_cast<Entry>(kGroupFlag<Entry> | group));
    }
    const uint32_t group = first[block] ^ kGroupFlag<Entry>;
    const size_t addresses = size_t{1} << (32 - route.length);
    std::fill_n(table.group_as<Entry>(group) + (route.prefix & 0xff), addresses, value);
    std::fill_n(&books.group_depth[size_t{group} * kGroupSize + (route.prefix & 0xff)], addresses,
                static_cast<uint8_t>(route.length));
    ++books.group_routes[group];
  }
}

/// Copies the table into one of another form, and swaps. A wide table stays wide.
void Lpm4::replace(bool is_wide, uint32_t capacity, uint32_t ask) {
  auto table = std::make_unique<Table>(is_wide, capacity, ask);
  const auto widen = [](const uint16_t* from, uint32_t* to, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const uint32_t flag = from[i] & kGroupFlag<uint16_t>;
      to[i] = flag << 16 | (from[i] ^ flag);
    }
  };
  const size_t group_entries = size_t{books_.groups_made} * kGroupSize;
  if (wide() == is_wide) {
    std::copy_n(table_->first.data(), table_->first.size(), table->first.data());
    std::copy_n(table_->groups.data(), group_entries * Table::entry_size(is_wide), table->groups.data());
  } else {
    widen(table_->first_as<uint16_t>(), table->first_as<uint32_t>(), kBlocks);
    widen(table_->group_as<uint16_t>(0), table->group_as<uint32_t>(0), group_entries);
  }
  if (ask == table_->generation.ask) {
    std::copy_n(table_->answers.data(), table->answers.size(), table->answers.data());
  } else if (ask != 0) {
    for (uint32_t block = 0; block < kBlocks; ++block) {
      const uint32_t entry = is_wide ? table->first_as<uint32_t>()[block] : table->first_as<uint16_t>()[block];
      if (entry != 0) table->store_answer(block, entry);
    }
  }
  publish(std::move(table));
}

Lpm4View Lpm4::mirror(Mirror& mirror) const {
  Lpm4Generation g = table_->generation;
  g.first = mirror.bytes(g.first, table_->first.bytes(), &table_->first_changes);
  g.groups = mirror.bytes(g.groups, table_->groups.bytes(), &table_->group_changes);
  g.ahead = nullptr;
  if (g.answers) g.answers = mirror.array(g.answers, table_->answers.size(), &table_->answer_changes);
  return Lpm4View(mirror.object(g));
}

void Lpm4::publish(std::unique_ptr<Table> table) {
  table->first_changes.mark(0, table->first.bytes());
  if (table->answers.size() > 0) table->answer_changes.mark(0, table->answers.bytes());
  table->group_changes.mark(0,
                            size_t{books_.groups_made} * kGroupSize * Table::entry_size(table->generation.wide != 0));
  table_.swap(table);
  current_.store(&table_->generation, std::memory_order_release);
  discard(std::move(table));
}

/// Frees the table when no reader can be in it.
void Lpm4::discard(std::unique_ptr<Table> table) {
  // With no reader under way the memory goes back at once, even if rcu::reclaim() is never called.
  if (rcu::elapsed(rcu::start_grace())) return;
  rcu::retire([table = std::shared_ptr<Table>(std::move(table))] {});
}

}  // namespace headrace
