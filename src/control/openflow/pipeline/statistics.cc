/// \file
/// What a pipeline answers to requests for statistics.

#include <algorithm>

#include "control/openflow/pipeline/duration.hh"
#include "control/openflow/pipeline/pipeline.hh"

namespace headrace::openflow {

namespace {

/// All of OpenFlow 1.0's wildcards (OFPFW_ALL).
constexpr uint32_t kAllWildcards = (1u << 22) - 1;

bool is_within(const KeyMatch& part, const KeyMatch& whole) {
  uint32_t outside = 0;
  for (uint32_t i = 0; i < key_word::kCount; ++i)
    outside |= (whole.mask[i] & ~part.mask[i]) | ((part.value[i] ^ whole.value[i]) & whole.mask[i]);
  return outside == 0;
}

/// Where the piece of a walk over `entries` entries ends that begins at `cursor`.
uint32_t piece_end(uint32_t cursor, size_t entries) {
  return static_cast<uint32_t>(std::min<size_t>(entries, size_t{cursor} + OpenFlowPipeline::kMostLookedAt));
}

}  // namespace

FlowStats OpenFlowPipeline::stats_of(uint32_t number, Time now) const {
  const FlowEntry& entry = entries_[number];
  FlowStats stats;
  stats.table = entry.table;
  set_duration(stats, now - entry.created);
  stats.priority = entry.priority;
  stats.idle_timeout = entry.idle_timeout;
  stats.hard_timeout = entry.hard_timeout;
  stats.flags = entry.flags;
  stats.cookie = entry.cookie;
  const Count count = count_of(number);
  stats.packets = count.packets;
  stats.bytes = count.bytes;
  stats.match.key = table(entry.table)->match_of(number);
  stats.match.exact_1_0 = entry.rank == kExactRank;
  stats.instructions = entry.program->instructions;
  return stats;
}

template <MultipartType kType>
bool OpenFlowPipeline::is_named(const FlowRequest<kType>& request, const FlowEntry& entry) const {
  return entry.state == FlowEntry::State::kThere && (request.table == kAllTables || request.table == entry.table) &&
         ((entry.cookie ^ request.cookie) & request.cookie_mask) == 0 &&
         (request.out_port == port::kAny || entry.program->outputs_to(request.out_port)) &&
         (request.out_group == group::kAny || entry.program->names_group(request.out_group));
}

bool OpenFlowPipeline::flow_stats(const FlowRequest<MultipartType::kFlow>& request, Time now, uint32_t& cursor,
                                  size_t most, std::vector<FlowStats>& stats) const {
  for (const uint32_t end = piece_end(cursor, entries_.size()); cursor < end && most != 0; ++cursor) {
    const FlowEntry& entry = entries_[cursor];
    if (!is_named(request, entry) || !is_within(table(entry.table)->match_of(cursor), request.match.key)) continue;
    stats.push_back(stats_of(cursor, now));
    --most;
  }
  return cursor < entries_.size();
}

bool OpenFlowPipeline::aggregate(AggregateWalk& walk) const {
  for (const uint32_t end = piece_end(walk.cursor, entries_.size()); walk.cursor < end; ++walk.cursor) {
    const FlowEntry& entry = entries_[walk.cursor];
    if (!is_named(walk.request, entry) || !is_within(table(entry.table)->match_of(walk.cursor), walk.request.match.key))
      continue;
    const Count count = count_of(walk.cursor);
    walk.stats.packets += count.packets;
    walk.stats.bytes += count.bytes;
    ++walk.stats.flows;
  }
  return walk.cursor < entries_.size();
}

OpenFlowPipeline::TableWalk::TableWalk(OpenFlowPipeline& pipeline)
    : pipeline_(pipeline), matches_(pipeline.past_matches_) {
  pipeline_.table_walks_.push_back(this);
}

OpenFlowPipeline::TableWalk::~TableWalk() { std::erase(pipeline_.table_walks_, this); }

bool OpenFlowPipeline::TableWalk::step() {
  const std::vector<FlowEntry>& entries = pipeline_.entries_;
  for (const uint32_t end = piece_end(cursor_, entries.size()); cursor_ < end; ++cursor_)
    if (entries[cursor_].state != FlowEntry::State::kFree)
      matches_[entries[cursor_].table] += pipeline_.matches_of(cursor_);
  return cursor_ < entries.size();
}

void OpenFlowPipeline::TableWalk::settles(uint32_t number) {
  // Behind the cursor they are in the sum already.
  if (number >= cursor_) matches_[pipeline_.entries_[number].table] += pipeline_.matches_of(number);
}

std::vector<TableStats> OpenFlowPipeline::TableWalk::statistics() const {
  const TableConfigs& configs = pipeline_.configs_;
  std::vector<TableStats> all;
  for (uint32_t number = 0; number < kMostTables; ++number) {
    if (!configs.has(number)) continue;
    TableStats stats;
    stats.table = static_cast<uint8_t>(number);
    stats.name = configs.name(number);
    stats.wildcards = kAllWildcards;
    stats.max_entries = configs.most_entries(number);
    if (const FlowTable* const flows = pipeline_.table(number)) stats.active = static_cast<uint32_t>(flows->size());
    stats.matches = matches_[number];
    stats.lookups = stats.matches + pipeline_.miss_counters_.sum(number).packets;
    all.push_back(std::move(stats));
  }
  return all;
}

std::vector<GroupStats> OpenFlowPipeline::group_stats(uint32_t group, Time now) const {
  std::vector<GroupStats> stats;
  if (group == group::kAll) {
    for (const auto& [number, one] : groups_.all()) stats.push_back(groups_.statistics(number, now));
  } else if (groups_.has(group)) {
    stats.push_back(groups_.statistics(group, now));
  }
  return stats;
}

std::vector<GroupDescription> OpenFlowPipeline::group_descriptions() const {
  std::vector<GroupDescription> all;
  for (const auto& [number, one] : groups_.all()) all.push_back(groups_.description(number));
  return all;
}

ErrorCode OpenFlowPipeline::meter_stats(uint32_t meter, Time now, std::vector<MeterStats>& stats) const {
  if (meter != Meters::kAll && !meters_.has(meter)) return ErrorCode::kMeterModUnknownMeter;
  for (const uint32_t number : meters_.numbers())
    if (meter == Meters::kAll || meter == number) stats.push_back(meters_.statistics(number, now));
  return ErrorCode::kNone;
}

ErrorCode OpenFlowPipeline::meter_configurations(uint32_t meter, std::vector<MeterConfig>& configs) const {
  if (meter != Meters::kAll && !meters_.has(meter)) return ErrorCode::kMeterModUnknownMeter;
  for (const uint32_t number : meters_.numbers())
    if (meter == Meters::kAll || meter == number) configs.push_back(meters_.configuration(number));
  return ErrorCode::kNone;
}

}  // namespace headrace::openflow
