/// \file
/// What the pipeline does beyond errors: versions, counters, timeouts, order, statistics.

#include <gtest/gtest.h>

#include <set>

#include "headrace/rcu.hh"
#include "pipeline_messages.hh"
#include "unit/tables/host_mirror.hh"

namespace headrace::openflow {
namespace {

using namespace samples;

using enum FlowCommand;

struct PipelineTest : ::testing::Test {
  OpenFlowPipeline pipeline{pipeline_options()};

  void flow_mod(const FlowMod& mod, Version version = Version::k1_3, Time now = 0) {
    ASSERT_EQ(pipeline.flow_mod(mod, version, now), ErrorCode::kNone);
    pipeline.commit();
  }
  /// A packet that the table's entry counts. False: it misses.
  bool packet(const std::string& key, uint32_t bytes, Time now, uint32_t table = 0) {
    const AclMatch match = pipeline.view().find(table, packet_key_of(key).w);
    if (match.number == AclMatch::kNone) return false;
    pipeline.entry_counters().add(match.number, 1, bytes, now);
    return true;
  }
  uint32_t port_of(const std::string& key, uint32_t table = 0) {
    const AclMatch match = pipeline.view().find(table, packet_key_of(key).w);
    if (match.number == AclMatch::kNone) return 0;
    const ProgramView program = pipeline.view().program(match.data);
    EXPECT_TRUE(program.has(program_flag::kOnlyOutput));
    return program.only_port();
  }
};

/// Entries of 1.3 that match everything with priority 0 are marked, also when instructions are shared and modified.
TEST_F(PipelineTest, MarksEntriesForMisses) {
  const auto is_marked = [&](const std::string& key, uint32_t table = 0) {
    const AclMatch match = pipeline.view().find(table, packet_key_of(key).w);
    EXPECT_NE(match.number, AclMatch::kNone);
    return match.number != AclMatch::kNone && pipeline.view().program(match.data).has(program_flag::kTableMiss);
  };
  FlowMod miss = flow(kAdd, "", 0), other = flow(kAdd, "in_port=1", 0), low = flow(kAdd, "in_port=2", 7);
  other.table = 1;
  for (FlowMod* const mod : {&miss, &other, &low}) {
    mod->instructions = {apply({output(port::kController, 128)})};
    flow_mod(*mod);
  }
  EXPECT_TRUE(is_marked("in_port=3"));
  EXPECT_FALSE(is_marked("in_port=1", 1));
  EXPECT_FALSE(is_marked("in_port=2"));
  FlowMod all = flow(kModify, "", 0);
  all.instructions = {apply({output(port::kController, 64)})};
  flow_mod(all, Version::k1_0);  // in all tables
  for (const FlowStats& stats : all_flows(pipeline, 0)) EXPECT_EQ(stats.instructions, all.instructions);
  EXPECT_TRUE(is_marked("in_port=3"));
  EXPECT_FALSE(is_marked("in_port=1", 1));
  // 1.0 knows no such entries, nor do other priorities.
  flow_mod(flow(kDelete, "", 0), Version::k1_0);
  flow_mod(miss, Version::k1_0);
  EXPECT_FALSE(is_marked("in_port=3"));
  miss.priority = 1;
  flow_mod(miss);
  EXPECT_FALSE(is_marked("in_port=3"));
}

TEST_F(PipelineTest, KeepsWhatWasWritten) {
  FlowMod mod = flow(kAdd, "tcp,nw_dst=10.0.0.0/8,tp_dst=80,vlan_vid=0x1000/0x1000", 7);
  mod.match.key = match_of("dl_type=0x800,nw_proto=6,nw_dst=10.0.0.0/255.0.0.0,tcp_dst=80,vlan_vid=0x1000/0x1000").key;
  mod.table = 3;
  mod.cookie = 0x123456789a;
  mod.idle_timeout = 5;
  mod.hard_timeout = 9;
  mod.flags = flow_flag::kSendFlowRemoved | flow_flag::kNoByteCounts;
  Instruction metadata;
  metadata.type = InstructionType::kWriteMetadata;
  metadata.metadata = 0xff;
  metadata.metadata_mask = 0x0f;
  // In an order of its own, with actions of the set that are none for the program.
  mod.instructions = {go_to(9), metadata, write({output(1), output(2), set_field("eth_dst", "00:00:00:00:00:05")}),
                      apply({set_field("vlan_vid", "5"), output(3, 128)})};
  flow_mod(mod);
  const std::vector<FlowStats> stats = all_flows(pipeline, 3 * kSecond + 5);
  ASSERT_EQ(stats.size(), 1u);
  EXPECT_EQ(stats[0].table, 3);
  EXPECT_EQ(stats[0].duration_s, 3u);
  EXPECT_EQ(stats[0].duration_ns, 5u);
  EXPECT_EQ(stats[0].priority, 7);
  EXPECT_EQ(stats[0].idle_timeout, 5);
  EXPECT_EQ(stats[0].hard_timeout, 9);
  EXPECT_EQ(stats[0].flags, mod.flags);
  EXPECT_EQ(stats[0].cookie, mod.cookie);
  EXPECT_EQ(stats[0].match, mod.match);
  EXPECT_EQ(stats[0].instructions, mod.instructions);
}

TEST_F(PipelineTest, PutsExactEntriesOf10AboveAllPriorities) {
  flow_mod(flow(kAdd, "tcp", 0xffff, {apply({output(1)})}), Version::k1_0);
  const std::string key = "in_port=1,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1,tp_dst=2";
  FlowMod exact = flow(kAdd, key, 3, {apply({output(2)})});
  exact.match.exact_1_0 = true;
  flow_mod(exact, Version::k1_0);
  EXPECT_EQ(port_of(key), 2u);
  // Another priority says nothing in 1.0.
  exact.priority = 9;
  exact.instructions = {apply({output(3)})};
  flow_mod(exact, Version::k1_0);
  EXPECT_EQ(pipeline.size(), 2u);
  EXPECT_EQ(port_of(key), 3u);
  // 1.3 finds it under its priority.
  FlowMod other = flow(kDeleteStrict, key, 3);
  flow_mod(other);
  EXPECT_EQ(pipeline.size(), 2u);
  other.priority = 9;
  flow_mod(other);
  EXPECT_EQ(pipeline.size(), 1u);
  EXPECT_EQ(port_of(key), 1u);
}

TEST_F(PipelineTest, ResetsCountersAsEachVersionSays) {
  flow_mod(flow(kAdd, "in_port=1", 1, {apply({output(1)})}));
  const auto packets = [&] { return all_flows(pipeline).at(0).packets; };
  EXPECT_TRUE(packet("in_port=1", 100, 0));
  flow_mod(flow(kAdd, "in_port=1", 1, {apply({output(2)})}));
  EXPECT_EQ(packets(), 1u);
  FlowMod mod = flow(kModify, "", 1, {apply({output(3)})});
  flow_mod(mod);
  EXPECT_EQ(packets(), 1u);
  EXPECT_EQ(port_of("in_port=1"), 3u);
  mod.flags = flow_flag::kResetCounts;
  flow_mod(mod);
  EXPECT_EQ(packets(), 0u);
  EXPECT_TRUE(packet("in_port=1", 100, 0));
  mod = flow(kAdd, "in_port=1", 1);
  mod.flags = flow_flag::kResetCounts;
  flow_mod(mod);
  EXPECT_EQ(packets(), 0u);
  EXPECT_TRUE(packet("in_port=1", 100, 0));
  flow_mod(flow(kAdd, "in_port=1", 1), Version::k1_0);
  EXPECT_EQ(packets(), 0u);
}

TEST_F(PipelineTest, ModifiesOrAddsAsEachVersionSays) {
  FlowMod mod = flow(kModify, "in_port=1", 1, {apply({output(1)})});
  mod.cookie = 7;
  flow_mod(mod);
  EXPECT_EQ(pipeline.size(), 0u);
  flow_mod(mod, Version::k1_0);
  EXPECT_EQ(pipeline.size(), 1u);
  mod.cookie = 8;
  mod.command = kModifyStrict;
  flow_mod(mod);
  EXPECT_EQ(all_flows(pipeline)[0].cookie, 7u);
  flow_mod(mod, Version::k1_0);
  EXPECT_EQ(all_flows(pipeline)[0].cookie, 8u);
}

TEST_F(PipelineTest, ExpiresWithin200Milliseconds) {
  constexpr Time kStep = kSecond / 10;
  FlowMod idle = flow(kAdd, "in_port=1", 1), hard = flow(kAdd, "in_port=2", 1);
  idle.idle_timeout = 2;
  hard.hard_timeout = 3;
  hard.idle_timeout = 2;
  idle.flags = hard.flags = flow_flag::kSendFlowRemoved;
  flow_mod(idle, Version::k1_3, 12345);
  flow_mod(hard, Version::k1_3, 12345);
  Time idle_gone = 0, hard_gone = 0;
  for (Time now = kStep; now < 10 * kSecond; now += kStep) {
    if (now == kSecond) {
      EXPECT_TRUE(packet("in_port=1", 60, now));
    }
    if (now % kSecond == 0 && now < 3 * kSecond) {
      EXPECT_TRUE(packet("in_port=2", 100, now));
    }
    pipeline.expire(now);
    for (const FlowRemoved& message : pipeline.settle()) {
      const bool is_idle = message.reason == FlowRemovedReason::kIdleTimeout;
      (is_idle ? idle_gone : hard_gone) = now;
      EXPECT_EQ(message.packets, is_idle ? 1u : 2u);
      EXPECT_EQ(message.bytes, is_idle ? 60u : 200u);
      EXPECT_EQ(message.idle_timeout, 2);
      EXPECT_EQ(message.duration_s, is_idle ? 2u : 3u);
    }
  }
  // The last packet of the first came at 1 s.
  EXPECT_GE(idle_gone, 3 * kSecond);
  EXPECT_LE(idle_gone, 3 * kSecond + kStep);
  EXPECT_GE(hard_gone, 3 * kSecond);
  EXPECT_LE(hard_gone, 3 * kSecond + 2 * kStep);
  EXPECT_EQ(pipeline.next_expiry(), kNoTime);
}

TEST_F(PipelineTest, CountsForRemovedEntriesUntilNoPacketMeetsThem) {
  FlowMod mod = flow(kAdd, "in_port=1", 1);
  mod.flags = flow_flag::kSendFlowRemoved;
  flow_mod(mod);
  rcu::Reader worker;
  const AclMatch match = pipeline.view().find(0, packet_key_of("in_port=1").w);
  ASSERT_EQ(pipeline.flow_mod(flow(kDelete, "", 0), Version::k1_3, 0), ErrorCode::kNone);
  const rcu::Epoch point = pipeline.commit();
  EXPECT_FALSE(OpenFlowPipeline::seen(point));
  EXPECT_TRUE(pipeline.settle().empty());
  EXPECT_EQ(pipeline.unsettled(), 1u);
  flow_mod(flow(kAdd, "in_port=2", 1));
  EXPECT_NE(pipeline.view().find(0, packet_key_of("in_port=2").w).number, match.number);
  pipeline.entry_counters().add(match.number, 1, 1500, 0);
  worker.quiescent();
  EXPECT_TRUE(OpenFlowPipeline::seen(point));
  const std::vector<FlowRemoved> removed = pipeline.settle();
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].packets, 1u);
  EXPECT_EQ(removed[0].bytes, 1500u);
  EXPECT_EQ(removed[0].reason, FlowRemovedReason::kDelete);
}

