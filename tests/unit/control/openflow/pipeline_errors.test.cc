/// \file
/// Each error of messages that change tables, groups and meters; and that nothing has changed then.

#include <gtest/gtest.h>

#include "pipeline_messages.hh"

namespace headrace::openflow {
namespace {

using namespace samples;

using enum ErrorCode;

struct PipelineErrors : ::testing::Test {
  OpenFlowPipeline pipeline{pipeline_options()};

  ErrorCode flow_mod(FlowMod mod, Version version = Version::k1_3) {
    const std::vector<FlowStats> before = all_flows(pipeline);
    const ErrorCode error = pipeline.flow_mod(mod, version, 0);
    if (error != kNone) {
      EXPECT_EQ(all_flows(pipeline), before);
    }
    return error;
  }
  ErrorCode add(const std::string& match, std::vector<Instruction> instructions, Version version = Version::k1_3) {
    return flow_mod(flow(FlowCommand::kAdd, match, 1, std::move(instructions)), version);
  }
  ErrorCode group_mod(const GroupMod& mod) {
    const auto before = pipeline.group_descriptions();
    const ErrorCode error = pipeline.group_mod(mod, 0);
    if (error != kNone) {
      EXPECT_EQ(pipeline.group_descriptions(), before);
    }
    return error;
  }
  ErrorCode meter_mod(const MeterMod& mod) {
    std::vector<MeterConfig> before, after;
    (void)pipeline.meter_configurations(Meters::kAll, before);
    const ErrorCode error = pipeline.meter_mod(mod, 0);
    (void)pipeline.meter_configurations(Meters::kAll, after);
    if (error != kNone) {
      EXPECT_EQ(after, before);
    }
    return error;
  }
};

TEST_F(PipelineErrors, OfActions) {
  EXPECT_EQ(add("", {apply({output(5)})}), kActionBadOutPort);
  EXPECT_EQ(add("", {apply({output(port::kTable)})}), kActionBadOutPort);
  EXPECT_EQ(add("", {write({output(0xff01)})}), kActionBadOutPort);
  EXPECT_EQ(add("", {apply({to_group(1)})}), kActionBadOutGroup);
  EXPECT_EQ(add("", {apply({action(ActionType::kSetQueue, 1)})}), kActionBadQueue);
  EXPECT_EQ(add("", {apply({action(ActionType::kEnqueue, 1)})}, Version::k1_0), kActionBadQueue);
  EXPECT_EQ(add("ipv6", {apply({set_field("ipv6_exthdr", "1")})}), kActionBadSetType);
  EXPECT_EQ(add("", {apply({set_field("tcp_dst", "1")})}), kActionMatchInconsistent);
  EXPECT_EQ(add("", {apply({set_field("tcp_dst", "1")})}, Version::k1_0), kNone);
  for (const uint32_t port :
       {1u, port::kInPort, port::kNormal, port::kFlood, port::kAll, port::kController, port::kLocal})
    EXPECT_EQ(add("", {apply({output(port)})}), kNone) << port;
  std::vector<uint32_t> program;
  EXPECT_EQ(pipeline.packet_out({output(port::kTable), output(1)}, program), kNone);
  EXPECT_FALSE(program.empty());
  EXPECT_EQ(pipeline.packet_out({output(9)}, program), kActionBadOutPort);
  // Too many words for a program.
  std::vector<Action> many(8000, set_field("ipv6_src", "0000:0000:0000:0001:0000:0000:0000:0001"));
  EXPECT_EQ(add("ipv6", {apply(many)}), kActionTooMany);
}

TEST_F(PipelineErrors, OfInstructions) {
  EXPECT_EQ(add("", {go_to(0)}), kInstructionBadTableId);
  EXPECT_EQ(add("", {go_to(255)}), kInstructionBadTableId);
  EXPECT_EQ(add("", {through_meter(1)}), kMeterModInvalidMeter);
  Instruction unknown;
  unknown.type = InstructionType::kUnknown;
  EXPECT_EQ(add("", {unknown}), kInstructionBadExperimenter);
}

TEST_F(PipelineErrors, OfFlowMods) {
  FlowMod mod = flow(FlowCommand::kAdd, "", 1);
  mod.table = 255;
  EXPECT_EQ(flow_mod(mod), kFlowModBadTableId);
  EXPECT_EQ(flow_mod(mod, Version::k1_0), kNone);  // it has no tables
  mod.command = FlowCommand::kModify;
  EXPECT_EQ(flow_mod(mod), kFlowModBadTableId);
  mod.command = FlowCommand::kDelete;
  EXPECT_EQ(flow_mod(mod), kNone);
  EXPECT_EQ(pipeline.size(), 0u);

  mod = flow(FlowCommand::kAdd, "in_port=1", 1);
  mod.flags = uint64_t{1} << 20;
  EXPECT_EQ(flow_mod(mod), kFlowModBadFlags);
  mod.flags = flow_flag::kEmergency10;
  EXPECT_EQ(flow_mod(mod, Version::k1_0), kFlowModTableFull);
  mod.idle_timeout = 1;
  EXPECT_EQ(flow_mod(mod, Version::k1_0), kFlowModBadTimeout);

  EXPECT_EQ(add("in_port=1", {}), kNone);
  mod = flow(FlowCommand::kAdd, "dl_type=0x800", 1);
  mod.flags = flow_flag::kCheckOverlap;
  EXPECT_EQ(flow_mod(mod), kFlowModOverlap);
  EXPECT_EQ(flow_mod(mod, Version::k1_0), kFlowModOverlap);
  mod.priority = 2;
  EXPECT_EQ(flow_mod(mod), kNone);
  EXPECT_EQ(flow_mod(mod), kFlowModOverlap);  // with itself

  mod.command = static_cast<FlowCommand>(9);
  EXPECT_EQ(flow_mod(mod), kFlowModBadCommand);
}

TEST_F(PipelineErrors, OfFullTables) {
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(add("metadata=" + std::to_string(i), {}), kNone);
  EXPECT_EQ(add("metadata=100", {}), kFlowModTableFull);
  EXPECT_EQ(add("metadata=99", {apply({output(1)})}), kNone);  // in place of what is there
  FlowMod other = flow(FlowCommand::kAdd, "", 1);
  other.table = 1;
  EXPECT_EQ(flow_mod(other), kNone);

  PipelineOptions options = pipeline_options();
  options.most_words = 64;  // for programs
  OpenFlowPipeline small(options);
  uint32_t added = 0;
  for (; added < 64; ++added) {
    const FlowMod mod = flow(FlowCommand::kAdd, "metadata=" + std::to_string(added), 1,
                             {apply({output(1, static_cast<uint16_t>(added))})});
    if (small.flow_mod(mod, Version::k1_3, 0) == kNone) continue;
    EXPECT_EQ(small.flow_mod(mod, Version::k1_3, 0), kFlowModTableFull);
    break;
  }
  EXPECT_EQ(small.size(), added);
  EXPECT_LT(added, 10u);
  EXPECT_EQ(small.group_mod(change_group(GroupCommand::kAdd, 1, GroupType::kAll, {{output(2)}}), 0),
            kGroupModOutOfGroups);
  // Room comes back.
  EXPECT_EQ(small.flow_mod(flow(FlowCommand::kDelete, "", 0), Version::k1_3, 0), kNone);
  small.commit();
  EXPECT_EQ(small.group_mod(change_group(GroupCommand::kAdd, 1, GroupType::kAll, {{output(2)}}), 0), kNone);
}

TEST_F(PipelineErrors, OfGroupMods) {
  using enum GroupCommand;
  using enum GroupType;
  EXPECT_EQ(group_mod(change_group(kAdd, 1)), kNone);
  EXPECT_EQ(group_mod(change_group(kAdd, 1)), kGroupModGroupExists);
  EXPECT_EQ(group_mod(change_group(kAdd, group::kMax + 1)), kGroupModInvalidGroup);
  EXPECT_EQ(group_mod(change_group(kModify, group::kAny)), kGroupModInvalidGroup);
  EXPECT_EQ(group_mod(change_group(kDelete, group::kAny)), kGroupModInvalidGroup);
  EXPECT_EQ(group_mod(change_group(kModify, 2)), kGroupModUnknownGroup);
  EXPECT_EQ(group_mod(change_group(kDelete, 2)), kNone);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, kIndirect)), kGroupModInvalidGroup);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, kIndirect, {{}, {}})), kGroupModInvalidGroup);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, static_cast<GroupType>(4))), kGroupModBadType);
  EXPECT_EQ(group_mod(change_group(static_cast<GroupCommand>(3), 2)), kGroupModBadCommand);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, kAll, std::vector<std::vector<Action>>(1025))), kGroupModOutOfBuckets);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, kAll, {{output(9)}})), kActionBadOutPort);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, kAll, {{output(1)}, {to_group(9)}})), kActionBadOutGroup);
  EXPECT_EQ(group_mod(change_group(kAdd, 2, kFastFailover, {{output(1)}})), kGroupModInvalidGroup);  // watches nothing

  GroupMod mod = change_group(kAdd, 2, kAll, {{output(1)}});
  mod.buckets[0].weight = 1;
  EXPECT_EQ(group_mod(mod), kGroupModInvalidGroup);
  mod.buckets[0].weight = 0;
  mod.buckets[0].watch_port = 1;
  EXPECT_EQ(group_mod(mod), kGroupModWatchUnsupported);
  mod.type = kFastFailover;
  mod.buckets[0].watch_port = 9;
  EXPECT_EQ(group_mod(mod), kGroupModBadWatch);
  mod.buckets[0].watch_port = 1;
  mod.buckets[0].watch_group = 9;
  EXPECT_EQ(group_mod(mod), kGroupModBadWatch);
  mod.buckets[0].watch_group = 1;
  EXPECT_EQ(group_mod(mod), kNone);

  // 1 is watched by 2; 3 names 2.
  EXPECT_EQ(group_mod(change_group(kAdd, 3, kAll, {{to_group(2)}})), kNone);
  EXPECT_EQ(group_mod(change_group(kModify, 1, kAll, {{to_group(3)}})), kGroupModLoop);
  EXPECT_EQ(group_mod(change_group(kModify, 1, kAll, {{to_group(1)}})), kGroupModLoop);
  EXPECT_EQ(group_mod(change_group(kDelete, 1)), kGroupModChainedGroup);
  EXPECT_EQ(group_mod(change_group(kDelete, 2)), kGroupModChainedGroup);
  for (uint32_t i = 4; i <= 16; ++i) EXPECT_EQ(group_mod(change_group(kAdd, i, kAll, {{to_group(i - 1)}})), kNone);
  EXPECT_EQ(group_mod(change_group(kAdd, 17, kAll, {{to_group(16)}})), kGroupModChainingUnsupported);
  EXPECT_EQ(group_mod(change_group(kAdd, 20)), kNone);
  EXPECT_EQ(group_mod(change_group(kModify, 1, kAll, {{to_group(20)}})), kGroupModChainingUnsupported);
  EXPECT_EQ(group_mod(change_group(kDelete, group::kAll)), kNone);
  EXPECT_TRUE(pipeline.group_descriptions().empty());
}

