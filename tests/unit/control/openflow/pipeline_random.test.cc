/// \file
/// The pipeline against a naive switch: random messages of both versions, packets, and time.

#include <gtest/gtest.h>

#include <random>

#include "control/openflow/pipeline/pipeline.hh"
#include "naive_switch.hh"
#include "pipeline_dice.hh"
#include "pipeline_messages.hh"

namespace headrace::openflow {
namespace {

constexpr Time kMillisecond = 1'000'000;

std::vector<std::string> sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return texts;
}

void compare_with_naive(OpenFlowPipeline& pipeline, NaiveSwitch& naive, PipelineDice& dice, Time now) {
  std::vector<FlowStats> stats;
  FlowRequest<MultipartType::kFlow> request;
  if (dice.one_in(2)) {
    request.match = dice.match(Version::k1_3);
    request.match.exact_1_0 = false;
    if (dice.one_in(3)) request.out_port = 1 + dice.below(3);
    if (dice.one_in(3)) request.out_group = dice.below(5);
    if (dice.one_in(2)) request.table = static_cast<uint8_t>(dice.below(kTablesUsed));
    request.cookie_mask = dice.below(4);
    request.cookie = dice.below(4);
  }
  uint32_t cursor = 0;
  while (pipeline.flow_stats(request, now, cursor, 1 + dice.below(20), stats)) {
  }
  std::vector<std::string> ours, theirs;
  for (const FlowStats& one : stats) ours.push_back(flow_text(one));
  uint64_t packets = 0, bytes = 0;
  for (const NaiveSwitch::Entry& entry : naive.entries) {
    if (request.table != kAllTables && request.table != entry.mod.table) continue;
    if (((entry.cookie ^ request.cookie) & request.cookie_mask) != 0) continue;
    if (!NaiveSwitch::within(entry.mod.match.key, request.match.key)) continue;
    if (request.out_port != port::kAny && !NaiveSwitch::outputs_to(entry, request.out_port)) continue;
    if (request.out_group != group::kAny && !NaiveSwitch::names_group(entry, request.out_group)) continue;
    theirs.push_back(flow_text(naive.stats(entry, now)));
    packets += entry.packets;
    bytes += entry.bytes;
  }
  ASSERT_EQ(sorted(ours), sorted(theirs));
  const AggregateStats sum = samples::sum_of(pipeline, {request.table, request.out_port, request.out_group,
                                                        request.cookie, request.cookie_mask, request.match});
  EXPECT_EQ(sum, (AggregateStats{packets, bytes, static_cast<uint32_t>(theirs.size())}));

  ours.clear();
  theirs.clear();
  for (const FlowRemoved& one : pipeline.settle()) ours.push_back(removed_text(one));
  for (const FlowRemoved& one : naive.removed) theirs.push_back(removed_text(one));
  naive.removed.clear();
  ASSERT_EQ(sorted(ours), sorted(theirs));
  EXPECT_EQ(pipeline.unsettled(), 0u);

  for (const auto& [number, group] : naive.groups) {
    const auto described = pipeline.group_stats(number, now);
    ASSERT_EQ(described.size(), 1u);
    uint32_t references = 0;
    for (const NaiveSwitch::Entry& entry : naive.entries) references += NaiveSwitch::names_group(entry, number) ? 1 : 0;
    for (const auto& [other, mod] : naive.groups) {
      const auto names = [of = number](const Bucket& bucket) {
        return std::any_of(bucket.actions.begin(), bucket.actions.end(), [of](const Action& action) {
          return action.type == ActionType::kGroup && action.value == of;
        });
      };
      references += std::any_of(mod.buckets.begin(), mod.buckets.end(), names) ? 1 : 0;
    }
    EXPECT_EQ(described[0].references, references);
  }
  std::vector<GroupDescription> groups;
  for (const auto& [number, group] : naive.groups) groups.push_back({group.type, number, group.buckets});
  EXPECT_EQ(pipeline.group_descriptions(), groups);
}

/// Packets that both switches count.
void send_packets(OpenFlowPipeline& pipeline, NaiveSwitch& naive, PipelineDice& dice, Time now) {
  for (int i = 0; i < 8; ++i) {
    const auto table = static_cast<uint8_t>(dice.below(kTablesUsed));
    const PacketKey key = dice.key();
    const std::vector<size_t> best = naive.find(table, key);
    const AclMatch match = pipeline.view().find(table, key.w);
    ASSERT_EQ(best.empty(), match.number == AclMatch::kNone);
    if (best.size() != 1) continue;  // none, or one of several
    NaiveSwitch::Entry& entry = naive.entries[best[0]];
    pipeline.entry_counters().add(match.number, 1, 64 + static_cast<uint64_t>(i), now);
    entry.packets += 1;
    entry.bytes += 64 + static_cast<uint64_t>(i);
    entry.used = now;
  }
}

/// What messages at random must have met.
constexpr ErrorCode kErrors[] = {
    ErrorCode::kNone,
    ErrorCode::kActionBadOutPort,
    ErrorCode::kActionBadOutGroup,
    ErrorCode::kFlowModOverlap,
    ErrorCode::kInstructionBadTableId,
    ErrorCode::kGroupModGroupExists,
    ErrorCode::kGroupModUnknownGroup,
    ErrorCode::kFlowModBadTableId,
    ErrorCode::kGroupModLoop,
    ErrorCode::kFlowModTableFull,
};

class PipelineRandom : public ::testing::TestWithParam<int> {};

TEST_P(PipelineRandom, DoesAsANaiveSwitchDoes) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  PipelineDice dice([&random] { return static_cast<uint32_t>(random()); });
  PipelineOptions options;
  options.ports = {1, 2, 3, port::kLocal};
  options.most_entries = 24;
  options.most_words = 1u << 16;
  OpenFlowPipeline pipeline(options);
  NaiveSwitch naive;
  naive.ports = {1, 2, 3};
  naive.most_entries = 24;
  naive.meters = {1};
  MeterMod meter;
  meter.meter = 1;
  meter.flags = meter_flag::kPktps;
  meter.bands.push_back({MeterBandType::kDrop, 100, 0, 0, 0, {}});
  ASSERT_EQ(pipeline.meter_mod(meter, 0), ErrorCode::kNone);
  Time now = 1;
  std::map<ErrorCode, int> errors;
  // Compilers draw in different orders, so that some come across a rare error late.
  const auto rare = [&] {
    return std::any_of(std::begin(kErrors), std::end(kErrors), [&](ErrorCode error) { return errors[error] == 0; });
  };
  for (int step = 0; step < 1000 || (step < 20000 && rare()); ++step) {
    if (dice.one_in(8)) {
      const GroupMod mod = dice.group_mod();
      const ErrorCode expected = naive.group_mod(mod, now);
      ASSERT_EQ(pipeline.group_mod(mod, now), expected) << "step " << step;
      ++errors[expected];
    } else {
      const Version version = dice.one_in(3) ? Version::k1_0 : Version::k1_3;
      const FlowMod mod = dice.flow_mod(version);
      const ErrorCode expected = naive.flow_mod(mod, version, now);
      ASSERT_EQ(pipeline.flow_mod(mod, version, now), expected) << "step " << step;
      ++errors[expected];
    }
    if (dice.one_in(3)) continue;
    ASSERT_TRUE(OpenFlowPipeline::seen(pipeline.commit()));
    ASSERT_NO_FATAL_FAILURE(send_packets(pipeline, naive, dice, now)) << "step " << step;
    now += dice.below(100) * kMillisecond;
    naive.expire(now);
    pipeline.expire(now);
    ASSERT_NO_FATAL_FAILURE(compare_with_naive(pipeline, naive, dice, now)) << "step " << step;
    EXPECT_EQ(pipeline.size(), naive.entries.size());
  }
  for (const ErrorCode error : kErrors) EXPECT_GT(errors[error], 0) << static_cast<int>(error);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PipelineRandom, ::testing::Range(1, 9));

}  // namespace
}  // namespace headrace::openflow
