#pragma once
/// \file
/// Random messages of both versions and random packets for a switch of three ports, and entries as text.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "tables/key/key_fields.hh"
#include "tables/key/key_match.hh"

namespace headrace::openflow {

inline constexpr int kTablesUsed = 3;

/// Random messages and keys from so few values that they often meet.
class PipelineDice {
 public:
  explicit PipelineDice(std::function<uint32_t()> draw) : draw_(std::move(draw)) {}

  uint32_t below(uint32_t n) { return draw_() % n; }
  bool one_in(uint32_t n) { return below(n) == 0; }

  static void set(KeyMatch& match, const char* name, uint64_t value, uint64_t mask) {
    const KeyField& field = *find_key_field(name);
    set_key_field(match.value, field, {0, value & mask});
    set_key_field(match.mask, field, {0, mask});
  }

  Match match(Version version) {
    Match match;
    KeyMatch& key = match.key;
    if (one_in(version == Version::k1_0 ? 3 : 8)) {
      // All fields of 1.0, as far as such packets have them. 1.3 says the same with a priority.
      match.exact_1_0 = version == Version::k1_0;
      set(key, "in_port", 1 + below(2), ~0u);
      set(key, "dl_src", below(2), 0xffffffffffff);
      set(key, "dl_dst", below(2), 0xffffffffffff);
      set(key, "vlan_vid", 0, 0x1fff);
      set(key, "dl_type", 0x800, 0xffff);
      set(key, "ip_dscp", 0, 0x3f);
      set(key, "nw_proto", 6, 0xff);
      set(key, "nw_src", 0x0a000000 + below(2), ~0u);
      set(key, "nw_dst", 0x0b000000 + below(2), ~0u);
      set(key, "tcp_src", 1, 0xffff);
      set(key, "tcp_dst", 80 + below(2), 0xffff);
      return match;
    }
    if (one_in(2)) set(key, "in_port", 1 + below(2), ~0u);
    if (one_in(4)) set(key, "dl_dst", below(2), 0xffffffffffff);
    if (version == Version::k1_3 && one_in(6)) set(key, "metadata", below(2), 3);
    if (version == Version::k1_3 && one_in(8)) {
      set(key, "dl_type", 0x86dd, 0xffff);
      if (one_in(2)) set_ip6(key);
      return match;
    }
    if (one_in(3)) return match;
    set(key, "dl_type", 0x800, 0xffff);
    static constexpr uint32_t kMasks[] = {0, 0xff000000, 0xfffffffe, 0xffffffff};
    set(key, "nw_src", 0x0a000000 + below(2), kMasks[below(4)]);
    set(key, "nw_dst", 0x0b000000 + below(2), kMasks[below(4)]);
    if (one_in(2)) {
      set(key, "nw_proto", 6, 0xff);
      if (one_in(2)) set(key, "tcp_dst", 80 + below(2), 0xffff);
    }
    return match;
  }

  PacketKey key() {
    KeyMatch key;
    set(key, "in_port", 1 + below(2), ~0u);
    set(key, "dl_src", below(2), 0xffffffffffff);
    set(key, "dl_dst", below(2), 0xffffffffffff);
    set(key, "metadata", below(4), ~uint64_t{0});
    if (one_in(5)) {
      set(key, "dl_type", 0x86dd, 0xffff);
      set_ip6(key);
    } else {
      set(key, "dl_type", 0x800, 0xffff);
      set(key, "nw_src", 0x0a000000 + below(3), ~0u);
      set(key, "nw_dst", 0x0b000000 + below(3), ~0u);
      set(key, "nw_proto", one_in(4) ? 17 : 6, 0xff);
      set(key, "tcp_src", 1, 0xffff);
      set(key, "tcp_dst", 80 + below(2), 0xffff);
    }
    PacketKey result;
    std::copy(key.value.begin(), key.value.end(), result.w);
    return result;
  }

  std::vector<Action> actions(bool with_groups) {
    std::vector<Action> list(below(3));
    for (Action& action : list) {
      if (with_groups && one_in(4)) {
        action.type = ActionType::kGroup;
        action.value = below(5);
      } else if (one_in(4)) {
        action.type = ActionType::kSetField;
        action.field = 3;
        action.set.low = below(2);
      } else {
        action.value = one_in(30) ? 99 : one_in(6) ? port::kController : 1 + below(3);
        action.number = static_cast<uint16_t>(below(3));
      }
    }
    return list;
  }