TEST_F(PipelineErrors, OfMeterMods) {
  using enum MeterCommand;
  const MeterBand drop{MeterBandType::kDrop, 1000, 0, 0, 0, {}};
  EXPECT_EQ(meter_mod(change_meter(kAdd, 1, meter_flag::kKbps, {drop})), kNone);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 1, meter_flag::kKbps, {drop})), kMeterModMeterExists);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 0, meter_flag::kKbps, {drop})), kMeterModInvalidMeter);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 0xffff0001, meter_flag::kKbps, {drop})), kMeterModInvalidMeter);
  EXPECT_EQ(meter_mod(change_meter(kModify, Meters::kAll, meter_flag::kKbps, {drop})), kMeterModInvalidMeter);
  EXPECT_EQ(meter_mod(change_meter(kDelete, 0)), kMeterModInvalidMeter);
  EXPECT_EQ(meter_mod(change_meter(kModify, 2, meter_flag::kKbps, {drop})), kMeterModUnknownMeter);
  EXPECT_EQ(meter_mod(change_meter(kDelete, 2)), kNone);
  EXPECT_EQ(meter_mod(change_meter(static_cast<MeterCommand>(3), 2)), kMeterModBadCommand);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, meter_flag::kKbps | meter_flag::kPktps, {drop})), kMeterModBadFlags);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, 16, {drop})), kMeterModBadFlags);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, meter_flag::kKbps, std::vector<MeterBand>(17, drop))), kMeterModOutOfBands);
  MeterBand band = drop;
  band.rate = 0;
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, meter_flag::kKbps, {drop, band})), kMeterModBadRate);
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, meter_flag::kKbps | meter_flag::kBurst, {drop})), kMeterModBadBurst);
  band = drop;
  band.type = MeterBandType::kExperimenter;
  EXPECT_EQ(meter_mod(change_meter(kModify, 1, meter_flag::kKbps, {band})), kMeterModBadBand);
  band.type = MeterBandType::kDscpRemark;
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, meter_flag::kKbps, {band})), kMeterModBadBandValue);
  band.precedence_levels = 1;
  EXPECT_EQ(meter_mod(change_meter(kAdd, 2, meter_flag::kKbps, {band})), kNone);
  std::vector<MeterStats> stats;
  EXPECT_EQ(pipeline.meter_stats(7, 0, stats), kMeterModUnknownMeter);
  EXPECT_EQ(pipeline.meter_stats(Meters::kAll, 0, stats), kNone);
  EXPECT_EQ(stats.size(), 2u);
}

