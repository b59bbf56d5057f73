#include "control/openflow/definitions.hh"

#include <array>

#include "control/openflow/errors.hh"

namespace headrace::openflow {

namespace {

struct MessageRow {
  Definition definition;
  Sender sender;
};

constexpr Sender kFromBoth = Sender::kBoth, kFromController = Sender::kController, kFromSwitch = Sender::kSwitch;

constexpr MessageRow kMessageRows[] = {
    {in_both("OFPT_HELLO", 0), kFromBoth},
    {in_both("OFPT_ERROR", 1), kFromBoth},
    {in_both("OFPT_ECHO_REQUEST", 2), kFromBoth},
    {in_both("OFPT_ECHO_REPLY", 3), kFromBoth},
    {{"OFPT_EXPERIMENTER", 4, "OFPT_VENDOR", 4}, kFromBoth},
    {in_both("OFPT_FEATURES_REQUEST", 5), kFromController},
    {in_both("OFPT_FEATURES_REPLY", 6), kFromSwitch},
    {in_both("OFPT_GET_CONFIG_REQUEST", 7), kFromController},
    {in_both("OFPT_GET_CONFIG_REPLY", 8), kFromSwitch},
    {in_both("OFPT_SET_CONFIG", 9), kFromController},
    {in_both("OFPT_PACKET_IN", 10), kFromSwitch},
    {in_both("OFPT_FLOW_REMOVED", 11), kFromSwitch},
    {in_both("OFPT_PORT_STATUS", 12), kFromSwitch},
    {in_both("OFPT_PACKET_OUT", 13), kFromController},
    {in_both("OFPT_FLOW_MOD", 14), kFromController},
    {in_1_3("OFPT_GROUP_MOD", 15), kFromController},
    {in_both("OFPT_PORT_MOD", 16, 15), kFromController},
    {in_1_3("OFPT_TABLE_MOD", 17), kFromController},
    {{"OFPT_MULTIPART_REQUEST", 18, "OFPT_STATS_REQUEST", 16}, kFromController},
    {{"OFPT_MULTIPART_REPLY", 19, "OFPT_STATS_REPLY", 17}, kFromSwitch},
    {in_both("OFPT_BARRIER_REQUEST", 20, 18), kFromController},
    {in_both("OFPT_BARRIER_REPLY", 21, 19), kFromSwitch},
    {in_both("OFPT_QUEUE_GET_CONFIG_REQUEST", 22, 20), kFromController},
    {in_both("OFPT_QUEUE_GET_CONFIG_REPLY", 23, 21), kFromSwitch},
    {in_1_3("OFPT_ROLE_REQUEST", 24), kFromController},  // 1.0: Nicira's, in OFPT_VENDOR
    {in_1_3("OFPT_ROLE_REPLY", 25), kFromSwitch},
    {in_1_3("OFPT_GET_ASYNC_REQUEST", 26), kFromController},
    {in_1_3("OFPT_GET_ASYNC_REPLY", 27), kFromSwitch},
    {in_1_3("OFPT_SET_ASYNC", 28), kFromController},
    {in_1_3("OFPT_METER_MOD", 29), kFromController},
};
static_assert(std::size(kMessageRows) == static_cast<size_t>(MessageType::kMeterMod) + 1);

constexpr auto kMessageTypes = [] {
  std::array<Definition, std::size(kMessageRows)> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = kMessageRows[i].definition;
  return types;
}();

constexpr Definition kMultipartTypes[] = {
    {"OFPMP_DESC", 0, "OFPST_DESC", 0},
    {"OFPMP_FLOW", 1, "OFPST_FLOW", 1},
    {"OFPMP_AGGREGATE", 2, "OFPST_AGGREGATE", 2},
    {"OFPMP_TABLE", 3, "OFPST_TABLE", 3},
    {"OFPMP_PORT_STATS", 4, "OFPST_PORT", 4},
    {"OFPMP_QUEUE", 5, "OFPST_QUEUE", 5},
    in_1_3("OFPMP_GROUP", 6),
    in_1_3("OFPMP_GROUP_DESC", 7),
    in_1_3("OFPMP_GROUP_FEATURES", 8),
    in_1_3("OFPMP_METER", 9),
    in_1_3("OFPMP_METER_CONFIG", 10),
    in_1_3("OFPMP_METER_FEATURES", 11),
    in_1_3("OFPMP_TABLE_FEATURES", 12),
    in_1_3("OFPMP_PORT_DESC", 13),
    {"OFPMP_EXPERIMENTER", 0xffff, "OFPST_VENDOR", 0xffff},
};
static_assert(std::size(kMultipartTypes) == static_cast<size_t>(MultipartType::kExperimenter) + 1);

constexpr Definition kInstructionTypes[] = {
    in_1_3("OFPIT_GOTO_TABLE", 1),        in_1_3("OFPIT_WRITE_METADATA", 2), in_1_3("OFPIT_WRITE_ACTIONS", 3),
    in_1_3("OFPIT_APPLY_ACTIONS", 4),     in_1_3("OFPIT_CLEAR_ACTIONS", 5),  in_1_3("OFPIT_METER", 6),
    in_1_3("OFPIT_EXPERIMENTER", 0xffff),
};
static_assert(std::size(kInstructionTypes) == static_cast<size_t>(InstructionType::kUnknown) + 1);

constexpr Definition kActions[] = {
    in_both("OFPAT_OUTPUT", 0),
    in_1_3("OFPAT_COPY_TTL_OUT", 11),
    in_1_3("OFPAT_COPY_TTL_IN", 12),
    in_1_3("OFPAT_SET_MPLS_TTL", 15),
    in_1_3("OFPAT_DEC_MPLS_TTL", 16),
    in_1_3("OFPAT_PUSH_VLAN", 17),
    {"OFPAT_POP_VLAN", 18, "OFPAT_STRIP_VLAN", 3},
    in_1_3("OFPAT_PUSH_MPLS", 19),
    in_1_3("OFPAT_POP_MPLS", 20),
    in_1_3("OFPAT_SET_QUEUE", 21),
    in_1_3("OFPAT_GROUP", 22),
    in_1_3("OFPAT_SET_NW_TTL", 23),
    in_1_3("OFPAT_DEC_NW_TTL", 24),
    in_1_3("OFPAT_SET_FIELD", 25),
    in_1_3("OFPAT_PUSH_PBB", 26),
    in_1_3("OFPAT_POP_PBB", 27),
    {"OFPAT_EXPERIMENTER", 0xffff, "OFPAT_VENDOR", 0xffff},
    in_1_0("OFPAT_SET_VLAN_VID", 1),
    in_1_0("OFPAT_SET_VLAN_PCP", 2),
    {nullptr, kAbsent, nullptr, kAbsent},  // among the actions that set fields
    in_1_0("OFPAT_ENQUEUE", 11),
};
static_assert(std::size(kActions) == static_cast<size_t>(ActionType::kEnqueue) + 1);

constexpr SetAction10 kSetFields[] = {
    {4, "OFPAT_SET_DL_SRC", 4},
    {5, "OFPAT_SET_DL_DST", 3},
    {6, "OFPAT_SET_NW_SRC", 11},
    {7, "OFPAT_SET_NW_DST", 12},
    {8, "OFPAT_SET_NW_TOS", 8},
    {9, "OFPAT_SET_TP_SRC", kTransportSource},
    {10, "OFPAT_SET_TP_DST", kTransportDestination},
};
constexpr auto kSetActions = [] {
  std::array<Definition, std::size(kSetFields)> rows{};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = in_1_0(kSetFields[i].name, kSetFields[i].type);
  return rows;
}();

constexpr Definition kFlowCommands[] = {
    in_both("OFPFC_ADD", 0),    in_both("OFPFC_MODIFY", 1),        in_both("OFPFC_MODIFY_STRICT", 2),
    in_both("OFPFC_DELETE", 3), in_both("OFPFC_DELETE_STRICT", 4),
};
constexpr Definition kFlowFlags[] = {
    in_both("OFPFF_SEND_FLOW_REM", 1), in_both("OFPFF_CHECK_OVERLAP", 2), in_1_3("OFPFF_RESET_COUNTS", 4),
    in_1_3("OFPFF_NO_PKT_COUNTS", 8),  in_1_3("OFPFF_NO_BYT_COUNTS", 16), in_1_0("OFPFF_EMERG", 4),
};
constexpr Definition kGroupCommands[] = {in_1_3("OFPGC_ADD", 0), in_1_3("OFPGC_MODIFY", 1), in_1_3("OFPGC_DELETE", 2)};
constexpr Definition kGroupTypes[] = {in_1_3("OFPGT_ALL", 0), in_1_3("OFPGT_SELECT", 1), in_1_3("OFPGT_INDIRECT", 2),
                                      in_1_3("OFPGT_FF", 3)};
constexpr Definition kGroupCapabilities[] = {in_1_3("OFPGFC_SELECT_WEIGHT", 1), in_1_3("OFPGFC_SELECT_LIVENESS", 2),
                                             in_1_3("OFPGFC_CHAINING", 4), in_1_3("OFPGFC_CHAINING_CHECKS", 8)};
constexpr Definition kMeterCommands[] = {in_1_3("OFPMC_ADD", 0), in_1_3("OFPMC_MODIFY", 1), in_1_3("OFPMC_DELETE", 2)};
constexpr Definition kMeterFlags[] = {
    in_1_3("OFPMF_KBPS", meter_flag::kKbps), in_1_3("OFPMF_PKTPS", meter_flag::kPktps),
    in_1_3("OFPMF_BURST", meter_flag::kBurst), in_1_3("OFPMF_STATS", meter_flag::kStats)};
constexpr Definition kMeterBands[] = {in_1_3("OFPMBT_DROP", 1), in_1_3("OFPMBT_DSCP_REMARK", 2),
                                      in_1_3("OFPMBT_EXPERIMENTER", 0xffff)};
constexpr Definition kCapabilities[] = {
    in_both("OFPC_FLOW_STATS", 1),    in_both("OFPC_TABLE_STATS", 2), in_both("OFPC_PORT_STATS", 4),
    in_1_3("OFPC_GROUP_STATS", 8),    in_both("OFPC_IP_REASM", 32),   in_both("OFPC_QUEUE_STATS", 64),
    in_1_3("OFPC_PORT_BLOCKED", 256), in_1_0("OFPC_STP", 8),          in_1_0("OFPC_ARP_MATCH_IP", 128),
};
constexpr Definition kConfigFlags[] = {in_both("OFPC_FRAG_NORMAL", 0), in_both("OFPC_FRAG_DROP", 1),
                                       in_both("OFPC_FRAG_REASM", 2), in_both("OFPC_FRAG_MASK", 3)};
constexpr Definition kPortConfig[] = {
    in_both("OFPPC_PORT_DOWN", 1),     in_both("OFPPC_NO_RECV", 4), in_both("OFPPC_NO_FWD", 32),
    in_both("OFPPC_NO_PACKET_IN", 64), in_1_0("OFPPC_NO_STP", 2),   in_1_0("OFPPC_NO_RECV_STP", 8),
    in_1_0("OFPPC_NO_FLOOD", 16),
};
constexpr Definition kPortState[] = {
    in_both("OFPPS_LINK_DOWN", 1),     in_1_3("OFPPS_BLOCKED", 2),          in_1_3("OFPPS_LIVE", 4),
    in_1_0("OFPPS_STP_LEARN", 1 << 8), in_1_0("OFPPS_STP_FORWARD", 2 << 8), in_1_0("OFPPS_STP_BLOCK", 3 << 8),
};
constexpr Definition kPortFeatures[] = {
    in_both("OFPPF_10MB_HD", 1 << 0),         in_both("OFPPF_10MB_FD", 1 << 1),
    in_both("OFPPF_100MB_HD", 1 << 2),        in_both("OFPPF_100MB_FD", 1 << 3),
    in_both("OFPPF_1GB_HD", 1 << 4),          in_both("OFPPF_1GB_FD", 1 << 5),
    in_both("OFPPF_10GB_FD", 1 << 6),         in_1_3("OFPPF_40GB_FD", 1 << 7),
    in_1_3("OFPPF_100GB_FD", 1 << 8),         in_1_3("OFPPF_1TB_FD", 1 << 9),
    in_1_3("OFPPF_OTHER", 1 << 10),           in_both("OFPPF_COPPER", 1 << 11, 1 << 7),
    in_both("OFPPF_FIBER", 1 << 12, 1 << 8),  in_both("OFPPF_AUTONEG", 1 << 13, 1 << 9),
    in_both("OFPPF_PAUSE", 1 << 14, 1 << 10), in_both("OFPPF_PAUSE_ASYM", 1 << 15, 1 << 11),
};
constexpr Definition kPorts[] = {
    in_both("OFPP_MAX", port::kMax, port::kMax10),         in_both("OFPP_IN_PORT", port::kInPort, 0xfff8),
    in_both("OFPP_TABLE", port::kTable, 0xfff9),           in_both("OFPP_NORMAL", port::kNormal, 0xfffa),
    in_both("OFPP_FLOOD", port::kFlood, 0xfffb),           in_both("OFPP_ALL", port::kAll, 0xfffc),
    in_both("OFPP_CONTROLLER", port::kController, 0xfffd), in_both("OFPP_LOCAL", port::kLocal, 0xfffe),
    {"OFPP_ANY", port::kAny, "OFPP_NONE", 0xffff},
};
constexpr Definition kNumbers[] = {
    in_1_3("OFPG_MAX", group::kMax),           in_1_3("OFPG_ALL", group::kAll),
    in_1_3("OFPG_ANY", group::kAny),           in_1_3("OFPM_MAX", meter::kMax),
    in_1_3("OFPM_SLOWPATH", meter::kSlowpath), in_1_3("OFPM_CONTROLLER", meter::kController),
    in_1_3("OFPM_ALL", meter::kAll),           in_1_3("OFPTT_MAX", kMaxTable),
    in_1_3("OFPTT_ALL", kAllTables),           in_1_3("OFPCML_NO_BUFFER", kWholePacket),
    in_both("OFPQ_ALL", kAllQueues),           in_both("OFP_NO_BUFFER", kNoBuffer),
};
constexpr Definition kMultipartFlags[] = {
    in_1_3("OFPMPF_REQ_MORE", multipart_flag::kMore),
    {"OFPMPF_REPLY_MORE", multipart_flag::kMore, "OFPSF_REPLY_MORE", multipart_flag::kMore}};
constexpr Definition kPacketInReasons[] = {in_both("OFPR_NO_MATCH", 0), in_both("OFPR_ACTION", 1),
                                           in_1_3("OFPR_INVALID_TTL", 2)};
constexpr Definition kFlowRemovedReasons[] = {in_both("OFPRR_IDLE_TIMEOUT", 0), in_both("OFPRR_HARD_TIMEOUT", 1),
                                              in_both("OFPRR_DELETE", 2), in_1_3("OFPRR_GROUP_DELETE", 3)};
constexpr Definition kPortReasons[] = {in_both("OFPPR_ADD", 0), in_both("OFPPR_DELETE", 1), in_both("OFPPR_MODIFY", 2)};
constexpr Definition kRoles[] = {in_1_3("OFPCR_ROLE_NOCHANGE", 0), in_1_3("OFPCR_ROLE_EQUAL", 1),
                                 in_1_3("OFPCR_ROLE_MASTER", 2), in_1_3("OFPCR_ROLE_SLAVE", 3)};
constexpr Definition kTableProperties[] = {
    in_1_3("OFPTFPT_INSTRUCTIONS", table_property::kInstructions),
    in_1_3("OFPTFPT_INSTRUCTIONS_MISS", table_property::kInstructionsMiss),
    in_1_3("OFPTFPT_NEXT_TABLES", table_property::kNextTables),
    in_1_3("OFPTFPT_NEXT_TABLES_MISS", table_property::kNextTablesMiss),
    in_1_3("OFPTFPT_WRITE_ACTIONS", table_property::kWriteActions),
    in_1_3("OFPTFPT_WRITE_ACTIONS_MISS", table_property::kWriteActionsMiss),
    in_1_3("OFPTFPT_APPLY_ACTIONS", table_property::kApplyActions),
    in_1_3("OFPTFPT_APPLY_ACTIONS_MISS", table_property::kApplyActionsMiss),
    in_1_3("OFPTFPT_MATCH", table_property::kMatch),
    in_1_3("OFPTFPT_WILDCARDS", table_property::kWildcards),
    in_1_3("OFPTFPT_WRITE_SETFIELD", table_property::kWriteSetField),
    in_1_3("OFPTFPT_WRITE_SETFIELD_MISS", table_property::kWriteSetFieldMiss),
    in_1_3("OFPTFPT_APPLY_SETFIELD", table_property::kApplySetField),
    in_1_3("OFPTFPT_APPLY_SETFIELD_MISS", table_property::kApplySetFieldMiss),
    in_1_3("OFPTFPT_EXPERIMENTER", table_property::kExperimenter),
    in_1_3("OFPTFPT_EXPERIMENTER_MISS", table_property::kExperimenterMiss),
};
constexpr Definition kQueueProperties[] = {
    in_1_0("OFPQT_NONE", queue_property::kNone),
    in_both("OFPQT_MIN_RATE", queue_property::kMinRate),
    in_1_3("OFPQT_MAX_RATE", queue_property::kMaxRate),
    in_1_3("OFPQT_EXPERIMENTER", queue_property::kExperimenter),
};

const DefinitionTable kTables[] = {
    {"Messages", kMessageTypes},
    {"Multipart messages", kMultipartTypes},
    {"Instructions", kInstructionTypes},
    {"Actions", kActions},
    {"Actions of 1.0 that set fields", kSetActions},
    {"Commands of flow-mod", kFlowCommands},
    {"Flags of flow-mod", kFlowFlags},
    {"Commands of group-mod", kGroupCommands},
    {"Types of groups", kGroupTypes},
    {"Capabilities of groups", kGroupCapabilities},
    {"Commands of meter-mod", kMeterCommands},
    {"Flags of meter-mod", kMeterFlags},
    {"Bands of meters", kMeterBands},
    {"Capabilities of switches", kCapabilities},
    {"Treatment of fragments", kConfigFlags},
    {"Configuration of ports", kPortConfig},
    {"State of ports", kPortState},
    {"Features of ports", kPortFeatures},
    {"Ports", kPorts},
    {"Reserved numbers", kNumbers},
    {"Flags of multipart messages", kMultipartFlags},
    {"Reasons of packet-in", kPacketInReasons},
    {"Reasons of flow-removed", kFlowRemovedReasons},
    {"Reasons of port-status", kPortReasons},
    {"Roles", kRoles},
    {"Properties of tables", kTableProperties},
    {"Properties of queues", kQueueProperties},
    {"Types of errors", error_types()},
};

}  // namespace

Sender sender_of(MessageType type) { return kMessageRows[static_cast<size_t>(type)].sender; }

std::span<const DefinitionTable> definition_tables() { return kTables; }
std::span<const Definition> message_types() { return kMessageTypes; }
std::span<const Definition> multipart_types() { return kMultipartTypes; }
std::span<const Definition> instruction_types() { return kInstructionTypes; }
std::span<const Definition> action_types() { return kActions; }
std::span<const Definition> capability_flags() { return kCapabilities; }
std::span<const Definition> port_config_flags() { return kPortConfig; }
std::span<const Definition> port_state_flags() { return kPortState; }
std::span<const Definition> port_feature_flags() { return kPortFeatures; }
std::span<const Definition> flow_mod_flags() { return kFlowFlags; }
std::span<const Definition> meter_flags() { return kMeterFlags; }
std::span<const Definition> table_properties() { return kTableProperties; }
std::span<const SetAction10> set_actions_1_0() { return kSetFields; }

int find_number(std::span<const Definition> rows, Version version, int64_t number) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].number(version) == number) return static_cast<int>(i);
  return -1;
}

uint64_t flags_from_wire(std::span<const Definition> rows, Version version, uint32_t wire) {
  if (version == Version::k1_3) return wire;
  uint64_t flags = 0;
  for (const Definition& row : rows) {
    if (row.number_1_0 <= 0 || row.number_1_3 <= 0 || (wire & row.number_1_0) == 0) continue;
    flags |= static_cast<uint64_t>(row.number_1_3);
    wire &= ~static_cast<uint32_t>(row.number_1_0);
  }
  return flags | static_cast<uint64_t>(wire) << 32;
}

uint32_t flags_to_wire(std::span<const Definition> rows, Version version, uint64_t flags) {
  if (version == Version::k1_3) return static_cast<uint32_t>(flags);
  auto wire = static_cast<uint32_t>(flags >> 32);
  for (const Definition& row : rows)
    if (row.number_1_0 > 0 && row.number_1_3 > 0 && (flags & static_cast<uint64_t>(row.number_1_3)) != 0)
      wire |= static_cast<uint32_t>(row.number_1_0);
  return wire;
}

}  // namespace headrace::openflow
