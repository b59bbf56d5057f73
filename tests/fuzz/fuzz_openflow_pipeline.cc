/// Fuzzes the tables of an OpenFlow switch: the input is a stream of messages, of which those that change tables, groups and
/// meters are obeyed. A message that is refused changes nothing, and what is there is whole.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <variant>
#include <vector>

#include "control/openflow/codec.hh"
#include "control/openflow/pipeline/pipeline.hh"

namespace {

using namespace headrace;
using namespace headrace::openflow;

void require_pipeline(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

struct PipelineState {
  std::vector<FlowStats> flows;
  std::vector<GroupDescription> groups;
  std::vector<MeterConfig> meters;
  std::vector<TableFeatures> tables;
  bool operator==(const PipelineState&) const = default;
};

/// \param tables with the features of tables, which take long to list
PipelineState state_of(const OpenFlowPipeline& pipeline, Time now, bool tables) {
  PipelineState state;
  uint32_t cursor = 0;
  while (pipeline.flow_stats({}, now, cursor, 1000, state.flows)) {
  }
  state.groups = pipeline.group_descriptions();
  (void)pipeline.meter_configurations(Meters::kAll, state.meters);
  if (tables) state.tables = pipeline.table_features();
  return state;
}

void check_ops(const OpRange& range) {
  const uint32_t* end = range.begin();
  range.each([&](const uint32_t* op) {
    require_pipeline(op_of(*op) <= Op::kCopyTtlIn, "an unknown operation");
    end = op + op_words(*op);
  });
  require_pipeline(end == range.end(), "operations end beside their end");
}

void check_entries(OpenFlowPipeline& pipeline, const PipelineState& state, Time now) {
  require_pipeline(state.flows.size() == pipeline.size(), "the number of entries is wrong");
  const OpenFlowView view = pipeline.view();
  for (const FlowStats& flow : state.flows) {
    PacketKey key;
    std::copy(flow.match.key.value.begin(), flow.match.key.value.end(), key.w);
    const AclMatch match = view.find(flow.table, key.w);
    require_pipeline(match.number != AclMatch::kNone, "an entry is not found");
    require_pipeline(match.priority >= (flow.match.exact_1_0 ? kExactRank : flow.priority), "a worse entry is found");
    const ProgramView program = view.program(match.data);
    check_ops(program.apply_actions());
    check_ops(program.write_actions());
    pipeline.entry_counters().add(match.number, 1, 64, now);
  }
  for (const GroupDescription& description : state.groups) {
    const GroupView group = view.group(pipeline.groups().slot_of(description.group));
    require_pipeline(group.exists() && group.buckets() == description.buckets.size(), "a group is not whole");
    for (uint32_t i = 0; i < group.buckets(); ++i) check_ops(view.program(group.program(i)).apply_actions());
    const uint32_t chosen = group.choose(static_cast<uint32_t>(now));
    require_pipeline(chosen < group.buckets() || chosen == GroupView::kNoBucket, "no such bucket");
  }
}

/// False: the message is for others.
bool obey(OpenFlowPipeline& pipeline, const Message& message, Time now, ErrorCode& error) {
  if (const auto* const flow = std::get_if<FlowMod>(&message.body)) {
    error = pipeline.flow_mod(*flow, message.version, now);
  } else if (const auto* const group = std::get_if<GroupMod>(&message.body)) {
    error = pipeline.group_mod(*group, now);
  } else if (const auto* const meter = std::get_if<MeterMod>(&message.body)) {
    error = pipeline.meter_mod(*meter, now);
  } else if (const auto* const table = std::get_if<TableMod>(&message.body)) {
    error = pipeline.table_mod(*table);
  } else if (const auto* const request = std::get_if<MultipartRequest>(&message.body)) {
    const auto* const features = std::get_if<std::vector<TableFeatures>>(&request->body);
    if (features == nullptr) return false;
    error = pipeline.set_table_features(*features);
  } else {
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr Time kStep = 300'000'000;
  PipelineOptions options;
  options.ports = {1, 2, 3, 4, 5, 6, 7, port::kLocal};
  options.most_entries = 20;
  options.most_words = 1u << 12;
  OpenFlowPipeline pipeline(options);
  for (uint32_t port = 1; port < 4; ++port) pipeline.set_port_alive(port, true);
  Time now = 1;
  for (std::span<const std::uint8_t> stream(data, size); stream.size() >= 8;) {
    const size_t length = std::clamp<size_t>(read_header(stream).length, 8, stream.size());
    Message message;
    ErrorCode error = decode(stream.first(length), message);
    stream = stream.subspan(length);
    if (error != ErrorCode::kNone) continue;
    const bool tables = message.type() == MessageType::kTableMod || message.type() == MessageType::kMultipartRequest;
    const PipelineState before = state_of(pipeline, now, tables);
    if (!obey(pipeline, message, now, error)) continue;
    const PipelineState after = state_of(pipeline, now, tables);
    if (error != ErrorCode::kNone) require_pipeline(after == before, "a message that is refused has changed something");
    pipeline.commit();
    check_entries(pipeline, after, now);
    now += kStep;
    pipeline.expire(now);
    std::vector<std::uint8_t> out;
    for (FlowRemoved& removed : pipeline.settle()) (void)encode({message.version, 0, std::move(removed), 0}, out);
    MultipartReply reply;
    reply.body = after.flows;
    (void)encode({message.version, 0, std::move(reply), 0}, out);
  }
  return 0;
}
