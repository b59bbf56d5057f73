#pragma once
/// \file
/// The messages of OpenFlow 1.0.0 and 1.3.5 in one form for both, wherever they mean the same. Numbers are in host order.
/// Ports have 32 bits; flags have the form of flags_from_wire(). A field that one version lacks says so.

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "control/openflow/actions.hh"
#include "control/openflow/definitions.hh"
#include "control/openflow/match.hh"

namespace headrace::openflow {

/// Texts have at most one byte less than their fields, which end with a zero; longer ones are cut.
namespace text_size {
inline constexpr size_t kPortName = 16, kTableName = 32, kDescription = 256, kSerial = 32;
}

struct Hello {
  /// Versions by their numbers, bit 0 of the first word for version 0; empty if there is no such element.
  std::vector<uint32_t> versions;
  bool operator==(const Hello&) const = default;
};

struct Error {
  uint16_t type = 0;  ///< as in the message's version: error_text()
  uint16_t code = 0;  ///< an experimenter's own, if `type` is 0xffff
  uint32_t experimenter = 0;
  std::vector<uint8_t> data;
  bool operator==(const Error&) const = default;
};

struct EchoRequest {
  std::vector<uint8_t> data;
  bool operator==(const EchoRequest&) const = default;
};
struct EchoReply {
  std::vector<uint8_t> data;
  bool operator==(const EchoReply&) const = default;
};

struct Experimenter {
  uint32_t experimenter = 0;
  uint32_t type = 0;  ///< not in 1.0, where `data` is all that the vendor has written
  std::vector<uint8_t> data;
  bool operator==(const Experimenter&) const = default;
};

struct FeaturesRequest {
  bool operator==(const FeaturesRequest&) const = default;
};

/// A port, as features, port status and port descriptions show it.
struct Port {
  uint32_t number = 0;
  std::array<uint8_t, 6> address{};
  std::string name;
  uint64_t config = 0;                                            ///< port_config
  uint64_t state = 0;                                             ///< port_state
  uint64_t current = 0, advertised = 0, supported = 0, peer = 0;  ///< port_feature_flags()
  uint32_t current_speed = 0, max_speed = 0;                      ///< kbit/s; not in 1.0
  bool operator==(const Port&) const = default;
};

struct FeaturesReply {
  uint64_t datapath = 0;
  uint32_t buffers = 0;
  uint8_t tables = 0;
  uint8_t auxiliary = 0;  ///< not in 1.0
  uint64_t capabilities = 0;
  uint32_t actions_1_0 = 0;  ///< 1.0 only: bits by the numbers of actions
  std::vector<Port> ports;   ///< 1.0 only
  bool operator==(const FeaturesReply&) const = default;
};

struct GetConfigRequest {
  bool operator==(const GetConfigRequest&) const = default;
};
struct SwitchConfig {
  uint16_t flags = 0;  ///< treatment of fragments
  uint16_t miss_send_len = 128;
  bool operator==(const SwitchConfig&) const = default;
};
struct GetConfigReply : SwitchConfig {
  bool operator==(const GetConfigReply&) const = default;
};
struct SetConfig : SwitchConfig {
  bool operator==(const SetConfig&) const = default;
};

struct PacketIn {
  uint32_t buffer = kNoBuffer;
  uint16_t total_len = 0;
  PacketInReason reason = PacketInReason::kNoMatch;
  uint8_t table = 0;    ///< not in 1.0
  uint64_t cookie = 0;  ///< not in 1.0
  Match match;          ///< the packet's context; in 1.0 its in_port
  std::vector<uint8_t> data;
  bool operator==(const PacketIn&) const = default;
};

struct FlowRemoved {
  Match match;
  uint64_t cookie = 0;
  uint16_t priority = 0;
  FlowRemovedReason reason = FlowRemovedReason::kIdleTimeout;
  uint8_t table = 0;  ///< not in 1.0
  uint32_t duration_s = 0, duration_ns = 0;
  uint16_t idle_timeout = 0;
  uint16_t hard_timeout = 0;  ///< not in 1.0
  uint64_t packets = 0, bytes = 0;
  bool operator==(const FlowRemoved&) const = default;
};

struct PortStatus {
  PortReason reason = PortReason::kAdd;
  Port port;
  bool operator==(const PortStatus&) const = default;
};

struct PacketOut {
  uint32_t buffer = kNoBuffer;
  uint32_t in_port = port::kController;
  std::vector<Action> actions;
  std::vector<uint8_t> data;
  bool operator==(const PacketOut&) const = default;
};

struct FlowMod {
  FlowCommand command = FlowCommand::kAdd;
  uint8_t table = 0;  ///< not in 1.0
  uint64_t cookie = 0;
  uint64_t cookie_mask = 0;  ///< not in 1.0
  uint16_t idle_timeout = 0, hard_timeout = 0;
  uint16_t priority = 0x8000;
  uint32_t buffer = kNoBuffer;
  uint32_t out_port = port::kAny;
  uint32_t out_group = group::kAny;  ///< not in 1.0
  uint64_t flags = 0;                ///< flow_flag
  Match match;
  std::vector<Instruction> instructions;  ///< 1.0's actions are one kApplyActions
  bool operator==(const FlowMod&) const = default;
};

struct Bucket {
  uint16_t weight = 0;
  uint32_t watch_port = port::kAny;
  uint32_t watch_group = group::kAny;
  std::vector<Action> actions;
  bool operator==(const Bucket&) const = default;
};

struct GroupMod {
  GroupCommand command = GroupCommand::kAdd;
  GroupType type = GroupType::kAll;
  uint32_t group = 0;
  std::vector<Bucket> buckets;
  bool operator==(const GroupMod&) const = default;
};

struct PortMod {
  uint32_t port = 0;
  std::array<uint8_t, 6> address{};
  uint64_t config = 0, mask = 0;  ///< port_config
  uint64_t advertise = 0;         ///< port_feature_flags()
  bool operator==(const PortMod&) const = default;
};

struct TableMod {
  uint8_t table = 0;
  uint32_t config = 0;
  bool operator==(const TableMod&) const = default;
};

struct MeterBand {
  MeterBandType type = MeterBandType::kDrop;
  uint32_t rate = 0, burst = 0;
  uint8_t precedence_levels = 0;  ///< kDscpRemark
  uint32_t experimenter = 0;      ///< kExperimenter
  std::vector<uint8_t> data;      ///< kExperimenter: what follows
  bool operator==(const MeterBand&) const = default;
};

struct MeterMod {
  MeterCommand command = MeterCommand::kAdd;
  uint16_t flags = 0;  ///< meter_flag
  uint32_t meter = 0;
  std::vector<MeterBand> bands;
  bool operator==(const MeterMod&) const = default;
};

struct BarrierRequest {
  bool operator==(const BarrierRequest&) const = default;
};
struct BarrierReply {
  bool operator==(const BarrierReply&) const = default;
};

struct QueueGetConfigRequest {
  uint32_t port = 0;
  bool operator==(const QueueGetConfigRequest&) const = default;
};
struct QueueProperty {
  uint16_t type = 0;  ///< queue_property
  uint16_t rate = 0;  ///< kMinRate, kMaxRate: tenths of a percent
  uint32_t experimenter = 0;
  std::vector<uint8_t> data;  ///< of an experimenter or an unknown type: what follows
  bool operator==(const QueueProperty&) const = default;
};
struct QueueConfig {
  uint32_t queue = 0;
  uint32_t port = 0;  ///< not in 1.0
  std::vector<QueueProperty> properties;
  bool operator==(const QueueConfig&) const = default;
};
struct QueueGetConfigReply {
  uint32_t port = 0;
  std::vector<QueueConfig> queues;
  bool operator==(const QueueGetConfigReply&) const = default;
};

/// 1.0: Nicira's vendor message (nicira-ext.h, NXT_ROLE_REQUEST), without a generation.
struct RoleState {
  Role role = Role::kNoChange;
  uint64_t generation = 0;
  bool operator==(const RoleState&) const = default;
};
struct RoleRequest : RoleState {
  bool operator==(const RoleRequest&) const = default;
};
struct RoleReply : RoleState {
  bool operator==(const RoleReply&) const = default;
};

/// Bits by reasons; element 0 for a controller that is equal or master, element 1 for a slave.
struct AsyncConfig {
  std::array<uint32_t, 2> packet_in{}, port_status{}, flow_removed{};
  bool operator==(const AsyncConfig&) const = default;
};
struct GetAsyncRequest {
  bool operator==(const GetAsyncRequest&) const = default;
};
struct GetAsyncReply : AsyncConfig {
  bool operator==(const GetAsyncReply&) const = default;
};
struct SetAsync : AsyncConfig {
  bool operator==(const SetAsync&) const = default;
};

}  // namespace headrace::openflow
