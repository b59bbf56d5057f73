/// \file
/// The pipeline against a naive switch: random messages of both versions, packets, and time.

#include <gtest/gtest.h>

#include <random>

#include "control/openflow/pipeline/pipeline.hh"
#include "naive_switch.hh"

namespace headrace::openflow {
namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr int kTablesUsed = 3;

/// Random messages and keys from so few values that they often meet.
class PipelineDice {
 public:
  explicit PipelineDice(uint32_t seed) : random_(seed) {}

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
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

  std::mt19937 random_;
};

std::string flow_text(const FlowStats& s) {
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

std::string removed_text(const FlowRemoved& r) {
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
  const AggregateStats sum = sum_of(pipeline, {request.table, request.out_port, request.out_group, request.cookie,
                                               request.cookie_mask, request.match});
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
  PipelineDice dice(static_cast<uint32_t>(GetParam()));
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
