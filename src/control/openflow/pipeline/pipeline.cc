#include "control/openflow/pipeline/pipeline.hh"

#include <algorithm>
#include <new>
#include <random>
#include <utility>

#include "control/openflow/pipeline/duration.hh"

namespace headrace::openflow {

namespace {

uint64_t random_seed() {
  // So that nobody outside can choose packets and entries that share a bucket.
  std::random_device source;
  return uint64_t{source()} << 32 | source();
}

}  // namespace

OpenFlowPipeline::OpenFlowPipeline(PipelineOptions options)
    : options_(std::move(options)),
      ports_(options_.ports.begin(), options_.ports.end()),
      seed_(random_seed()),
      tables_(std::make_unique<OpenFlowTables>()),
      store_(options_.most_words),
      configs_(options_.most_entries) {
  switch_names_.has_port = [this](uint32_t port) { return ports_.contains(port); };
  switch_names_.has_group = [this](uint32_t group) { return groups_.has(group) && !groups_.find(group)->leaving; };
  switch_names_.has_meter = [this](uint32_t meter) { return meters_.has(meter) && !meters_.is_leaving(meter); };
  switch_names_.has_table = [this](uint8_t table) { return configs_.has(table); };
  program_names_.slot_of_group = [this](uint32_t group) { return groups_.slot_of(group); };
  program_names_.place_of_meter = [this](uint32_t meter) { return meters_.place_of(meter); };
  tables_->words = store_.data();
  tables_->groups = groups_.slots();
  tables_->live = groups_.live();
  miss_counters_.reserve(kMostTables);
}

FlowTable& OpenFlowPipeline::make_table(uint32_t number) {
  auto& table = flow_tables_[number];
  if (!table) table = std::make_unique<FlowTable>(entries_, &tables_->tables[number], seed_ + number);
  return *table;
}

void OpenFlowPipeline::before_change(FlowTable* table) {
  if (changing_ != nullptr && changing_ != table) changing_->commit();
  changing_ = table;
}

rcu::Epoch OpenFlowPipeline::commit() {
  before_change(nullptr);
  const rcu::Epoch point = rcu::start_grace();
  store_.begin_grace();
  groups_.begin_grace();
  meters_.begin_grace();
  return point;
}

ErrorCode OpenFlowPipeline::set_table_features(const std::vector<TableFeatures>& features) {
  std::bitset<kMostTables> has_entries;
  for (uint32_t i = 0; i < kMostTables; ++i) has_entries[i] = flow_tables_[i] && flow_tables_[i]->size() != 0;
  return configs_.set(features, has_entries);
}

void OpenFlowPipeline::set_miss_to_controller(bool on) {
  __atomic_store_n(&tables_->miss_to_controller, on ? 1 : 0, __ATOMIC_RELEASE);
}

ErrorCode OpenFlowPipeline::packet_out(const std::vector<Action>& actions, std::vector<uint32_t>& program) const {
  if (const ErrorCode error = check_actions(actions, switch_names_, true); error != ErrorCode::kNone) return error;
  Instruction apply;
  apply.type = InstructionType::kApplyActions;
  apply.actions = actions;
  auto words = entry_program({apply}, program_names_);
  if (!words) return ErrorCode::kActionTooMany;
  program = std::move(*words);
  return ErrorCode::kNone;
}

OpenFlowView OpenFlowPipeline::mirror(Mirror& mirror) const {
  OpenFlowTables copy = *tables_;
  for (uint32_t i = 0; i < kMostTables; ++i)
    copy.tables[i] = flow_tables_[i] ? flow_tables_[i]->mirror(mirror).generation() : nullptr;
  copy.words = store_.mirror(mirror);
  copy.groups = groups_.mirror_slots(mirror);
  copy.live = groups_.mirror_live(mirror);
  return OpenFlowView(mirror.object(copy));
}

uint32_t OpenFlowPipeline::key_words() const {
  uint32_t words = FlowTable::kNarrow;
  for (const auto& table : flow_tables_)
    if (table) words = std::max(words, table->key_words());
  return words;
}

uint32_t OpenFlowPipeline::take_number() {
  if (free_numbers_.empty()) settle_tables(kPiece);
  if (!free_numbers_.empty()) {
    const uint32_t number = free_numbers_.back();
    free_numbers_.pop_back();
    return number;
  }
  const auto number = static_cast<uint32_t>(entries_.size());
  if (number == EntryCounters::kMost) throw std::bad_alloc();
  entry_counters_.reserve(number + 1);
  entries_.emplace_back();
  return number;
}

void OpenFlowPipeline::settle_tables(size_t most) {
  std::vector<uint32_t> free;
  for (const auto& table : flow_tables_)
    if (table && table->resting() != 0 && free.size() < most) table->settle(free, most - free.size());
  for (const uint32_t number : free) settle_entry(number);
}

void OpenFlowPipeline::settle_entry(uint32_t number) {
  if (auto message = removing_.extract(number)) {
    const Count count = count_of(number);
    message.mapped().packets = count.packets;
    message.mapped().bytes = count.bytes;
    removed_.push_back(std::move(message.mapped()));
  }
  for (TableWalk* const walk : table_walks_) walk->settles(number);
  past_matches_[entries_[number].table] += matches_of(number);
  entry_counters_.clear(number);
  entries_[number] = {};
  free_numbers_.push_back(number);
}

std::vector<FlowRemoved> OpenFlowPipeline::settle(size_t most) {
  settle_tables(most);
  return std::exchange(removed_, {});
}

bool OpenFlowPipeline::behind() const {
  return std::any_of(flow_tables_.begin(), flow_tables_.end(),
                     [](const auto& table) { return table && table->resting() != 0 && table->behind(); });
}

size_t OpenFlowPipeline::unsettled() const {
  size_t count = 0;
  for (const auto& table : flow_tables_)
    if (table) count += table->resting();
  return count;
}

Count OpenFlowPipeline::count_of(uint32_t number) const {
  Count count = entry_counters_.sum(number);
  const Count& base = entries_[number].base;
  count.packets -= base.packets;
  count.bytes -= base.bytes;
  return count;
}

void OpenFlowPipeline::use(uint32_t number) {
  const Program& program = *entries_[number].program;
  for (const uint32_t group : program.groups) groups_.find(group)->entries.insert(number);
  if (program.meter != 0) meters_.entries(program.meter).insert(number);
}

void OpenFlowPipeline::stop_using(uint32_t number) {
  Program* const program = entries_[number].program;
  for (const uint32_t group : program->groups) groups_.find(group)->entries.erase(number);
  if (program->meter != 0) meters_.entries(program->meter).erase(number);
  programs_.release(program);
  entries_[number].program = nullptr;
}

/// Gives an entry another program, which has been taken for it.
void OpenFlowPipeline::set_program(uint32_t number, Program* program) {
  before_change(nullptr);
  Program* const old = entries_[number].program;
  entries_[number].program = program;
  table(entries_[number].table)->program_changed(number);
  entries_[number].program = old;
  stop_using(number);
  entries_[number].program = program;
  use(number);
}

void OpenFlowPipeline::set_timer(uint32_t number, Time now) {
  constexpr Time kSecond = 1'000'000'000;
  FlowEntry& entry = entries_[number];
  Time due = kNoTime;
  if (entry.hard_timeout != 0) due = entry.created + entry.hard_timeout * kSecond;
  if (entry.idle_timeout != 0) due = std::min(due, now + entry.idle_timeout * kSecond);
  if (due == entry.due) return;
  if (entry.due != kNoTime) due_.erase({entry.due, number});
  if (due != kNoTime) due_.emplace(due, number);
  entry.due = due;
}

void OpenFlowPipeline::expire(Time now) {
  constexpr Time kSecond = 1'000'000'000;
  for (size_t left = kPiece; next_expiry() <= now && left > 0; --left) {
    const uint32_t number = due_.begin()->second;
    const FlowEntry& entry = entries_[number];
    if (entry.hard_timeout != 0 && now >= entry.created + entry.hard_timeout * kSecond) {
      remove_entry(number, FlowRemovedReason::kHardTimeout, now);
      continue;
    }
    const Time used = std::max(entry.created, entry_counters_.last(number));
    if (now >= used + entry.idle_timeout * kSecond) {
      remove_entry(number, FlowRemovedReason::kIdleTimeout, now);
    } else {
      set_timer(number, used);
    }
  }
  commit();
}

void OpenFlowPipeline::remove_entry(uint32_t number, FlowRemovedReason reason, Time now, bool silent) {
  FlowEntry& entry = entries_[number];
  FlowTable& table = *this->table(entry.table);
  if (!silent && (entry.flags & flow_flag::kSendFlowRemoved) != 0) {
    FlowRemoved message;
    message.match.key = table.match_of(number);
    message.match.exact_1_0 = entry.rank == kExactRank;
    message.cookie = entry.cookie;
    message.priority = entry.priority;
    message.reason = reason;
    message.table = entry.table;
    set_duration(message, now - entry.created);
    message.idle_timeout = entry.idle_timeout;
    message.hard_timeout = entry.hard_timeout;
    removing_.insert_or_assign(number, std::move(message));
  }
  before_change(&table);
  table.remove(number);
  stop_using(number);
  if (entry.due != kNoTime) due_.erase({entry.due, number});
  entry.due = kNoTime;
  entry.state = FlowEntry::State::kGone;
  --size_;
}

size_t OpenFlowPipeline::remove_some(const std::unordered_set<uint32_t>& numbers, size_t most, FlowRemovedReason reason,
                                     Time now) {
  size_t removed = 0;
  for (; removed < most && !numbers.empty(); ++removed) remove_entry(*numbers.begin(), reason, now);
  return removed;
}

ErrorCode OpenFlowPipeline::group_mod(const GroupMod& mod, Time now) {
  switch (mod.command) {
    case GroupCommand::kAdd:
      before_change(nullptr);
      return groups_.add(mod, switch_names_, program_names_, now);
    case GroupCommand::kModify:
      before_change(nullptr);
      return groups_.modify(mod, switch_names_, program_names_);
    case GroupCommand::kDelete: {
      Departure departure;
      const ErrorCode error = begin_departure(mod, departure);
      while (!departure.done()) go_on(departure, now);
      return error;
    }
  }
  return ErrorCode::kGroupModBadCommand;
}

ErrorCode OpenFlowPipeline::meter_mod(const MeterMod& mod, Time now) {
  switch (mod.command) {
    case MeterCommand::kAdd:
      return meters_.add(mod, now);
    case MeterCommand::kModify:
      return meters_.modify(mod);
    case MeterCommand::kDelete: {
      Departure departure;
      const ErrorCode error = begin_departure(mod, departure);
      while (!departure.done()) go_on(departure, now);
      return error;
    }
  }
  return ErrorCode::kMeterModBadCommand;
}

ErrorCode OpenFlowPipeline::begin_departure(const GroupMod& mod, Departure& departure) {
  std::vector<uint32_t> leaving;
  if (mod.group == group::kAll) {
    for (const auto& [number, group] : groups_.all()) leaving.push_back(number);
  } else if (mod.group > group::kMax) {
    return ErrorCode::kGroupModInvalidGroup;
  } else if (groups_.has(mod.group)) {
    if (const ErrorCode error = groups_.check_remove(mod.group); error != ErrorCode::kNone) return error;
    leaving.push_back(mod.group);
  }
  for (const uint32_t number : leaving) groups_.find(number)->leaving = true;
  departure.groups_ = std::move(leaving);
  return ErrorCode::kNone;
}

ErrorCode OpenFlowPipeline::begin_departure(const MeterMod& mod, Departure& departure) {
  std::vector<uint32_t> leaving;
  if (mod.meter == Meters::kAll) {
    leaving = meters_.numbers();
  } else if (mod.meter == 0 || mod.meter > Meters::kLastNumber) {
    return ErrorCode::kMeterModInvalidMeter;
  } else if (meters_.has(mod.meter)) {
    leaving.push_back(mod.meter);
  }
  for (const uint32_t number : leaving) meters_.leave(number);
  departure.meters_ = std::move(leaving);
  return ErrorCode::kNone;
}

void OpenFlowPipeline::go_on(Departure& departure, Time now) {
  const std::vector<uint32_t>& groups = departure.groups_;
  const std::vector<uint32_t>& meters = departure.meters_;
  const size_t all = groups.size() + meters.size();
  for (size_t left = kPiece; departure.next_ < all; ++departure.next_) {
    const size_t next = departure.next_;
    const bool is_group = next < groups.size();
    const std::unordered_set<uint32_t>& users =
        is_group ? groups_.find(groups[next])->entries : meters_.entries(meters[next - groups.size()]);
    // 1.3 has no reason of its own for meters.
    left -= remove_some(users, left, is_group ? FlowRemovedReason::kGroupDelete : FlowRemovedReason::kDelete, now);
    if (!users.empty()) return;
  }
  // No reader finds an entry that names a group that is not there.
  before_change(nullptr);
  for (const uint32_t number : std::exchange(departure.groups_, {})) groups_.remove(number);
  for (const uint32_t number : std::exchange(departure.meters_, {})) meters_.remove(number);
}

}  // namespace headrace::openflow
