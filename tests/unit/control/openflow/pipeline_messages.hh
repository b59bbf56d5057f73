#pragma once
/// \file
/// Short forms of messages for tests of the pipeline.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "control/openflow/pipeline/pipeline.hh"
#include "sample_messages.hh"

namespace headrace::openflow::samples {

constexpr Time kSecond = 1'000'000'000;

inline PipelineOptions pipeline_options() {
  PipelineOptions options;
  options.ports = {1, 2, 3, 4, port::kLocal};
  options.most_entries = 100;
  options.most_words = 1u << 16;
  return options;
}

inline PacketKey packet_key_of(const std::string& text) {
  const Match match = match_of(text);
  PacketKey key;
  std::copy(match.key.value.begin(), match.key.value.end(), key.w);
  return key;
}

inline Action to_group(uint32_t group) { return action(ActionType::kGroup, group); }

inline Instruction write(std::vector<Action> actions) {
  Instruction instruction = apply(std::move(actions));
  instruction.type = InstructionType::kWriteActions;
  return instruction;
}
inline Instruction go_to(uint8_t table) {
  Instruction instruction = samples::instruction(InstructionType::kGotoTable);
  instruction.table = table;
  return instruction;
}
inline Instruction through_meter(uint32_t meter) {
  Instruction instruction = samples::instruction(InstructionType::kMeter);
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

inline GroupMod change_group(GroupCommand command, uint32_t number, GroupType type = GroupType::kAll,
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

inline MeterMod change_meter(MeterCommand command, uint32_t number, uint16_t flags = meter_flag::kKbps,
                             std::vector<MeterBand> bands = {}) {
  MeterMod mod;
  mod.command = command;
  mod.meter = number;
  mod.flags = flags;
  mod.bands = std::move(bands);
  return mod;
}

inline AggregateStats sum_of(const OpenFlowPipeline& pipeline, const FlowRequest<MultipartType::kAggregate>& request) {
  OpenFlowPipeline::AggregateWalk walk{request, 0, {}};
  while (pipeline.aggregate(walk)) {
  }
  return walk.stats;
}

inline std::vector<TableStats> all_tables(OpenFlowPipeline& pipeline) {
  OpenFlowPipeline::TableWalk walk(pipeline);
  while (walk.step()) {
  }
  return walk.statistics();
}

inline std::vector<FlowStats> all_flows(const OpenFlowPipeline& pipeline, Time now = 0) {
  std::vector<FlowStats> stats;
  uint32_t cursor = 0;
  while (pipeline.flow_stats({}, now, cursor, 100, stats)) {
  }
  return stats;
}

}  // namespace headrace::openflow::samples