TEST_F(PipelineTest, RemovesManyInPieces) {
  constexpr uint32_t kEntries = 2 * OpenFlowPipeline::kPiece + 10;
  OpenFlowPipeline many({{1, 2, 3}});
  const auto entry = [](uint32_t i) {
    FlowMod mod = flow(kAdd, "", 1);
    mod.match.key.value[key_word::kIp4Dst] = i;
    mod.match.key.mask[key_word::kIp4Dst] = ~0u;
    mod.cookie = i;
    mod.flags = flow_flag::kSendFlowRemoved;
    return mod;
  };
  for (uint32_t i = 0; i < kEntries; ++i) ASSERT_EQ(many.flow_mod(entry(i), Version::k1_3, 0), ErrorCode::kNone);
  many.commit();
  OpenFlowPipeline::Removal removal;
  ASSERT_EQ(many.begin_removal(flow(kDelete, "", 0), Version::k1_3, removal), ErrorCode::kNone);
  EXPECT_EQ(many.size(), kEntries);
  many.go_on(removal, 0);
  EXPECT_EQ(many.size(), kEntries - OpenFlowPipeline::kPiece);
  EXPECT_FALSE(removal.done());
  many.commit();
  std::vector<FlowRemoved> removed = many.settle(100);
  EXPECT_EQ(removed.size(), 100u);
  EXPECT_TRUE(many.behind());
  // One comes again before its turn, one goes, and one takes the number of one that has gone.
  const auto cookie_of = [&](uint32_t number) { return static_cast<uint32_t>(many.cookie_of(number)); };
  const uint32_t first = cookie_of(kEntries - 1), second = cookie_of(kEntries - 2);
  ASSERT_EQ(many.flow_mod(entry(first), Version::k1_3, 1), ErrorCode::kNone);
  FlowMod gone = entry(second);
  gone.command = kDeleteStrict;
  ASSERT_EQ(many.flow_mod(gone, Version::k1_3, 1), ErrorCode::kNone);
  ASSERT_EQ(many.flow_mod(entry(kEntries), Version::k1_3, 1), ErrorCode::kNone);
  while (!removal.done()) many.go_on(removal, 1);
  EXPECT_EQ(many.size(), 2u);
  many.commit();
  while (many.behind())
    for (FlowRemoved& message : many.settle(1000)) removed.push_back(std::move(message));
  EXPECT_EQ(many.unsettled(), 0u);
  ASSERT_EQ(removed.size(), kEntries - 1);
  std::set<uint64_t> cookies;
  for (const FlowRemoved& message : removed) cookies.insert(message.cookie);
  EXPECT_EQ(cookies.size(), kEntries - 1);
  EXPECT_FALSE(cookies.contains(first));
}