TEST_F(PipelineErrors, OfMetersThatRunOut) {
  Meters meters;
  for (uint32_t i = 1; i <= Meters::kMost; ++i) ASSERT_EQ(meters.add(change_meter(MeterCommand::kAdd, i), 0), kNone);
  EXPECT_EQ(meters.add(change_meter(MeterCommand::kAdd, Meters::kMost + 1), 0), kMeterModOutOfMeters);
  meters.remove(5);
  meters.begin_grace();
  EXPECT_EQ(meters.add(change_meter(MeterCommand::kAdd, Meters::kMost + 1), 0), kNone);
}

TEST_F(PipelineErrors, OfTableMods) {
  EXPECT_EQ(pipeline.table_mod({0, 3}), kNone);
  EXPECT_EQ(pipeline.table_mod({255, 1}), kNone);
  EXPECT_EQ(pipeline.table_mod({3, 4}), kTableModBadConfig);
  EXPECT_EQ(pipeline.table_features()[7].config, 1u);
  // Without table 7.
  std::vector<TableFeatures> features = pipeline.table_features();
  features.erase(features.begin() + 7);
  EXPECT_EQ(pipeline.set_table_features(features), kNone);
  EXPECT_EQ(pipeline.table_mod({7, 1}), kTableModBadTable);
}

