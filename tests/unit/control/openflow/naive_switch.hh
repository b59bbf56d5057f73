#pragma once
/// \file
/// A switch as lists that are gone through one by one, written from the specifications: for tests of OpenFlowPipeline.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/openflow/errors.hh"
#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"

namespace headrace::openflow {

class NaiveSwitch {
 public:
  struct Entry {
    FlowMod mod;  // what made it
    bool exact = false;
    std::vector<Instruction> instructions;
    uint64_t cookie = 0;
    int64_t created = 0, used = 0;
    uint64_t packets = 0, bytes = 0;
  };

  std::set<uint32_t> ports;
  size_t most_entries = 0;
  std::vector<Entry> entries;
  std::map<uint32_t, GroupMod> groups;
  std::set<uint32_t> meters;
  std::vector<FlowRemoved> removed;

  ErrorCode flow_mod(const FlowMod& mod, Version version, int64_t now) {
    const bool old = version == Version::k1_0;
    if (mod.command == FlowCommand::kDelete || mod.command == FlowCommand::kDeleteStrict) {
      for (const size_t i : named(mod, version)) remove(i, FlowRemovedReason::kDelete, now);
      sweep();
      return ErrorCode::kNone;
    }
    if (!old && mod.table == 255) return ErrorCode::kFlowModBadTableId;
    if (const ErrorCode error = check(mod.instructions, old ? 0 : mod.table); error != ErrorCode::kNone) return error;
    if (mod.command != FlowCommand::kAdd) {
      const std::vector<size_t> which = named(mod, version);
      for (const size_t i : which) {
        entries[i].instructions = mod.instructions;
        if (old) entries[i].cookie = mod.cookie;
        if ((mod.flags & flow_flag::kResetCounts) != 0) entries[i].packets = entries[i].bytes = 0;
      }
      if (!which.empty() || !old) return ErrorCode::kNone;
    }
    return add(mod, version, now);
  }

  ErrorCode group_mod(const GroupMod& mod, int64_t now) {
    if (mod.command == GroupCommand::kDelete) {
      std::set<uint32_t> which;
      for (const auto& [number, group] : groups)
        if (mod.group == group::kAll || mod.group == number) which.insert(number);
      if (mod.group != group::kAll)
        for (const auto& [number, group] : groups)
          if (number != mod.group && targets(group).contains(mod.group) && which.contains(mod.group))
            return ErrorCode::kGroupModChainedGroup;
      for (const uint32_t number : which) {
        for (size_t i = 0; i < entries.size(); ++i)
          if (names_group(entries[i], number)) remove(i, FlowRemovedReason::kGroupDelete, now);
        sweep();
        groups.erase(number);
      }
      return ErrorCode::kNone;
    }
    const bool there = groups.contains(mod.group);
    if (mod.command == GroupCommand::kAdd && there) return ErrorCode::kGroupModGroupExists;
    if (mod.command == GroupCommand::kModify && !there) return ErrorCode::kGroupModUnknownGroup;
    if (mod.type == GroupType::kIndirect && mod.buckets.size() != 1) return ErrorCode::kGroupModInvalidGroup;
    for (const Bucket& bucket : mod.buckets) {
      for (const Action& action : bucket.actions)
        if (action.type == ActionType::kGroup && action.value == mod.group) return ErrorCode::kGroupModLoop;
      if (const ErrorCode error = check_actions_of(bucket.actions); error != ErrorCode::kNone) return error;
    }
    std::set<uint32_t> reached = targets(mod);
    for (bool more = true; more;) {
      more = false;
      for (const uint32_t number : std::set<uint32_t>(reached))
        for (const uint32_t next : number == mod.group ? std::set<uint32_t>() : targets(groups.at(number)))
          more |= reached.insert(next).second;
    }
    if (reached.contains(mod.group)) return ErrorCode::kGroupModLoop;
    groups[mod.group] = mod;
    return ErrorCode::kNone;
  }