/// What is added or modified while many entries are modified stays as it is then.
TEST_F(PipelineTest, ModifiesManyInPieces) {
  constexpr uint32_t kEntries = 2 * OpenFlowPipeline::kPiece + 10;
  OpenFlowPipeline many({{1, 2, 3}});
  const auto entry = [](FlowCommand command, uint32_t i, uint32_t port) {
    FlowMod mod = flow(command, "", 1, {apply({output(port)})});
    mod.match.key.value[key_word::kIp4Dst] = i;
    mod.match.key.mask[key_word::kIp4Dst] = ~0u;
    mod.cookie = i;
    return mod;
  };
  for (uint32_t i = 0; i < kEntries; ++i)
    ASSERT_EQ(many.flow_mod(entry(kAdd, i, 1), Version::k1_3, 0), ErrorCode::kNone);
  ASSERT_EQ(many.flow_mod(flow(kAdd, "", 0, {apply({output(1)})}), Version::k1_3, 0), ErrorCode::kNone);  // for misses
  for (uint32_t i = 0; i < kEntries; ++i) many.entry_counters().add(i, 1, 60, 0);
  const auto port_of = [](const FlowStats& flow) { return flow.instructions.at(0).actions.back().value; };
  const auto of_port = [&](uint32_t port) {
    std::vector<uint32_t> cookies;
    for (const FlowStats& one : all_flows(many))
      if (port_of(one) == port) cookies.push_back(static_cast<uint32_t>(one.cookie));
    return cookies;
  };
  OpenFlowPipeline::Modification modification;
  FlowMod all = flow(kModify, "", 0, {apply({action(ActionType::kPushVlan, 0x8100), output(2)})});
  all.flags = flow_flag::kResetCounts;
  ASSERT_EQ(many.begin_modification(all, Version::k1_3, 0, modification), ErrorCode::kNone);
  EXPECT_TRUE(of_port(2).empty());
  many.go_on(modification);
  EXPECT_EQ(of_port(2).size(), OpenFlowPipeline::kPiece);
  EXPECT_FALSE(modification.done());
  // Of those before it and behind it: one goes, one comes again, one is modified.
  for (const std::vector<uint32_t>& side : {of_port(2), of_port(1)}) {
    ASSERT_EQ(many.flow_mod(entry(kDeleteStrict, side[0], 0), Version::k1_3, 0), ErrorCode::kNone);
    ASSERT_EQ(many.flow_mod(entry(kAdd, side[1], 3), Version::k1_3, 0), ErrorCode::kNone);
    ASSERT_EQ(many.flow_mod(entry(kModifyStrict, side[2], 3), Version::k1_3, 0), ErrorCode::kNone);
  }
  while (!modification.done()) many.go_on(modification);
  EXPECT_TRUE(of_port(1).empty());
  EXPECT_EQ(of_port(3).size(), 4u);
  EXPECT_EQ(of_port(2).size(), kEntries + 1 - 2 - 4);
  for (const FlowStats& one : all_flows(many)) {
    if (port_of(one) == 2) {
      ASSERT_EQ(one.packets, 0u);
    }
  }
  // It keeps no program.
  ASSERT_EQ(many.flow_mod(flow(kDelete, "", 0), Version::k1_3, 0), ErrorCode::kNone);
  many.commit();
  (void)many.settle();
  EXPECT_EQ(many.size(), 0u);
  EXPECT_FALSE(many.changes_frames());
}

