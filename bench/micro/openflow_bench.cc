/// \file
/// What messages cost a switch: flow-mods of a second, without the channel. What a worker pays to count a device's results.
///
///     build/headrace_micro --benchmark_filter=openflow

#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "control/openflow/pipeline/pipeline.hh"
#include "control/openflow/switch/switch_datapath.hh"
#include "elements/openflow/OpenFlowTables.hh"
#include "elements/openflow/openflow_owner.hh"
#include "headrace/packet.hh"
#include "headrace/real_clock.hh"
#include "runtime/runtime.hh"

namespace headrace::openflow {
namespace {

KeyMatch flow_match(uint32_t number, bool exact) {
  KeyMatch match;
  const auto set = [&](const char* name, uint64_t value, uint64_t mask) {
    const KeyField& field = *find_key_field(name);
    set_key_field(match.value, field, {0, value & mask});
    set_key_field(match.mask, field, {0, mask});
  };
  set("dl_type", 0x800, 0xffff);
  set("nw_dst", 0x0a000000 + number * 256, exact ? 0xffffffff : 0xffffff00);
  if (!exact) return match;
  set("in_port", 1, 0xffffffff);
  set("nw_src", number, 0xffffffff);
  set("nw_proto", 6, 0xff);
  set("tcp_src", number & 0xffff, 0xffff);
  set("tcp_dst", 80, 0xffff);
  return match;
}

/// Rounds of an addition, a modification and a removal beside so many entries, one in 1,000 with a wildcard; a commit
/// after each 32 messages, as many as a channel may have read. Modifications and removals are strict or not.
void openflow_flow_mods(benchmark::State& state) {
  PipelineOptions options;
  options.ports = {1, 2, 3, 4};
  OpenFlowPipeline pipeline(options);
  const auto entries = static_cast<uint32_t>(state.range(0));
  const bool strict = state.range(1) != 0;
  FlowMod mod;
  mod.instructions.emplace_back().actions.emplace_back().value = 1;
  for (uint32_t i = 0; i < entries; ++i) {
    mod.match.key = flow_match(i, i % 1000 != 0);
    if (pipeline.flow_mod(mod, Version::k1_3, 0) != ErrorCode::kNone) return state.SkipWithError("no entry");
  }
  pipeline.commit();
  uint32_t number = entries;
  uint64_t messages = 0;
  const auto send = [&](FlowCommand command) {
    mod.command = command;
    mod.match.key = flow_match(number, true);
    mod.instructions[0].actions[0].value = 1 + static_cast<uint32_t>(messages) % 4;
    benchmark::DoNotOptimize(pipeline.flow_mod(mod, Version::k1_3, 0));
    if (++messages % 32 == 0) {
      pipeline.commit();
      benchmark::DoNotOptimize(pipeline.settle());
    }
  };
  for (auto _ : state) {
    send(FlowCommand::kAdd);
    send(strict ? FlowCommand::kModifyStrict : FlowCommand::kModify);
    send(strict ? FlowCommand::kDeleteStrict : FlowCommand::kDelete);
    ++number;
  }
  state.SetItemsProcessed(static_cast<int64_t>(messages));
}
BENCHMARK(openflow_flow_mods)->ArgNames({"entries", "strict"})->ArgsProduct({{1000, 32768, 1000000}, {1, 0}});

/// The same entries added one after the other.
void openflow_fill(benchmark::State& state) {
  const auto entries = static_cast<uint32_t>(state.range(0));
  for (auto _ : state) {
    PipelineOptions options;
    options.ports = {1};
    OpenFlowPipeline pipeline(options);
    FlowMod mod;
    mod.instructions.emplace_back().actions.emplace_back().value = 1;
    for (uint32_t i = 0; i < entries; ++i) {
      mod.match.key = flow_match(i, true);
      benchmark::DoNotOptimize(pipeline.flow_mod(mod, Version::k1_3, 0));
      if (i % 32 == 0) pipeline.commit();
    }
  }
  state.SetItemsProcessed(state.iterations() * entries);
}
BENCHMARK(openflow_fill)->ArgName("entries")->Arg(32768)->Arg(1000000)->Unit(benchmark::kMillisecond);

/// Batches that come back from a device, their results in rows of 64 bytes: half of the packets have met one of so many exact
/// entries, half one of 32, and they leave by two ports. As many packets are under way as a worker's jobs hold.
void openflow_release(benchmark::State& state) {
  constexpr int kBatch = 256;
  constexpr size_t kPackets = 8192, kRow = 64, kWords = kRow / sizeof(uint32_t), kResult = 4;
  const auto exact = static_cast<uint32_t>(state.range(0));
  Runtime runtime(Runtime::Options{.threads = 1, .cpus = {}});
  const auto datapath = std::make_shared<SwitchDatapath>(
      1, [] { return clock::steady().ns; }, PacketInQueue::Options{});
  OpenFlowOwner owner;
  Errors errors;
  if (!publish_datapath("openflow_release", datapath) || !owner.attach("openflow_release", errors).ok())
    return state.SkipWithError("no datapath");
  headrace::OpenFlowTables tables;
  tables.ports = 4;
  datapath->pipeline().entry_counters().reserve(exact + 32);
  if (state.range(1) != 0) datapath->pipeline().entry_counters().keep_times();

  std::mt19937 random(1);
  std::vector<Packet*> packets;
  std::vector<uint32_t> rows(kPackets * kWords);
  for (size_t i = 0; i < kPackets; ++i) {
    Packet* const p = Packet::make(64);
    if (p == nullptr) return state.SkipWithError("no packets");
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(i / 32 % 2));
    packets.push_back(p);
    const uint32_t entry = random() % 2 == 0 ? random() % 32 : 32 + random() % exact;
    Visits visits;
    visits.set_length(64);
    visits.set_entry(0, entry);
    visits.set_output(3 + entry % 2);
    std::memcpy(&rows[i * kWords + kResult], &visits, sizeof visits);
  }
  for (auto _ : state)
    for (size_t i = 0; i < kPackets; i += kBatch)
      tables.release(&packets[i], Results<Visits>(&rows[i * kWords + kResult], kRow), kBatch, owner);
  for (Packet* const p : packets) p->kill();
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kPackets));
}
BENCHMARK(openflow_release)->ArgNames({"entries", "times"})->ArgsProduct({{1024, 32768, 1 << 20}, {0, 1}});

}  // namespace
}  // namespace headrace::openflow
