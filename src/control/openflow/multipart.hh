#pragma once
/// \file
/// Multipart messages (1.0: statistics), by MultipartType.

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "control/openflow/messages.hh"

namespace headrace::openflow {

/// Whose type says everything.
template <MultipartType kType>
struct EmptyRequest {
  bool operator==(const EmptyRequest&) const = default;
};
/// One number: a group or a meter.
template <MultipartType kType>
struct NumberRequest {
  uint32_t number = 0;
  bool operator==(const NumberRequest&) const = default;
};

/// Of single flows and of aggregates.
template <MultipartType kType>
struct FlowRequest {
  uint8_t table = kAllTables;
  uint32_t out_port = port::kAny;
  uint32_t out_group = group::kAny;      ///< not in 1.0
  uint64_t cookie = 0, cookie_mask = 0;  ///< not in 1.0
  Match match;
  bool operator==(const FlowRequest&) const = default;
};
struct PortStatsRequest {
  uint32_t port = port::kAny;
  bool operator==(const PortStatsRequest&) const = default;
};
struct QueueStatsRequest {
  uint32_t port = port::kAny;
  uint32_t queue = kAllQueues;
  bool operator==(const QueueStatsRequest&) const = default;
};

struct Description {
  std::string manufacturer, hardware, software, serial, datapath;
  bool operator==(const Description&) const = default;
};

struct FlowStats {
  uint8_t table = 0;
  uint32_t duration_s = 0, duration_ns = 0;
  uint16_t priority = 0, idle_timeout = 0, hard_timeout = 0;
  uint64_t flags = 0;  ///< flow_flag; not in 1.0
  uint64_t cookie = 0, packets = 0, bytes = 0;
  Match match;
  std::vector<Instruction> instructions;
  bool operator==(const FlowStats&) const = default;
};

struct AggregateStats {
  uint64_t packets = 0, bytes = 0;
  uint32_t flows = 0;
  bool operator==(const AggregateStats&) const = default;
};

struct TableStats {
  uint8_t table = 0;
  std::string name;                         ///< 1.0 only
  uint32_t wildcards = 0, max_entries = 0;  ///< 1.0 only
  uint32_t active = 0;
  uint64_t lookups = 0, matches = 0;
  bool operator==(const TableStats&) const = default;
};

struct PortStats {
  uint32_t port = 0;
  uint64_t rx_packets = 0, tx_packets = 0, rx_bytes = 0, tx_bytes = 0, rx_dropped = 0, tx_dropped = 0, rx_errors = 0,
           tx_errors = 0, rx_frame_errors = 0, rx_overruns = 0, rx_crc_errors = 0, collisions = 0;
  uint32_t duration_s = 0, duration_ns = 0;  ///< not in 1.0
  bool operator==(const PortStats&) const = default;
};

struct QueueStats {
  uint32_t port = 0, queue = 0;
  uint64_t tx_bytes = 0, tx_packets = 0, tx_errors = 0;
  uint32_t duration_s = 0, duration_ns = 0;  ///< not in 1.0
  bool operator==(const QueueStats&) const = default;
};

struct Counters {
  uint64_t packets = 0, bytes = 0;
  bool operator==(const Counters&) const = default;
};

struct GroupStats {
  uint32_t group = 0, references = 0;
  uint64_t packets = 0, bytes = 0;
  uint32_t duration_s = 0, duration_ns = 0;
  std::vector<Counters> buckets;
  bool operator==(const GroupStats&) const = default;
};

struct GroupDescription {
  GroupType type = GroupType::kAll;
  uint32_t group = 0;
  std::vector<Bucket> buckets;
  bool operator==(const GroupDescription&) const = default;
};

/// Arrays by GroupType.
struct GroupFeatures {
  uint32_t types = 0, capabilities = 0;
  std::array<uint32_t, 4> max_groups{}, actions{};
  bool operator==(const GroupFeatures&) const = default;
};

struct MeterStats {
  uint32_t meter = 0, flows = 0;
  uint64_t packets = 0, bytes = 0;
  uint32_t duration_s = 0, duration_ns = 0;
  std::vector<Counters> bands;
  bool operator==(const MeterStats&) const = default;
};

struct MeterConfig {
  uint16_t flags = 0;
  uint32_t meter = 0;
  std::vector<MeterBand> bands;
  bool operator==(const MeterConfig&) const = default;
};

struct MeterFeatures {
  uint32_t max_meters = 0, band_types = 0, capabilities = 0;
  uint8_t max_bands = 0, max_colors = 0;
  bool operator==(const MeterFeatures&) const = default;
};

struct TableProperty {
  uint16_t type = 0;  ///< table_property
  /// Instructions, tables and actions by their numbers in 1.3, fields by their OXM headers; that of an experimenter is
  /// followed by the experimenter.
  std::vector<uint32_t> values;
  std::vector<uint8_t> data;  ///< an experimenter's property
  bool operator==(const TableProperty&) const = default;
};

struct TableFeatures {
  uint8_t table = 0;
  std::string name;
  uint64_t metadata_match = 0, metadata_write = 0;
  uint32_t config = 0, max_entries = 0;
  std::vector<TableProperty> properties;
  bool operator==(const TableFeatures&) const = default;
};

struct ExperimenterMultipart {
  uint32_t experimenter = 0;
  uint32_t type = 0;  ///< not in 1.0
  std::vector<uint8_t> data;
  bool operator==(const ExperimenterMultipart&) const = default;
};

/// By MultipartType.
using RequestBody =
    std::variant<EmptyRequest<MultipartType::kDesc>, FlowRequest<MultipartType::kFlow>,
                 FlowRequest<MultipartType::kAggregate>, EmptyRequest<MultipartType::kTable>, PortStatsRequest,
                 QueueStatsRequest, NumberRequest<MultipartType::kGroup>, EmptyRequest<MultipartType::kGroupDesc>,
                 EmptyRequest<MultipartType::kGroupFeatures>, NumberRequest<MultipartType::kMeter>,
                 NumberRequest<MultipartType::kMeterConfig>, EmptyRequest<MultipartType::kMeterFeatures>,
                 std::vector<TableFeatures>, EmptyRequest<MultipartType::kPortDesc>, ExperimenterMultipart>;

/// By MultipartType.
using ReplyBody =
    std::variant<Description, std::vector<FlowStats>, AggregateStats, std::vector<TableStats>, std::vector<PortStats>,
                 std::vector<QueueStats>, std::vector<GroupStats>, std::vector<GroupDescription>, GroupFeatures,
                 std::vector<MeterStats>, std::vector<MeterConfig>, MeterFeatures, std::vector<TableFeatures>,
                 std::vector<Port>, ExperimenterMultipart>;

struct MultipartRequest {
  uint16_t flags = 0;  ///< multipart_flag
  RequestBody body;

  MultipartType type() const { return static_cast<MultipartType>(body.index()); }
  bool operator==(const MultipartRequest&) const = default;
};

struct MultipartReply {
  uint16_t flags = 0;  ///< multipart_flag
  ReplyBody body;

  MultipartType type() const { return static_cast<MultipartType>(body.index()); }
  bool operator==(const MultipartReply&) const = default;
};

/// Appends what a message of the same type adds to the parts before it. False if the types differ, or if they have no
/// lists that could go on, or if there would be more than `limit` elements: MULTIPART_BUFFER_OVERFLOW of a request.
bool append_part(MultipartReply& whole, MultipartReply&& part, size_t limit);
bool append_part(MultipartRequest& whole, MultipartRequest&& part, size_t limit);

}  // namespace headrace::openflow