TEST_F(PipelineTest, ExpiresInPieces) {
  constexpr uint32_t kEntries = OpenFlowPipeline::kPiece + 10;
  OpenFlowPipeline many({{1, 2, 3}});
  for (uint32_t i = 0; i < kEntries; ++i) {
    FlowMod mod = flow(kAdd, "", 1);
    mod.match.key.value[key_word::kIp4Dst] = i;
    mod.match.key.mask[key_word::kIp4Dst] = ~0u;
    mod.hard_timeout = 1;
    ASSERT_EQ(many.flow_mod(mod, Version::k1_3, 0), ErrorCode::kNone);
  }
  many.expire(2 * kSecond);
  EXPECT_EQ(many.size(), 10u);
  EXPECT_LE(many.next_expiry(), 2 * kSecond);
  many.expire(2 * kSecond);
  EXPECT_EQ(many.size(), 0u);
}

TEST_F(PipelineTest, RemovesEntriesWithTheirGroupsAndMeters) {
  ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kAdd, 1, GroupType::kAll, {{output(1)}}), 0),
            ErrorCode::kNone);
  ASSERT_EQ(pipeline.meter_mod(change_meter(MeterCommand::kAdd, 5), 0), ErrorCode::kNone);
  FlowMod first = flow(kAdd, "in_port=1", 1, {write({to_group(1)})});
  FlowMod second = flow(kAdd, "in_port=2", 1, {through_meter(5)});
  first.flags = second.flags = flow_flag::kSendFlowRemoved;
  flow_mod(first);
  flow_mod(second);
  flow_mod(flow(kAdd, "in_port=3", 1));
  EXPECT_EQ(pipeline.group_stats(1, 0)[0].references, 1u);
  std::vector<MeterStats> stats;
  ASSERT_EQ(pipeline.meter_stats(5, 0, stats), ErrorCode::kNone);
  EXPECT_EQ(stats[0].flows, 1u);
  ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kDelete, 1), 0), ErrorCode::kNone);
  ASSERT_EQ(pipeline.meter_mod(change_meter(MeterCommand::kDelete, Meters::kAll), 0), ErrorCode::kNone);
  pipeline.commit();
  const std::vector<FlowRemoved> removed = pipeline.settle();
  ASSERT_EQ(removed.size(), 2u);
  EXPECT_EQ(removed[0].reason, FlowRemovedReason::kGroupDelete);
  EXPECT_EQ(removed[1].reason, FlowRemovedReason::kDelete);
  EXPECT_EQ(pipeline.size(), 1u);
}