  void expire(int64_t now) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      const int64_t second = 1'000'000'000;
      if (entry.mod.hard_timeout != 0 && now >= entry.created + entry.mod.hard_timeout * second) {
        remove(i, FlowRemovedReason::kHardTimeout, now);
      } else if (entry.mod.idle_timeout != 0 && now >= entry.used + entry.mod.idle_timeout * second) {
        remove(i, FlowRemovedReason::kIdleTimeout, now);
      }
    }
    sweep();
  }

  /// The entries of the best rank for a key; more than one: the specifications do not say which.
  std::vector<size_t> find(uint8_t table, const PacketKey& key) const {
    std::vector<size_t> best;
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (entry.mod.table != table || !matches(entry.mod.match.key, key)) continue;
      if (!best.empty() && rank(entries[best[0]]) > rank(entry)) continue;
      if (!best.empty() && rank(entries[best[0]]) < rank(entry)) best.clear();
      best.push_back(i);
    }
    return best;
  }

  FlowStats stats(const Entry& entry, int64_t now) const {
    FlowStats stats;
    stats.table = entry.mod.table;
    stats.duration_s = static_cast<uint32_t>((now - entry.created) / 1'000'000'000);
    stats.duration_ns = static_cast<uint32_t>((now - entry.created) % 1'000'000'000);
    stats.priority = entry.mod.priority;
    stats.idle_timeout = entry.mod.idle_timeout;
    stats.hard_timeout = entry.mod.hard_timeout;
    stats.flags = entry.mod.flags;
    stats.cookie = entry.cookie;
    stats.packets = entry.packets;
    stats.bytes = entry.bytes;
    stats.match.key = entry.mod.match.key;
    stats.match.exact_1_0 = entry.exact;
    stats.instructions = entry.instructions;
    return stats;
  }

  static bool within(const KeyMatch& part, const KeyMatch& whole) {
    for (const KeyField& field : key_fields()) {
      const KeyValue pm = get_key_field(part.mask, field), wm = get_key_field(whole.mask, field);
      const KeyValue pv = get_key_field(part.value, field), wv = get_key_field(whole.value, field);
      if ((wm.low & ~pm.low) != 0 || (wm.high & ~pm.high) != 0) return false;
      if (((pv.low ^ wv.low) & wm.low) != 0 || ((pv.high ^ wv.high) & wm.high) != 0) return false;
    }
    return true;
  }
  static bool outputs_to(const Entry& entry, uint32_t port) { return has(entry, ActionType::kOutput, port); }
  static bool names_group(const Entry& entry, uint32_t group) { return has(entry, ActionType::kGroup, group); }

 private:
  static bool has(const Entry& entry, ActionType type, uint32_t value) {
    for (const Instruction& instruction : entry.instructions)
      for (const Action& action : instruction.actions)
        if (action.type == type && action.value == value) return true;
    return false;
  }
  static bool matches(const KeyMatch& match, const PacketKey& key) {
    for (uint32_t i = 0; i < key_word::kCount; ++i)
      if ((key.w[i] & match.mask[i]) != match.value[i]) return false;
    return true;
  }
  static uint32_t rank(const Entry& entry) { return entry.exact ? 65536 : entry.mod.priority; }
  static std::set<uint32_t> targets(const GroupMod& mod) {
    std::set<uint32_t> all;
    for (const Bucket& bucket : mod.buckets)
      for (const Action& action : bucket.actions)
        if (action.type == ActionType::kGroup) all.insert(action.value);
    return all;
  }

  ErrorCode check_actions_of(const std::vector<Action>& actions) const {
    for (const Action& action : actions) {
      if (action.type == ActionType::kOutput && action.value < port::kMax && !ports.contains(action.value))
        return ErrorCode::kActionBadOutPort;
      if (action.type == ActionType::kGroup && !groups.contains(action.value)) return ErrorCode::kActionBadOutGroup;
    }
    return ErrorCode::kNone;
  }
  ErrorCode check(const std::vector<Instruction>& instructions, uint8_t table) const {
    for (const Instruction& instruction : instructions) {
      if (instruction.type == InstructionType::kGotoTable && instruction.table <= table)
        return ErrorCode::kInstructionBadTableId;
      if (instruction.type == InstructionType::kMeter && !meters.contains(instruction.meter))
        return ErrorCode::kMeterModInvalidMeter;
      if (const ErrorCode error = check_actions_of(instruction.actions); error != ErrorCode::kNone) return error;
    }
    return ErrorCode::kNone;
  }

  /// Whether a message of this version names an entry by match and priority.
  static bool same(const FlowMod& mod, Version version, const Entry& entry) {
    if (mod.match.key != entry.mod.match.key) return false;
    if (mod.match.exact_1_0 && entry.exact) return true;  // the priority says nothing
    if (mod.match.exact_1_0 || entry.exact)
      return (version == Version::k1_3 || mod.match.exact_1_0) && mod.priority == entry.mod.priority;
    return mod.priority == entry.mod.priority;
  }

  std::vector<size_t> named(const FlowMod& mod, Version version) const {
    const bool old = version == Version::k1_0;
    const bool strict = mod.command == FlowCommand::kModifyStrict || mod.command == FlowCommand::kDeleteStrict;
    const bool removes = mod.command == FlowCommand::kDelete || mod.command == FlowCommand::kDeleteStrict;
    std::vector<size_t> all;
    std::map<uint8_t, size_t> exact_of;  // a strict message names one entry of a table
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (!old && mod.table != 255 && mod.table != entry.mod.table) continue;
      if (strict ? !same(mod, version, entry) : !within(entry.mod.match.key, mod.match.key)) continue;
      if (strict) {
        // Of two, that of its own kind.
        const auto [at, first] = exact_of.emplace(entry.mod.table, i);
        if (!first && entry.exact == mod.match.exact_1_0) at->second = i;
        continue;
      }
      all.push_back(i);
    }
    for (const auto& [table, i] : exact_of) all.push_back(i);
    std::erase_if(all, [&](size_t i) {
      const Entry& entry = entries[i];
      if (!old && ((entry.cookie ^ mod.cookie) & mod.cookie_mask) != 0) return true;
      if (removes && mod.out_port != port::kAny && !outputs_to(entry, mod.out_port)) return true;
      return removes && !old && mod.out_group != group::kAny && !names_group(entry, mod.out_group);
    });
    return all;
  }

  static bool overlap(const KeyMatch& a, const KeyMatch& b) {
    for (uint32_t i = 0; i < key_word::kCount; ++i)
      if (((a.value[i] ^ b.value[i]) & a.mask[i] & b.mask[i]) != 0) return false;
    return true;
  }

  ErrorCode add(const FlowMod& mod, Version version, int64_t now) {
    const bool old = version == Version::k1_0;
    Entry made;
    made.mod = mod;
    if (old) made.mod.table = 0;
    made.exact = mod.match.exact_1_0;
    made.instructions = mod.instructions;
    made.cookie = mod.cookie;
    made.created = made.used = now;
    size_t in_table = 0;
    std::optional<size_t> equal;
    bool overlaps = false;
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (entry.mod.table != made.mod.table) continue;
      ++in_table;
      overlaps |= rank(entry) == rank(made) && overlap(entry.mod.match.key, mod.match.key);
      if (same(mod, version, entry) && (!equal || entry.exact == made.exact)) equal = i;
    }
    if ((mod.flags & flow_flag::kCheckOverlap) != 0 && overlaps) return ErrorCode::kFlowModOverlap;
    if (!equal && in_table >= most_entries) return ErrorCode::kFlowModTableFull;
    if (equal) {
      if (!old && (mod.flags & flow_flag::kResetCounts) == 0) {
        made.packets = entries[*equal].packets;
        made.bytes = entries[*equal].bytes;
      }
      entries[*equal] = made;
    } else {
      entries.push_back(made);
    }
    return ErrorCode::kNone;
  }

  void remove(size_t i, FlowRemovedReason reason, int64_t now) {
    if (gone_.contains(i)) return;
    gone_.insert(i);
    const Entry& entry = entries[i];
    if ((entry.mod.flags & flow_flag::kSendFlowRemoved) == 0) return;
    FlowRemoved message;
    message.match.key = entry.mod.match.key;
    message.match.exact_1_0 = entry.exact;
    message.cookie = entry.cookie;
    message.priority = entry.mod.priority;
    message.reason = reason;
    message.table = entry.mod.table;
    message.duration_s = static_cast<uint32_t>((now - entry.created) / 1'000'000'000);
    message.duration_ns = static_cast<uint32_t>((now - entry.created) % 1'000'000'000);
    message.idle_timeout = entry.mod.idle_timeout;
    message.hard_timeout = entry.mod.hard_timeout;
    message.packets = entry.packets;
    message.bytes = entry.bytes;
    removed.push_back(message);
  }
  void sweep() {
    for (auto i = gone_.rbegin(); i != gone_.rend(); ++i) entries.erase(entries.begin() + static_cast<long>(*i));
    gone_.clear();
  }

  std::set<size_t> gone_;
};

}  // namespace headrace::openflow