  std::vector<Instruction> instructions(Version version, uint8_t table) {
    std::vector<Instruction> list;
    if (version == Version::k1_0) {
      if (one_in(5)) return list;
      list.emplace_back().actions = actions(false);
      return list;
    }
    if (one_in(12)) {
      list.emplace_back().type = InstructionType::kMeter;
      list.back().meter = 1 + below(2);
    }
    if (!one_in(3)) list.emplace_back().actions = actions(true);
    if (one_in(6)) {
      list.emplace_back().type = InstructionType::kWriteActions;
      list.back().actions = actions(true);
    }
    if (one_in(6)) {
      list.emplace_back().type = InstructionType::kWriteMetadata;
      list.back().metadata = below(4);
      list.back().metadata_mask = 3;
    }
    if (one_in(4)) {
      list.emplace_back().type = InstructionType::kGotoTable;
      list.back().table = one_in(10) ? table : static_cast<uint8_t>(table + 1);
    }
    return list;
  }

  FlowMod flow_mod(Version version) {
    FlowMod mod;
    mod.command = one_in(3) ? static_cast<FlowCommand>(below(5)) : FlowCommand::kAdd;
    const bool removes = mod.command == FlowCommand::kDelete || mod.command == FlowCommand::kDeleteStrict;
    if (version == Version::k1_3) {
      mod.table = static_cast<uint8_t>(one_in(20) ? 255 : below(kTablesUsed));
      if (one_in(3)) mod.cookie_mask = below(4);
      if (one_in(4)) mod.flags |= flow_flag::kResetCounts;
    }
    mod.cookie = below(4);
    mod.match = match(version);
    mod.priority = static_cast<uint16_t>(10 + below(3));
    if (one_in(4)) mod.flags |= flow_flag::kSendFlowRemoved;
    if (one_in(6)) mod.flags |= flow_flag::kCheckOverlap;
    if (one_in(8)) mod.idle_timeout = static_cast<uint16_t>(1 + below(3));
    if (one_in(8)) mod.hard_timeout = static_cast<uint16_t>(1 + below(5));
    if (removes && one_in(3)) mod.out_port = 1 + below(3);
    // Otherwise they would often empty all tables.
    if (mod.command == FlowCommand::kDelete && mod.match.key.mask == KeyMatch().mask) mod.cookie_mask = 3;
    if (removes && version == Version::k1_3 && one_in(5)) mod.out_group = below(5);
    if (!removes) mod.instructions = instructions(version, mod.table);
    return mod;
  }

  GroupMod group_mod() {
    GroupMod mod;
    mod.command = static_cast<GroupCommand>(below(3));
    mod.group = mod.command == GroupCommand::kDelete && one_in(8) ? group::kAll : below(5);
    mod.type = one_in(2) ? GroupType::kAll : one_in(2) ? GroupType::kSelect : GroupType::kIndirect;
    mod.buckets.resize(mod.type == GroupType::kIndirect ? 1 + below(10) / 9 : below(3));
    for (Bucket& bucket : mod.buckets) {
      bucket.actions = actions(true);
      if (mod.type == GroupType::kSelect) bucket.weight = static_cast<uint16_t>(1 + below(3));
    }
    return mod;
  }

 private:
  void set_ip6(KeyMatch& key) {
    const KeyField& field = *find_key_field("ipv6_dst");
    set_key_field(key.value, field, {uint64_t{0x20010db8} << 32, below(2)});
    set_key_field(key.mask, field, key_field_ones(field));
  }

  const std::function<uint32_t()> draw_;
};

inline std::string flow_text(const FlowStats& s) {
  std::string text = std::to_string(s.table) + "," + std::to_string(s.priority) + "," +
                     (s.match.exact_1_0 ? "exact," : "") + unparse_match(s.match.key);
  for (const uint64_t number : {uint64_t{s.duration_s}, uint64_t{s.duration_ns}, uint64_t{s.idle_timeout},
                                uint64_t{s.hard_timeout}, s.flags, s.cookie, s.packets, s.bytes})
    text += " " + std::to_string(number);
  for (const Instruction& instruction : s.instructions) {
    text += " i" + std::to_string(static_cast<int>(instruction.type)) + ":" + std::to_string(instruction.table) + ":" +
            std::to_string(instruction.metadata);
    for (const Action& action : instruction.actions)
      text += " a" + std::to_string(static_cast<int>(action.type)) + ":" + std::to_string(action.value) + ":" +
              std::to_string(action.number) + ":" + std::to_string(action.set.low);
  }
  return text;
}

inline std::string removed_text(const FlowRemoved& r) {
  FlowStats s;
  s.table = r.table;
  s.priority = r.priority;
  s.match = r.match;
  s.duration_s = r.duration_s;
  s.duration_ns = r.duration_ns;
  s.idle_timeout = r.idle_timeout;
  s.hard_timeout = r.hard_timeout;
  s.cookie = r.cookie;
  s.packets = r.packets;
  s.bytes = r.bytes;
  return flow_text(s) + " reason " + std::to_string(static_cast<int>(r.reason));
}

}  // namespace headrace::openflow
