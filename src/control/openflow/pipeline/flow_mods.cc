/// \file
/// Flow-mods of both versions: ONF TS-023, section 6.4, and OpenFlow 1.0.0, section 4.6.

#include <algorithm>
#include <new>
#include <utility>

#include "control/openflow/consistency.hh"
#include "control/openflow/pipeline/pipeline.hh"

namespace headrace::openflow {

namespace {

bool is_1_0(Version version) { return version == Version::k1_0; }

uint32_t rank_of(const FlowMod& mod) { return mod.match.exact_1_0 ? kExactRank : mod.priority; }

/// A match whose value has no bits beside its mask.
KeyMatch masked(const KeyMatch& match) {
  KeyMatch result = match;
  for (uint32_t i = 0; i < key_word::kCount; ++i) result.value[i] &= result.mask[i];
  return result;
}

/// Flags that an entry keeps.
constexpr uint64_t kEntryFlags = flow_flag::kSendFlowRemoved | flow_flag::kCheckOverlap | flow_flag::kResetCounts |
                                 flow_flag::kNoPacketCounts | flow_flag::kNoByteCounts;

}  // namespace

ErrorCode OpenFlowPipeline::flow_mod(const FlowMod& mod, Version version, Time now) {
  try {
    switch (mod.command) {
      case FlowCommand::kAdd:
        return add(mod, version, now);
      case FlowCommand::kModify:
      case FlowCommand::kModifyStrict: {
        Modification modification;
        const ErrorCode error = begin_modification(mod, version, now, modification);
        while (!modification.done()) go_on(modification);
        return error;
      }
      case FlowCommand::kDelete:
      case FlowCommand::kDeleteStrict: {
        Removal removal;
        const ErrorCode error = begin_removal(mod, version, removal);
        while (!removal.done()) go_on(removal, now);
        return error;
      }
    }
  } catch (const std::bad_alloc&) {
    return ErrorCode::kFlowModTableFull;
  }
  return ErrorCode::kFlowModBadCommand;
}

/// What an addition or a modification must fulfill.
ErrorCode OpenFlowPipeline::check(const FlowMod& mod, Version version) const {
  const uint8_t table = is_1_0(version) ? 0 : mod.table;
  if (!configs_.has(table)) return ErrorCode::kFlowModBadTableId;
  if ((mod.flags & flow_flag::kEmergency10) != 0)
    // There is no emergency flow cache: it is always full.
    return mod.idle_timeout != 0 || mod.hard_timeout != 0 ? ErrorCode::kFlowModBadTimeout
                                                          : ErrorCode::kFlowModTableFull;
  if ((mod.flags & ~kEntryFlags) != 0) return ErrorCode::kFlowModBadFlags;
  if (const ErrorCode error = check_instructions(mod.instructions, table, switch_names_); error != ErrorCode::kNone)
    return error;
  return is_1_0(version) ? ErrorCode::kNone : check_consistency(mod.match.key, mod.instructions);
}

bool OpenFlowPipeline::tables_of(uint8_t table, Version version, uint32_t& first, uint32_t& last) const {
  first = 0;
  last = kMostTables - 1;
  if (is_1_0(version) || table == kAllTables) return true;
  first = last = table;
  return configs_.has(table);
}

uint32_t OpenFlowPipeline::find(const FlowTable& table, const FlowMod& mod, Version version) const {
  const KeyMatch match = masked(mod.match.key);
  const uint32_t number = table.find(match, rank_of(mod));
  if (number != FlowTable::kNone) return number;
  // An entry that is exact in 1.0 has a priority for 1.3, and the reverse.
  if (mod.match.exact_1_0) return table.find(match, mod.priority);
  const uint32_t exact = is_1_0(version) ? FlowTable::kNone : table.find(match, kExactRank);
  return exact != FlowTable::kNone && entries_[exact].priority == mod.priority ? exact : FlowTable::kNone;
}

void OpenFlowPipeline::each_named(const FlowMod& mod, Version version, bool strict, const Visit& visit) const {
  uint32_t first, last;
  if (!tables_of(mod.table, version, first, last)) return;
  const bool filters = mod.command == FlowCommand::kDelete || mod.command == FlowCommand::kDeleteStrict;
  const auto filtered = [&](uint32_t number) {
    const FlowEntry& entry = entries_[number];
    if (!is_1_0(version) && ((entry.cookie ^ mod.cookie) & mod.cookie_mask) != 0) return;
    if (filters && mod.out_port != port::kAny && !entry.program->outputs_to(mod.out_port)) return;
    if (filters && !is_1_0(version) && mod.out_group != group::kAny && !entry.program->names_group(mod.out_group))
      return;
    visit(number);
  };
  for (uint32_t i = first; i <= last; ++i) {
    const FlowTable* const table = this->table(i);
    if (table == nullptr) continue;
    if (!strict) {
      table->each_within(masked(mod.match.key), filtered);
    } else if (const uint32_t number = find(*table, mod, version); number != FlowTable::kNone) {
      filtered(number);
    }
  }
}

ErrorCode OpenFlowPipeline::add(const FlowMod& mod, Version version, Time now) {
  if (const ErrorCode error = check(mod, version); error != ErrorCode::kNone) return error;
  const uint8_t table_number = is_1_0(version) ? 0 : mod.table;
  FlowTable& table = make_table(table_number);
  const KeyMatch match = masked(mod.match.key);
  const uint32_t rank = rank_of(mod);
  if ((mod.flags & flow_flag::kCheckOverlap) != 0 && table.overlaps(match, rank)) return ErrorCode::kFlowModOverlap;
  const uint32_t same = find(table, mod, version);
  if (same == FlowTable::kNone && table.size() >= configs_.most_entries(table_number))
    return ErrorCode::kFlowModTableFull;
  // Before a packet can meet it.
  if (mod.idle_timeout != 0) entry_counters_.keep_times();
  const bool is_miss = !is_1_0(version) && mod.priority == 0 && match == KeyMatch();
  Program* program = nullptr;
  if (const ErrorCode error = programs_.take(mod.instructions, is_miss ? ProgramUser::kTableMiss : ProgramUser::kEntry,
                                             program_names_, program);
      error != ErrorCode::kNone)
    return error;

  uint32_t number = same;
  Count base;
  if (same != FlowTable::kNone) {
    // Only 1.3 can keep what the entry has counted.
    const bool reset = is_1_0(version) || (mod.flags & flow_flag::kResetCounts) != 0;
    base = reset ? entry_counters_.sum(same) : entries_[same].base;
  }
  if (same != FlowTable::kNone && entries_[same].rank == rank) {
    set_program(number, program);
  } else {
    try {
      number = take_number();
    } catch (const std::bad_alloc&) {
      programs_.release(program);
      throw;
    }
    FlowEntry& entry = entries_[number];
    entry.rank = rank;
    entry.program = program;
    before_change(&table);
    try {
      table.insert(number, match);
    } catch (const std::bad_alloc&) {
      entry = {};
      free_numbers_.push_back(number);
      programs_.release(program);
      throw;
    }
    entry.state = FlowEntry::State::kThere;
    entry.table = table_number;
    use(number);
    ++size_;
    if (same != FlowTable::kNone) {
      // Counts go on under another number.
      const Count counted = count_of(same);
      const bool reset = is_1_0(version) || (mod.flags & flow_flag::kResetCounts) != 0;
      base = {};
      if (!reset) {
        base.packets -= counted.packets;
        base.bytes -= counted.bytes;
      }
      remove_entry(same, FlowRemovedReason::kDelete, now, true);
    }
  }
  FlowEntry& entry = entries_[number];
  entry.priority = mod.priority;
  entry.idle_timeout = mod.idle_timeout;
  entry.hard_timeout = mod.hard_timeout;
  entry.flags = mod.flags & kEntryFlags;
  entry.cookie = mod.cookie;
  entry.serial = ++additions_;
  entry.created = now;
  entry.base = base;
  set_timer(number, now);
  return ErrorCode::kNone;
}

ErrorCode OpenFlowPipeline::begin_modification(const FlowMod& mod, Version version, Time now,
                                               Modification& modification) {
  if (const ErrorCode error = check(mod, version); error != ErrorCode::kNone) return error;
  std::vector<std::pair<uint32_t, uint64_t>> named;
  bool any_entry = false, any_miss = false;
  each_named(mod, version, mod.command == FlowCommand::kModifyStrict, [&](uint32_t number) {
    named.emplace_back(number, entries_[number].serial);
    const bool is_miss = entries_[number].program->user == ProgramUser::kTableMiss;
    any_miss |= is_miss;
    any_entry |= !is_miss;
  });
  if (named.empty()) return is_1_0(version) ? add(mod, version, now) : ErrorCode::kNone;
  // With these there, nothing can fail.
  ErrorCode error = ErrorCode::kNone;
  if (any_entry)
    error = programs_.take(mod.instructions, ProgramUser::kEntry, program_names_, modification.for_entries_);
  if (any_miss && error == ErrorCode::kNone)
    error = programs_.take(mod.instructions, ProgramUser::kTableMiss, program_names_, modification.for_misses_);
  if (error != ErrorCode::kNone) {
    release_programs(modification);
    return error;
  }
  modification.order_ = ++modifications_;
  if (is_1_0(version)) modification.cookie_ = mod.cookie;
  modification.resets_counts_ = (mod.flags & flow_flag::kResetCounts) != 0;
  modification.entries_ = std::move(named);
  return ErrorCode::kNone;
}

void OpenFlowPipeline::go_on(Modification& modification) {
  const size_t end = std::min(modification.next_ + kPiece, modification.entries_.size());
  for (; modification.next_ < end; ++modification.next_) {
    const auto [number, serial] = modification.entries_[modification.next_];
    FlowEntry& entry = entries_[number];
    if (entry.state != FlowEntry::State::kThere || entry.serial != serial || entry.modified > modification.order_)
      continue;
    const bool is_miss = entry.program->user == ProgramUser::kTableMiss;
    set_program(number, Programs::take_again(is_miss ? modification.for_misses_ : modification.for_entries_));
    entry.modified = modification.order_;
    if (modification.cookie_) entry.cookie = *modification.cookie_;
    if (modification.resets_counts_) entry.base = entry_counters_.sum(number);
  }
  if (modification.done()) release_programs(modification);
}

void OpenFlowPipeline::release_programs(Modification& modification) {
  for (Program** const program : {&modification.for_entries_, &modification.for_misses_})
    if (*program != nullptr) programs_.release(std::exchange(*program, nullptr));
}

ErrorCode OpenFlowPipeline::begin_removal(const FlowMod& mod, Version version, Removal& removal) const {
  uint32_t first, last;
  if (!tables_of(mod.table, version, first, last)) return ErrorCode::kFlowModBadTableId;
  each_named(mod, version, mod.command == FlowCommand::kDeleteStrict,
             [&](uint32_t number) { removal.entries_.emplace_back(number, entries_[number].serial); });
  return ErrorCode::kNone;
}

void OpenFlowPipeline::go_on(Removal& removal, Time now) {
  const size_t end = std::min(removal.next_ + kPiece, removal.entries_.size());
  for (; removal.next_ < end; ++removal.next_) {
    const auto [number, serial] = removal.entries_[removal.next_];
    const FlowEntry& entry = entries_[number];
    if (entry.state == FlowEntry::State::kThere && entry.serial == serial)
      remove_entry(number, FlowRemovedReason::kDelete, now);
  }
}

}  // namespace headrace::openflow
