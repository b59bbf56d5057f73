#pragma once
/// \file
/// What OpenFlow 1.0.0 (December 2009) and 1.3.5 (ONF TS-023) name and number, in one place: the codec, texts and the
/// documentation follow from these tables. Fields of packets are in tables/key/key_fields.hh, errors in errors.hh.

#include <cstdint>
#include <span>

namespace headrace::openflow {

enum class Version : uint8_t { k1_0 = 0x01, k1_3 = 0x04 };

inline constexpr int64_t kAbsent = -1;

/// A name of the specifications and its number in each; a null name and kAbsent where a version has no such thing.
struct Definition {
  const char* name_1_3;
  int64_t number_1_3;
  const char* name_1_0;
  int64_t number_1_0;

  constexpr int64_t number(Version version) const { return version == Version::k1_0 ? number_1_0 : number_1_3; }
  constexpr const char* name(Version version) const { return version == Version::k1_0 ? name_1_0 : name_1_3; }
};

constexpr Definition in_both(const char* name, int64_t number_1_3, int64_t number_1_0) {
  return {name, number_1_3, name, number_1_0};
}
constexpr Definition in_both(const char* name, int64_t number) { return {name, number, name, number}; }
constexpr Definition in_1_3(const char* name, int64_t number) { return {name, number, nullptr, kAbsent}; }
constexpr Definition in_1_0(const char* name, int64_t number) { return {nullptr, kAbsent, name, number}; }

/// Messages, in the order of kMessageTypes.
enum class MessageType : uint8_t {
  kHello,
  kError,
  kEchoRequest,
  kEchoReply,
  kExperimenter,
  kFeaturesRequest,
  kFeaturesReply,
  kGetConfigRequest,
  kGetConfigReply,
  kSetConfig,
  kPacketIn,
  kFlowRemoved,
  kPortStatus,
  kPacketOut,
  kFlowMod,
  kGroupMod,
  kPortMod,
  kTableMod,
  kMultipartRequest,
  kMultipartReply,
  kBarrierRequest,
  kBarrierReply,
  kQueueGetConfigRequest,
  kQueueGetConfigReply,
  kRoleRequest,
  kRoleReply,
  kGetAsyncRequest,
  kGetAsyncReply,
  kSetAsync,
  kMeterMod,
};

/// Multipart (1.0: statistics) messages, in the order of kMultipartTypes.
enum class MultipartType : uint8_t {
  kDesc,
  kFlow,
  kAggregate,
  kTable,
  kPort,
  kQueue,
  kGroup,
  kGroupDesc,
  kGroupFeatures,
  kMeter,
  kMeterConfig,
  kMeterFeatures,
  kTableFeatures,
  kPortDesc,
  kExperimenter,
};

/// Instructions, in the order of kInstructionTypes.
enum class InstructionType : uint8_t {
  kGotoTable,
  kWriteMetadata,
  kWriteActions,
  kApplyActions,
  kClearActions,
  kMeter,
  kUnknown,  ///< an experimenter's; only Reading::kAsWritten lets it pass
};

/// Actions, in the order of kActions.
enum class ActionType : uint8_t {
  kOutput,
  kCopyTtlOut,
  kCopyTtlIn,
  kSetMplsTtl,
  kDecMplsTtl,
  kPushVlan,
  kPopVlan,  ///< 1.0's STRIP_VLAN; changes nothing in a packet without a tag
  kPushMpls,
  kPopMpls,
  kSetQueue,
  kGroup,
  kSetNwTtl,
  kDecNwTtl,
  kSetField,
  kPushPbb,
  kPopPbb,
  kUnknown,       ///< an experimenter's; only Reading::kAsWritten lets it pass
  kSetVlanVid,    ///< 1.0: adds a tag to a packet without one
  kSetVlanPcp,    ///< 1.0: the same
  kSetTransport,  ///< 1.0: the source or destination port of TCP or UDP, whichever a packet has
  kEnqueue,       ///< 1.0: output through a queue
};

/// Whom a message comes from. Symmetric messages come from both.
enum class Sender : uint8_t { kBoth, kController, kSwitch };

/// Sender by MessageType.
Sender sender_of(MessageType type);

/// A kind of names: a table of the documentation.
struct DefinitionTable {
  const char* title;
  std::span<const Definition> rows;
};

/// Every table of definitions.cc and errors.cc. Actions of 1.0 are rows of their own.
std::span<const DefinitionTable> definition_tables();

/// By MessageType.
std::span<const Definition> message_types();
/// By MultipartType.
std::span<const Definition> multipart_types();
/// By InstructionType.
std::span<const Definition> instruction_types();
/// By ActionType; for 1.0 only those that mean the same there.
std::span<const Definition> action_types();

std::span<const Definition> capability_flags();
std::span<const Definition> port_config_flags();
std::span<const Definition> port_state_flags();
std::span<const Definition> port_feature_flags();
std::span<const Definition> flow_mod_flags();
std::span<const Definition> meter_flags();
std::span<const Definition> table_properties();

/// In place of OXM numbers: the port of TCP or UDP, whichever a packet has.
inline constexpr uint8_t kTransportSource = 0xfe, kTransportDestination = 0xff;

/// An action of 1.0 that is a set-field action of 1.3, with the OXM number of the field; or ActionType::kSetTransport.
struct SetAction10 {
  uint16_t type;
  const char* name;
  uint8_t field;
};
std::span<const SetAction10> set_actions_1_0();

/// The row with this number; -1 if there is none.
int find_number(std::span<const Definition> rows, Version version, int64_t number);

/// Flags in a form that both versions share: the low 32 bits are those of 1.3, the high 32 bits are bits of 1.0 that mean
/// nothing in 1.3. Bits that no table has pass unchanged.
uint64_t flags_from_wire(std::span<const Definition> rows, Version version, uint32_t wire);
/// Bits that the version does not have are left out.
uint32_t flags_to_wire(std::span<const Definition> rows, Version version, uint64_t flags);

/// Ports are 32 bits wide here; reserved ones of 1.0 become those of 1.3.
namespace port {
inline constexpr uint32_t kMax = 0xffffff00;
inline constexpr uint32_t kInPort = 0xfffffff8;
inline constexpr uint32_t kTable = 0xfffffff9;
inline constexpr uint32_t kNormal = 0xfffffffa;
inline constexpr uint32_t kFlood = 0xfffffffb;
inline constexpr uint32_t kAll = 0xfffffffc;
inline constexpr uint32_t kController = 0xfffffffd;
inline constexpr uint32_t kLocal = 0xfffffffe;
inline constexpr uint32_t kAny = 0xffffffff;  ///< 1.0: NONE
inline constexpr uint32_t kMax10 = 0xff00;
}  // namespace port

namespace group {
inline constexpr uint32_t kMax = 0xffffff00, kAll = 0xfffffffc, kAny = 0xffffffff;
}
namespace meter {
inline constexpr uint32_t kMax = 0xffff0000, kSlowpath = 0xfffffffd, kController = 0xfffffffe, kAll = 0xffffffff;
}

inline constexpr uint32_t kNoBuffer = 0xffffffff;
inline constexpr uint32_t kAllQueues = 0xffffffff;
inline constexpr uint8_t kAllTables = 0xff;
inline constexpr uint8_t kMaxTable = 0xfe;
inline constexpr uint16_t kWholePacket = 0xffff;  ///< OFPCML_NO_BUFFER: a max_len
inline constexpr uint32_t kNiciraVendor = 0x00002320;
inline constexpr uint32_t kNiciraRoleRequest = 10, kNiciraRoleReply = 11;

enum class FlowCommand : uint8_t { kAdd, kModify, kModifyStrict, kDelete, kDeleteStrict };
enum class GroupCommand : uint8_t { kAdd, kModify, kDelete };
enum class GroupType : uint8_t { kAll, kSelect, kIndirect, kFastFailover };
enum class MeterCommand : uint8_t { kAdd, kModify, kDelete };
enum class MeterBandType : uint16_t { kDrop = 1, kDscpRemark = 2, kExperimenter = 0xffff };
/// As in 1.3; 1.0 has Nicira's, without kNoChange and one less.
enum class Role : uint8_t { kNoChange, kEqual, kMaster, kSlave };
enum class PacketInReason : uint8_t { kNoMatch, kAction, kInvalidTtl };
enum class FlowRemovedReason : uint8_t { kIdleTimeout, kHardTimeout, kDelete, kGroupDelete };
enum class PortReason : uint8_t { kAdd, kDelete, kModify };

namespace flow_flag {
inline constexpr uint64_t kSendFlowRemoved = 1, kCheckOverlap = 2, kResetCounts = 4, kNoPacketCounts = 8,
                          kNoByteCounts = 16, kEmergency10 = uint64_t{4} << 32;
}
namespace meter_flag {
inline constexpr uint16_t kKbps = 1, kPktps = 2, kBurst = 4, kStats = 8;
}
namespace multipart_flag {
inline constexpr uint16_t kMore = 1;
}
namespace port_config {
inline constexpr uint64_t kPortDown = 1, kNoReceive = 4, kNoForward = 32, kNoPacketIn = 64,
                          kNoStp10 = uint64_t{2} << 32, kNoReceiveStp10 = uint64_t{8} << 32,
                          kNoFlood10 = uint64_t{16} << 32;
}
namespace port_state {
inline constexpr uint64_t kLinkDown = 1, kBlocked = 2, kLive = 4;
}

/// Properties of table features (enum ofp_table_feature_prop_type).
namespace table_property {
inline constexpr uint16_t kInstructions = 0, kInstructionsMiss = 1, kNextTables = 2, kNextTablesMiss = 3,
                          kWriteActions = 4, kWriteActionsMiss = 5, kApplyActions = 6, kApplyActionsMiss = 7,
                          kMatch = 8, kWildcards = 10, kWriteSetField = 12, kWriteSetFieldMiss = 13,
                          kApplySetField = 14, kApplySetFieldMiss = 15, kExperimenter = 0xfffe,
                          kExperimenterMiss = 0xffff;
}

/// Properties of queues (enum ofp_queue_properties).
namespace queue_property {
inline constexpr uint16_t kNone = 0, kMinRate = 1, kMaxRate = 2, kExperimenter = 0xffff;
}

}  // namespace headrace::openflow