TEST_F(PipelineTest, ShowsChangesInTheirOrder) {
  // A change of table 0 is for later; one of another table, or one in place, makes it visible.
  ASSERT_EQ(pipeline.flow_mod(flow(kAdd, "in_port=1", 1, {apply({output(1)})}), Version::k1_3, 0), ErrorCode::kNone);
  EXPECT_EQ(port_of("in_port=1"), 0u);
  ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kAdd, 1), 0), ErrorCode::kNone);
  EXPECT_EQ(port_of("in_port=1"), 1u);
  FlowMod mod = flow(kAdd, "in_port=2", 1, {apply({output(2)})});
  ASSERT_EQ(pipeline.flow_mod(mod, Version::k1_3, 0), ErrorCode::kNone);
  mod.table = 1;
  ASSERT_EQ(pipeline.flow_mod(mod, Version::k1_3, 0), ErrorCode::kNone);
  EXPECT_EQ(port_of("in_port=2"), 2u);
  EXPECT_EQ(port_of("in_port=2", 1), 0u);
  ASSERT_EQ(pipeline.flow_mod(flow(kModify, "in_port=1", 1, {apply({output(3)})}), Version::k1_3, 0), ErrorCode::kNone);
  EXPECT_EQ(port_of("in_port=2", 1), 2u);
  EXPECT_EQ(port_of("in_port=1"), 3u);
}