TEST_F(PipelineErrors, OfTableFeatures) {
  const std::vector<TableFeatures> all = pipeline.table_features();
  ASSERT_EQ(all.size(), 255u);
  EXPECT_EQ(pipeline.set_table_features(all), kNone);
  EXPECT_EQ(pipeline.table_features(), all);
  const auto with = [&](auto change) {
    std::vector<TableFeatures> features(all.begin(), all.begin() + 3);
    change(features);
    const ErrorCode error = pipeline.set_table_features(features);
    if (error != kNone) {
      EXPECT_EQ(pipeline.table_features(), all);
    }
    return error;
  };
  EXPECT_EQ(with([](auto& f) { f[1].table = 255; }), kTableFeaturesBadTable);
  EXPECT_EQ(with([](auto& f) { f[1].table = 2; }), kTableFeaturesBadTable);
  EXPECT_EQ(with([](auto& f) { f.erase(f.begin()); }), kTableFeaturesBadTable);
  EXPECT_EQ(with([](auto& f) { f[1].max_entries = 101; }), kTableFeaturesBadArgument);
  EXPECT_EQ(with([](auto& f) { f[1].properties[0].values.push_back(99); }), kTableFeaturesBadArgument);
  EXPECT_EQ(with([](auto& f) { f[1].properties.push_back(f[1].properties[0]); }), kTableFeaturesBadType);
  EXPECT_EQ(with([](auto& f) { f[1].properties[0].type = table_property::kExperimenter; }), kTableFeaturesBadType);
  FlowMod mod = flow(FlowCommand::kAdd, "", 1);
  mod.table = 9;
  EXPECT_EQ(flow_mod(mod), kNone);
  EXPECT_EQ(with([](auto&) {}), kTableFeaturesEperm);  // the entry would go
  mod.command = FlowCommand::kDelete;
  EXPECT_EQ(flow_mod(mod), kNone);
  EXPECT_EQ(with([](auto& f) {
              f[1].name = "acl";
              f[1].max_entries = 2;
            }),
            kNone);
  EXPECT_EQ(pipeline.table_features().size(), 3u);
  EXPECT_EQ(all_tables(pipeline)[1].name, "acl");
  mod.command = FlowCommand::kAdd;
  EXPECT_EQ(flow_mod(mod), kFlowModBadTableId);
  EXPECT_EQ(add("", {go_to(3)}), kInstructionBadTableId);
  for (uint32_t i = 0; i < 3; ++i) {
    mod = flow(FlowCommand::kAdd, "metadata=" + std::to_string(i), 1);
    mod.table = 1;
    EXPECT_EQ(flow_mod(mod), i < 2 ? kNone : kFlowModTableFull);
  }
}

}  // namespace
}  // namespace headrace::openflow
