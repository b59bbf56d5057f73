#pragma once
/// \file
/// Short forms of messages for tests of the pipeline.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/pipeline/pipeline.hh"

namespace headrace::openflow {

constexpr Time kSecond = 1'000'000'000;

inline PipelineOptions pipeline_options() {
  PipelineOptions options;
  options.ports = {1, 2, 3, 4, port::kLocal};
  options.most_entries = 100;
  options.most_words = 1u << 16;
  return options;
}

/// "tcp,nw_dst=10.0.0.1": words between commas.
inline Match match_of(const std::string& text) {
  Match match;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string bad = add_to_match(match.key, text.substr(at, end - at));
    if (!bad.empty()) throw std::invalid_argument(bad);
    at = end + 1;
  }
  return match;
}

inline PacketKey key_of(const std::string& text) {
  const Match match = match_of(text);
  PacketKey key;
  std::copy(match.key.value.begin(), match.key.value.end(), key.w);
  return key;
}

inline Action action(ActionType type, uint32_t value = 0, uint16_t number = 0) {
  Action action;
  action.type = type;
  action.value = value;
  action.number = number;
  return action;
}
inline Action output(uint32_t port, uint16_t max_len = 0) { return action(ActionType::kOutput, port, max_len); }
inline Action to_group(uint32_t group) { return action(ActionType::kGroup, group); }
inline Action set_field(const char* name, uint64_t low, uint64_t high = 0) {
  Action set = action(ActionType::kSetField);
  set.field = find_key_field(name)->oxm;
  set.set = {high, low};
  return set;
}

inline Instruction apply(std::vector<Action> actions) {
  Instruction instruction;
  instruction.actions = std::move(actions);
  return instruction;
}
inline Instruction write(std::vector<Action> actions) {
  Instruction instruction = apply(std::move(actions));
  instruction.type = InstructionType::kWriteActions;
  return instruction;
}
inline Instruction go_to(uint8_t table) {
  Instruction instruction;
  instruction.type = InstructionType::kGotoTable;
  instruction.table = table;
  return instruction;
}
inline Instruction through_meter(uint32_t meter) {
  Instruction instruction;
  instruction.type = InstructionType::kMeter;
  instruction.meter = meter;
  return instruction;
}

inline FlowMod flow(FlowCommand command, const std::string& match, uint16_t priority,
                    std::vector<Instruction> instructions = {}) {
  FlowMod mod;
  mod.command = command;
  mod.match = match_of(match);
  mod.priority = priority;
  mod.instructions = std::move(instructions);
  return mod;
}

inline GroupMod group(GroupCommand command, uint32_t number, GroupType type = GroupType::kAll,
                      std::vector<std::vector<Action>> buckets = {}) {
  GroupMod mod;
  mod.command = command;
  mod.group = number;
  mod.type = type;
  for (std::vector<Action>& actions : buckets) {
    mod.buckets.emplace_back().actions = std::move(actions);
    if (type == GroupType::kSelect) mod.buckets.back().weight = 1;
  }
  return mod;
}

inline MeterMod meter(MeterCommand command, uint32_t number, uint16_t flags = meter_flag::kKbps,
                      std::vector<MeterBand> bands = {}) {
  MeterMod mod;
  mod.command = command;
  mod.meter = number;
  mod.flags = flags;
  mod.bands = std::move(bands);
  return mod;
}

inline std::vector<FlowStats> all_flows(const OpenFlowPipeline& pipeline, Time now = 0) {
  std::vector<FlowStats> stats;
  uint32_t cursor = 0;
  while (pipeline.flow_stats({}, now, cursor, 100, stats)) {
  }
  return stats;
}

}  // namespace headrace::openflow