TEST_F(PipelineTest, WidensATableWhenAnEntryNeedsIt) {
  flow_mod(flow(kAdd, "in_port=1", 1, {apply({output(1)})}));
  flow_mod(flow(kAdd, "in_port=2", 1, {apply({output(2)})}));
  EXPECT_EQ(pipeline.key_words(), 12u);
  EXPECT_TRUE(packet("in_port=1", 60, 0));
  flow_mod(flow(kAdd, "ipv6,ipv6_dst=2001:db8::1", 2, {apply({output(3)})}));
  EXPECT_EQ(pipeline.key_words(), 32u);
  EXPECT_EQ(port_of("in_port=1"), 1u);
  EXPECT_EQ(port_of("in_port=2"), 2u);
  EXPECT_EQ(port_of("in_port=1,ipv6,ipv6_dst=2001:db8::1"), 3u);
  EXPECT_TRUE(packet("in_port=1", 60, 0));
  EXPECT_EQ(all_flows(pipeline)[0].packets, 2u);
  flow_mod(flow(kDeleteStrict, "in_port=1", 1));
  EXPECT_EQ(port_of("in_port=1"), 0u);
}

TEST_F(PipelineTest, HasACopyForADevice) {
  ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kAdd, 9, GroupType::kSelect, {{output(1)}, {output(2)}}), 0),
            ErrorCode::kNone);
  flow_mod(flow(kAdd, "in_port=1", 1, {apply({output(3)})}));
  flow_mod(flow(kAdd, "in_port=2", 1, {apply({to_group(9)})}));
  FlowMod wide = flow(kAdd, "ipv6,ipv6_dst=2001:db8::1", 2, {apply({output(4)})});
  wide.table = 7;
  flow_mod(wide);
  pipeline.set_miss_to_controller(true);
  HostMirror mirror;
  const OpenFlowView copy = pipeline.mirror(mirror);
  // The copy stays as it is.
  flow_mod(flow(kDelete, "", 0));
  ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kDelete, 9), 0), ErrorCode::kNone);
  pipeline.set_miss_to_controller(false);
  EXPECT_TRUE(copy.miss_to_controller());
  EXPECT_FALSE(copy.has_table(1));
  const auto found = [&](uint32_t table, const char* key) { return copy.find(table, packet_key_of(key).w); };
  EXPECT_EQ(copy.program(found(0, "in_port=1").data).only_port(), 3u);
  EXPECT_EQ(copy.program(found(7, "ipv6,ipv6_dst=2001:db8::1").data).only_port(), 4u);
  EXPECT_EQ(found(7, "ipv6").number, AclMatch::kNone);
  const uint32_t* const op = copy.program(found(0, "in_port=2").data).apply_actions().begin();
  const GroupView group = copy.group(op_slot(*op));
  ASSERT_TRUE(group.exists());
  EXPECT_EQ(copy.program(group.program(group.choose(0))).only_port(), 1u);
  EXPECT_EQ(copy.program(group.program(group.choose(~0u))).only_port(), 2u);
}

