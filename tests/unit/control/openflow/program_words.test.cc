/// \file
/// Instructions as words, and what a device can do of them.

#include "control/openflow/pipeline/program_words.hh"

#include <gtest/gtest.h>

#include "pipeline_messages.hh"

namespace headrace::openflow {
namespace {

using namespace samples;

const ProgramNames kProgramNames{[](uint32_t group) { return group + 100; }, [](uint32_t meter) { return meter + 7; }};

std::vector<Op> ops_of(const OpRange& range) {
  std::vector<Op> ops;
  range.each([&](const uint32_t* op) { ops.push_back(op_of(*op)); });
  return ops;
}

bool simple(const std::vector<Instruction>& instructions) {
  const auto words = *entry_program(instructions, kProgramNames);
  return !ProgramView(words.data()).has(program_flag::kNeedsHost);
}

TEST(ProgramWords, HaveEachOperation) {
  Instruction metadata;
  metadata.type = InstructionType::kWriteMetadata;
  metadata.metadata = 0x1122334455667788;
  metadata.metadata_mask = 0xff000000000000ff;
  const std::vector<Action> actions{output(port::kController, 77),
                                    to_group(5),
                                    set_field("ipv6_src", "0011:2233:4455:6677:8899:aabb:ccdd:eeff"),
                                    action(ActionType::kSetNwTtl, 9),
                                    action(ActionType::kDecNwTtl),
                                    action(ActionType::kPushVlan, 0, 0x88a8),
                                    action(ActionType::kPopVlan),
                                    action(ActionType::kSetVlanVid, 5),
                                    action(ActionType::kSetVlanPcp, 6),
                                    action(ActionType::kPushMpls, 0, 0x8847),
                                    action(ActionType::kPopMpls, 0, 0x800),
                                    action(ActionType::kSetMplsTtl, 3),
                                    action(ActionType::kDecMplsTtl),
                                    action(ActionType::kPushPbb, 0, 0x88e7),
                                    action(ActionType::kPopPbb),
                                    action(ActionType::kCopyTtlOut),
                                    action(ActionType::kCopyTtlIn)};
  const auto words = *entry_program({through_meter(2), apply(actions), metadata, go_to(200)}, kProgramNames);
  const ProgramView program(words.data());
  EXPECT_EQ(program.meter(), 10u);
  EXPECT_TRUE(program.has(program_flag::kGoto));
  EXPECT_EQ(program.goto_table(), 200u);
  EXPECT_TRUE(program.has(program_flag::kNeedsHost));
  EXPECT_TRUE(program.has(program_flag::kHasGroup));
  EXPECT_FALSE(program.has(program_flag::kClears));
  uint32_t words_of_metadata[2] = {0xffffffff, 0xffffff00};
  program.write_metadata(words_of_metadata);
  EXPECT_EQ(words_of_metadata[0], 0x11ffffffu);
  EXPECT_EQ(words_of_metadata[1], 0xffffff88u);
  EXPECT_TRUE(program.write_actions().empty());
  EXPECT_EQ(program.apply_actions().end(), words.data() + words.size());
  std::vector<const uint32_t*> ops;
  program.apply_actions().each([&](const uint32_t* op) { ops.push_back(op); });
  ASSERT_EQ(ops.size(), actions.size());
  EXPECT_EQ(op_half(*ops[0]), 77u);
  EXPECT_EQ(ops[0][1], port::kController);
  EXPECT_EQ(op_slot(*ops[1]), 105u);
  const SetField set(ops[2]);
  EXPECT_EQ(set.field, 26u);
  PacketKey key{};
  set.apply(key.w);
  EXPECT_EQ(get_key_field(key.w, *find_key_field("ipv6_src")), (KeyValue{0x0011223344556677, 0x8899aabbccddeeff}));
  EXPECT_EQ(op_byte(*ops[3]), 9u);
  EXPECT_EQ(op_half(*ops[5]), 0x88a8u);
  EXPECT_EQ(op_half(*ops[7]), 5u);
  EXPECT_EQ(op_half(*ops[8]), 6u);
  EXPECT_EQ(op_half(*ops[10]), 0x800u);
  EXPECT_EQ(op_byte(*ops[11]), 3u);
  EXPECT_EQ(op_of(*ops[16]), Op::kCopyTtlIn);
}

TEST(ProgramWords, SetEachFieldOfAKey) {
  for (const KeyField& field : key_fields()) {
    Action set = action(ActionType::kSetField);
    set.field = field.oxm;
    set.set = key_field_ones(field);
    const auto words = *entry_program({apply({set})}, kProgramNames);
    PacketKey key{}, expected{};
    ProgramView(words.data()).apply_actions().each([&](const uint32_t* op) { SetField(op).apply(key.w); });
    set_key_field(expected.w, field, key_field_ones(field));
    EXPECT_TRUE(std::equal(std::begin(key.w), std::end(key.w), expected.w)) << field.name;
    std::fill(std::begin(key.w), std::end(key.w), ~0u);
    set.set = {};
    const auto zeros = *entry_program({apply({set})}, kProgramNames);
    ProgramView(zeros.data()).apply_actions().each([&](const uint32_t* op) { SetField(op).apply(key.w); });
    // A tag that a VLAN is set in is still there.
    EXPECT_EQ(get_key_field(key.w, field), (KeyValue{0, field.oxm == 6 ? 0x1000u : 0u})) << field.name;
  }
}

TEST(ProgramWords, PutAnActionSetInItsOrder) {
  const std::vector<Action> written{output(1),
                                    set_field("eth_dst", "00:00:00:00:00:01"),
                                    action(ActionType::kPushVlan, 0, 0x8100),
                                    action(ActionType::kDecNwTtl),
                                    set_field("eth_dst", "00:00:00:00:00:02"),
                                    action(ActionType::kPopMpls, 0, 0x800),
                                    action(ActionType::kCopyTtlIn),
                                    set_field("vlan_vid", "3"),
                                    output(2)};
  const auto words = *entry_program({write(written)}, kProgramNames);
  const ProgramView program(words.data());
  EXPECT_EQ(ops_of(program.write_actions()),
            (std::vector<Op>{Op::kCopyTtlIn, Op::kPopMpls, Op::kPushVlan, Op::kDecNwTtl, Op::kSetField, Op::kSetField,
                             Op::kOutput}));
  EXPECT_EQ(program.write_actions().end()[-1], 2u);
  EXPECT_TRUE(program.apply_actions().empty());
  // A group takes the place of an output.
  const auto grouped =
      *bucket_program({to_group(1), output(1), set_field("eth_dst", "00:00:00:00:00:01")}, kProgramNames);
  EXPECT_EQ(ops_of(ProgramView(grouped.data()).apply_actions()), (std::vector<Op>{Op::kSetField, Op::kGroup}));
}

TEST(ProgramWords, TellWhatADeviceCanDo) {
  EXPECT_TRUE(simple({}));
  EXPECT_TRUE(simple({apply({output(1)})}));
  EXPECT_TRUE(simple({apply({set_field("nw_dst", "0.0.0.1"), action(ActionType::kDecNwTtl), output(1)})}));
  EXPECT_TRUE(simple({apply({set_field("nw_dst", "0.0.0.1")}), go_to(1)}));
  EXPECT_TRUE(simple({write({action(ActionType::kPopVlan), output(port::kLocal)}), go_to(1)}));
  EXPECT_TRUE(simple({apply({to_group(1)})}));
  EXPECT_FALSE(simple({apply({output(1), output(2)})}));
  EXPECT_FALSE(simple({apply({output(1), set_field("nw_dst", "0.0.0.1")})}));
  EXPECT_FALSE(simple({apply({output(1)}), go_to(1)}));
  EXPECT_FALSE(simple({apply({output(1)}), write({set_field("nw_dst", "0.0.0.1")})}));
  EXPECT_FALSE(simple({apply({output(port::kFlood)})}));
  EXPECT_FALSE(simple({apply({output(port::kController)})}));
  EXPECT_FALSE(simple({apply({set_field("arp_op", "1")})}));
  EXPECT_FALSE(simple({apply({action(ActionType::kPushMpls, 0, 0x8847)})}));
  EXPECT_FALSE(simple({through_meter(1), apply({output(1)})}));
}

TEST(ProgramWords, HaveAShortFormOfOneOutput) {
  const auto port_of = [](const std::vector<Instruction>& instructions) -> uint32_t {
    const auto words = *entry_program(instructions, kProgramNames);
    const ProgramView program(words.data());
    return program.has(program_flag::kOnlyOutput) ? program.only_port() : 0;
  };
  EXPECT_EQ(port_of({apply({output(3)})}), 3u);
  EXPECT_EQ(port_of({apply({output(port::kInPort)})}), port::kInPort);
  Instruction clear;
  clear.type = InstructionType::kClearActions;
  EXPECT_EQ(port_of({apply({output(3)}), clear}), 0u);
  EXPECT_EQ(port_of({write({output(3)})}), 0u);
  EXPECT_EQ(port_of({apply({output(3)}), go_to(3)}), 0u);
  EXPECT_EQ(port_of({apply({action(ActionType::kDecNwTtl), output(3)})}), 0u);
  EXPECT_EQ(port_of({}), 0u);
}

TEST(ProgramWords, HaveAShortFormOfRouters) {
  const auto port_of = [](const std::vector<Instruction>& instructions) -> uint32_t {
    const auto words = *entry_program(instructions, kProgramNames);
    const ProgramView program(words.data());
    return program.has(program_flag::kRoutes) ? program.only_port() : 0;
  };
  const Action ttl = action(ActionType::kDecNwTtl), destination = set_field("dl_dst", "02:00:00:00:00:01"),
               source = set_field("dl_src", "02:00:00:00:00:02");
  EXPECT_EQ(port_of({apply({ttl, output(3)})}), 3u);
  EXPECT_EQ(port_of({apply({source, ttl, destination, output(port::kInPort)})}), port::kInPort);
  EXPECT_EQ(port_of({apply({destination, output(4)})}), 4u);
  EXPECT_EQ(port_of({apply({output(3)})}), 0u);
  EXPECT_EQ(port_of({apply({ttl, ttl, output(3)})}), 0u);
  EXPECT_EQ(port_of({apply({ttl})}), 0u);
  EXPECT_EQ(port_of({apply({ttl, to_group(1)})}), 0u);
  EXPECT_EQ(port_of({apply({ttl, output(port::kFlood)})}), 0u);
  EXPECT_EQ(port_of({apply({set_field("nw_dst", "0.0.0.1"), output(3)})}), 0u);
  EXPECT_EQ(port_of({apply({ttl, output(3)}), go_to(3)}), 0u);
  EXPECT_EQ(port_of({apply({ttl, output(3)}), write({destination})}), 0u);
  EXPECT_EQ(port_of({through_meter(1), apply({ttl, output(3)})}), 0u);
}

}  // namespace
}  // namespace headrace::openflow
