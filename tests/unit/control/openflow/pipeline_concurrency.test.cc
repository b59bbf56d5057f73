/// \file
/// Threads that walk the tables while messages change them.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"
#include "pipeline_messages.hh"

namespace headrace::openflow {
namespace {

using namespace samples;

/// Table 0 sends all packets to a group or a table that was made just before, and which goes just after the next one is
/// there. A reader must always find the whole of one of them.
TEST(PipelineConcurrency, ReadersFindWhatAnEntryNames) {
  PipelineOptions options = pipeline_options();
  options.most_entries = 1000;
  OpenFlowPipeline pipeline(options);
  const PacketKey key = packet_key_of("in_port=1");
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> walks{0}, broken{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&] {
      rcu::Reader reader;
      const OpenFlowView view = pipeline.view();
      while (!stop.load(std::memory_order_relaxed)) {
        reader.quiescent();
        const AclMatch first = view.find(0, key.w);
        if (first.number == AclMatch::kNone) continue;
        ++walks;
        const ProgramView program = view.program(first.data);
        uint32_t port = 0;
        if (program.has(program_flag::kGoto)) {
          // Table 1 has one entry for each time; the packet carries which one it is for.
          PacketKey changed = key;
          program.write_metadata(changed.w + key_word::kMetadata);
          const AclMatch second = view.find(1, changed.w);
          if (second.number != AclMatch::kNone) port = view.program(second.data).only_port();
        } else if (program.has(program_flag::kHasGroup)) {
          const GroupView group = view.group(op_slot(op_word(program.apply_actions().begin())));
          if (group.exists()) port = view.program(group.program(group.choose(0))).only_port();
        }
        if (port != 3) ++broken;
      }
    });
  const auto change = [&](const FlowMod& mod) {
    ASSERT_EQ(pipeline.flow_mod(mod, Version::k1_3, 0), ErrorCode::kNone);
  };
  for (uint32_t i = 1; i <= 200 || walks.load() < 1000; ++i) {
    FlowMod second = flow(FlowCommand::kAdd, "metadata=" + std::to_string(i), 1, {apply({output(3)})});
    second.table = 1;
    change(second);
    Instruction metadata;
    metadata.type = InstructionType::kWriteMetadata;
    metadata.metadata = i;
    metadata.metadata_mask = ~uint64_t{0};
    change(flow(FlowCommand::kAdd, "", 1, {metadata, go_to(1)}));
    ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kAdd, i, GroupType::kIndirect, {{output(3)}}), 0),
              ErrorCode::kNone);
    // What readers may still be on the way to goes when they have passed.
    const auto wait = [&] {
      const rcu::Epoch point = pipeline.commit();
      while (!OpenFlowPipeline::seen(point)) std::this_thread::yield();
    };
    change(flow(FlowCommand::kModify, "", 1, {apply({to_group(i)})}));
    wait();
    second.command = FlowCommand::kDeleteStrict;
    change(second);
    Instruction next = metadata;
    next.metadata = i + 1;
    FlowMod third = flow(FlowCommand::kAdd, "metadata=" + std::to_string(i + 1), 1, {apply({output(3)})});
    third.table = 1;
    change(third);
    change(flow(FlowCommand::kModify, "", 1, {next, go_to(1)}));
    wait();
    ASSERT_EQ(pipeline.group_mod(change_group(GroupCommand::kDelete, i), 0), ErrorCode::kNone);
    (void)pipeline.settle();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken.load(), 0u);
  EXPECT_EQ(pipeline.size(), 2u);
}

}  // namespace
}  // namespace headrace::openflow