TEST_F(PipelineTest, CountsTables) {
  flow_mod(flow(kAdd, "in_port=1", 1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(packet("in_port=1", 60, 0));
  pipeline.miss_counters().add(0, 2, 0, 0);
  const std::vector<TableStats> stats = all_tables(pipeline);
  ASSERT_EQ(stats.size(), 255u);
  EXPECT_EQ(stats[0].active, 1u);
  EXPECT_EQ(stats[0].lookups, 5u);
  EXPECT_EQ(stats[0].matches, 3u);
  EXPECT_EQ(stats[0].max_entries, 100u);
  EXPECT_EQ(stats[254].active, 0u);
  // What entries have counted stays when they go.
  flow_mod(flow(kDelete, "", 0));
  (void)pipeline.settle();
  EXPECT_EQ(all_tables(pipeline)[0].active, 0u);
  EXPECT_EQ(all_tables(pipeline)[0].matches, 3u);
}

/// Sums over many entries are made in pieces, and each match is in them once, whatever is removed meanwhile.
TEST_F(PipelineTest, SumsInPieces) {
  constexpr uint32_t kEntries = OpenFlowPipeline::kMostLookedAt + 100, kMatches = 3;
  OpenFlowPipeline many({{1, 2, 3}});
  for (uint32_t i = 0; i < kEntries; ++i) {
    FlowMod mod = flow(kAdd, "", 1);
    mod.match.key.value[key_word::kIp4Dst] = i;
    mod.match.key.mask[key_word::kIp4Dst] = ~0u;
    mod.cookie = i;
    ASSERT_EQ(many.flow_mod(mod, Version::k1_3, 0), ErrorCode::kNone);
  }
  many.commit();
  for (uint32_t i = 0; i < kEntries; ++i) many.entry_counters().add(i, kMatches, 60, 0);
  OpenFlowPipeline::AggregateWalk sum;
  OpenFlowPipeline::TableWalk tables(many);
  EXPECT_TRUE(many.aggregate(sum));
  EXPECT_EQ(sum.cursor, OpenFlowPipeline::kMostLookedAt);
  EXPECT_TRUE(tables.step());
  // One that has been looked at and one that has not; their numbers go to others.
  for (const uint64_t cookie : {uint64_t{5}, uint64_t{kEntries - 5}}) {
    ASSERT_EQ(many.cookie_of(static_cast<uint32_t>(cookie)), cookie);
    FlowMod mod = flow(kDelete, "", 0);
    mod.cookie = cookie;
    mod.cookie_mask = ~uint64_t{0};
    ASSERT_EQ(many.flow_mod(mod, Version::k1_3, 0), ErrorCode::kNone);
  }
  many.commit();
  (void)many.settle();
  ASSERT_EQ(many.unsettled(), 0u);
  for (const char* const match : {"in_port=1", "in_port=2"})
    ASSERT_EQ(many.flow_mod(flow(kAdd, match, 2), Version::k1_3, 0), ErrorCode::kNone);
  many.commit();
  EXPECT_FALSE(many.aggregate(sum));
  EXPECT_FALSE(tables.step());
  EXPECT_EQ(tables.statistics()[0].matches, uint64_t{kMatches} * kEntries);
  EXPECT_EQ(all_tables(many)[0].matches, uint64_t{kMatches} * kEntries);
  // One was removed after it was looked at, another before, and one took the place of that.
  EXPECT_EQ(sum.stats, (AggregateStats{uint64_t{kMatches} * (kEntries - 1), uint64_t{60} * (kEntries - 1), kEntries}));
}

TEST_F(PipelineTest, FollowsLinksInGroups) {
  using enum GroupCommand;
  GroupMod mod = change_group(kAdd, 1, GroupType::kFastFailover, {{output(1)}, {output(2)}, {output(3)}});
  for (uint32_t i = 0; i < 3; ++i) mod.buckets[i].watch_port = i + 1;
  ASSERT_EQ(pipeline.group_mod(mod, 0), ErrorCode::kNone);
  GroupMod outer = change_group(kAdd, 2, GroupType::kFastFailover, {{to_group(1)}, {output(4)}});
  outer.buckets[0].watch_group = 1;
  outer.buckets[1].watch_port = port::kLocal;
  ASSERT_EQ(pipeline.group_mod(outer, 0), ErrorCode::kNone);
  const auto chosen = [&](uint32_t number) {
    return pipeline.view().group(pipeline.groups().slot_of(number)).choose(0);
  };
  EXPECT_EQ(chosen(1), GroupView::kNoBucket);
  EXPECT_EQ(chosen(2), GroupView::kNoBucket);
  pipeline.set_port_alive(port::kLocal, true);
  EXPECT_EQ(chosen(2), 1u);
  pipeline.set_port_alive(3, true);
  EXPECT_EQ(chosen(1), 2u);
  EXPECT_EQ(chosen(2), 0u);
  pipeline.set_port_alive(1, true);
  EXPECT_EQ(chosen(1), 0u);
  pipeline.set_port_alive(1, false);
  pipeline.set_port_alive(3, false);
  EXPECT_EQ(chosen(2), 1u);
  // A group that changes brings those before it to life.
  mod.command = kModify;
  mod.buckets[1].watch_port = port::kLocal;
  ASSERT_EQ(pipeline.group_mod(mod, 0), ErrorCode::kNone);
  EXPECT_EQ(chosen(1), 1u);
  EXPECT_EQ(chosen(2), 0u);
}

TEST_F(PipelineTest, ChoosesBucketsByTheirWeights) {
  GroupMod mod =
      change_group(GroupCommand::kAdd, 1, GroupType::kSelect, {{output(1)}, {output(2)}, {output(3)}, {output(4)}});
  const uint16_t weights[] = {1, 0, 3, 6};
  for (uint32_t i = 0; i < 4; ++i) {
    mod.buckets[i].weight = weights[i];
    if (i != 0) mod.buckets[i].watch_port = i + 1;
    pipeline.set_port_alive(i + 1, true);
  }
  ASSERT_EQ(pipeline.group_mod(mod, 0), ErrorCode::kNone);
  const GroupView view = pipeline.view().group(pipeline.groups().slot_of(1));
  constexpr uint32_t kFlows = 100000;
  const auto hash = [](uint32_t i) { return static_cast<uint32_t>(fold_multiply(i + 1, 0x9e3779b97f4a7c15ull)); };
  std::vector<uint32_t> before(kFlows);
  uint32_t counts[4] = {};
  for (uint32_t i = 0; i < kFlows; ++i) ++counts[before[i] = view.choose(hash(i))];
  for (uint32_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], kFlows / 10 * weights[i], kFlows / 100) << i;
  pipeline.set_port_alive(4, false);
  uint32_t moved[4] = {};
  for (uint32_t i = 0; i < kFlows; ++i) {
    const uint32_t now = view.choose(hash(i));
    if (before[i] != 3) {
      ASSERT_EQ(now, before[i]);
    } else {
      ++moved[now];
    }
  }
  EXPECT_NEAR(moved[0], counts[3] / 4, kFlows / 100);
  EXPECT_EQ(moved[1] + moved[3], 0u);
  EXPECT_NEAR(moved[2], counts[3] / 4 * 3, kFlows / 100);
}

}  // namespace
}  // namespace headrace::openflow
