/// \file
/// The tables of docs/openflow.md: what Headrace does with each thing that OpenFlow 1.0.0 and 1.3.5 define. Rows come from
/// the definitions. Whether an action, a field, an instruction, a group, a meter or a port is for both processors, for the
/// host or refused is found out by adding an entry to the pipeline, from the message's bytes to the program that workers and
/// devices read; which errors are sent, by reading the sources. What is left, reasons above all, says kFacts.
///
/// HEADRACE_WRITE_DOCS=1 headrace_tests --gtest_filter='OpenFlowPage.*' writes them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "control/openflow/errors.hh"
#include "pipeline_messages.hh"
#include "stored_data.hh"
#include "support/source_dir.hh"

namespace headrace::openflow {
namespace {

using namespace samples;

enum class Where : uint8_t { kBoth, kHost, kRefused, kUnused };

/// What is not found out: why something is refused or never sent, and what else a reader must know.
struct Fact {
  const char* name;
  Where where;  ///< must agree with what is found out
  const char* text;
  ErrorCode error = ErrorCode::kNone;
};

constexpr Fact kFacts[] = {
    {"OFPT_HELLO", Where::kHost, "the highest version of both: by bitmaps, else by the numbers"},
    {"OFPT_ERROR", Where::kHost, "sent; one from a controller is logged and not answered"},
    {"OFPT_ECHO_REQUEST", Where::kHost, "answered at once, also behind a barrier; sent to a silent controller"},
    {"OFPT_EXPERIMENTER", Where::kRefused, "there are none, but Nicira's role request and reply in 1.0",
     ErrorCode::kRequestBadExperimenter},
    {"OFPT_ROLE_REQUEST", Where::kHost, "answered; in 1.0 Nicira's, a vendor message without generation"},
    {"OFPT_QUEUE_GET_CONFIG_REQUEST", Where::kHost, "answered: a port has no queues"},
    {"OFPMP_QUEUE", Where::kHost, "answered: there are none; for a certain one QUEUE_OP_FAILED/BAD_QUEUE"},
    {"OFPMP_EXPERIMENTER", Where::kRefused, "there are none", ErrorCode::kRequestBadExperimenter},

    {"OFPIT_METER", Where::kHost, "one rate holds for all workers"},
    {"OFPIT_EXPERIMENTER", Where::kRefused, "there are none", ErrorCode::kInstructionBadExperimenter},
    {"OFPAT_OUTPUT", Where::kBoth, "to one port as the last action; by its port and copies: see Ports"},
    {"OFPAT_GROUP", Where::kBoth, "as the last action: see Types of groups"},
    {"OFPAT_SET_QUEUE", Where::kRefused, "there are no queues", ErrorCode::kActionBadQueue},
    {"OFPAT_ENQUEUE", Where::kRefused, "there are no queues", ErrorCode::kActionBadQueue},
    {"OFPAT_EXPERIMENTER", Where::kRefused, "there are none", ErrorCode::kActionBadExperimenter},
    {"OFPAT_SET_FIELD", Where::kBoth, "or the host, or refused: see Fields"},
    {"OFPAT_POP_VLAN", Where::kBoth, "a packet without a tag stays as it is in 1.0; 1.3 requires a tag in the match"},

    {"OFPFF_RESET_COUNTS", Where::kHost, "in 1.0 an addition resets them always"},
    {"OFPFF_NO_PKT_COUNTS", Where::kHost, "kept and shown; packets are counted all the same"},
    {"OFPFF_NO_BYT_COUNTS", Where::kHost, "kept and shown; bytes are counted all the same"},
    {"OFPFF_EMERG", Where::kRefused, "there is no emergency table; with a timeout OFPFMFC_BAD_EMERG_TIMEOUT",
     ErrorCode::kFlowModTableFull},

    {"OFPGT_ALL", Where::kHost, "it copies; with one bucket on both processors"},
    {"OFPGT_SELECT", Where::kBoth, "by weights and a hash of the flow, the same on both"},
    {"OFPGT_FF", Where::kBoth, "the first bucket that is alive"},
    {"OFPMBT_EXPERIMENTER", Where::kRefused, "there are none", ErrorCode::kMeterModBadBand},

    {"OFPC_IP_REASM", Where::kUnused, "fragments are not put together"},
    {"OFPC_QUEUE_STATS", Where::kUnused, "there are no queues"},
    {"OFPC_PORT_BLOCKED", Where::kUnused, "nothing blocks ports for loops; put a bridge in front that does"},
    {"OFPC_STP", Where::kUnused, "there is no spanning tree"},
    {"OFPC_FRAG_REASM", Where::kRefused, "fragments are not put together", ErrorCode::kConfigBadFlags},
    {"OFPC_FRAG_NORMAL", Where::kBoth, "later fragments have no ports to match"},
    {"OFPC_FRAG_DROP", Where::kBoth, ""},
    {"OFPC_FRAG_MASK", Where::kHost, "the bits of the treatments above"},

    {"OFPPC_PORT_DOWN", Where::kBoth,
     "also shown while the host has the device down, and then EPERM if it is to be cleared"},
    {"OFPPC_NO_RECV", Where::kBoth, "1.0: but frames to 01:80:c2:00:00:00 come in"},
    {"OFPPC_NO_FWD", Where::kBoth, ""},
    {"OFPPC_NO_PACKET_IN", Where::kHost, "stops misses, not what entries send to controllers"},
    {"OFPPC_NO_STP", Where::kHost, "kept and shown; there is no spanning tree"},
    {"OFPPC_NO_RECV_STP", Where::kBoth, "frames to 01:80:c2:00:00:00 are dropped"},
    {"OFPPS_BLOCKED", Where::kUnused, "nothing blocks ports for loops"},
    {"OFPPS_STP_LEARN", Where::kUnused, "there is no spanning tree"},
    {"OFPPS_STP_FORWARD", Where::kUnused, "there is no spanning tree"},
    {"OFPPS_STP_BLOCK", Where::kUnused, "there is no spanning tree"},

    {"OFPP_MAX", Where::kBoth, "a switch has 126 ports at most"},
    {"OFPP_TABLE", Where::kHost, "in packet-out; entries get BAD_ACTION/BAD_OUT_PORT", ErrorCode::kActionBadOutPort},
    {"OFPP_NORMAL", Where::kHost, "a learning switch by VLAN and address"},
    {"OFPP_FLOOD", Where::kHost, "all ports but the one of entry and those with NO_FLOOD of 1.0"},
    {"OFPP_ALL", Where::kHost, "all ports but the one of entry"},
    {"OFPP_ANY", Where::kRefused, "it is no port; requests and deletions take it for any",
     ErrorCode::kActionBadOutPort},
    {"OFPM_SLOWPATH", Where::kRefused, "there are no virtual meters", ErrorCode::kMeterModInvalidMeter},
    {"OFPM_CONTROLLER", Where::kRefused, "there are no virtual meters; a token bucket bounds packet-ins",
     ErrorCode::kMeterModInvalidMeter},

    {"OFPTFPT_EXPERIMENTER", Where::kRefused, "there are none", ErrorCode::kTableFeaturesBadType},
    {"OFPTFPT_EXPERIMENTER_MISS", Where::kRefused, "there are none", ErrorCode::kTableFeaturesBadType},
    {"OFPQT_NONE", Where::kUnused, "there are no queues"},
    {"OFPQT_MIN_RATE", Where::kUnused, "there are no queues"},
    {"OFPQT_MAX_RATE", Where::kUnused, "there are no queues"},
    {"OFPQT_EXPERIMENTER", Where::kUnused, "there are no queues"},
    {"OFPET_EXPERIMENTER", Where::kUnused, "there are none"},

    // Fields that cannot be set.
    {"in_port", Where::kRefused, "where a packet came in", ErrorCode::kActionBadSetType},
    {"in_phy_port", Where::kRefused, "where a packet came in", ErrorCode::kActionBadSetType},
    {"metadata", Where::kRefused, "write-metadata sets it", ErrorCode::kActionBadSetType},
    {"ipv6_exthdr", Where::kRefused, "it says which headers there are", ErrorCode::kActionBadSetType},
};

/// Why an error is never sent.
constexpr Fact kUnusedErrors[] = {
    {"OFPHFC_EPERM", Where::kUnused, "TLS says who may connect"},
    {"OFPBRC_EPERM", Where::kUnused, "a slave gets OFPBRC_IS_SLAVE"},
    {"OFPBRC_BAD_TABLE_ID", Where::kUnused, "statistics of a table that is not there have no entries"},
    {"OFPBAC_BAD_EXP_TYPE", Where::kUnused, "experimenters are unknown"},
    {"OFPBAC_EPERM", Where::kUnused, "all actions are permitted"},
    {"OFPBAC_UNSUPPORTED_ORDER", Where::kUnused, "any order does"},
    {"OFPBAC_BAD_TAG", Where::kUnused, "OFPBAC_BAD_ARGUMENT says it"},
    {"OFPBIC_UNSUP_METADATA", Where::kUnused, "all bits of metadata are there"},
    {"OFPBIC_UNSUP_METADATA_MASK", Where::kUnused, "all masks do"},
    {"OFPBIC_BAD_EXP_TYPE", Where::kUnused, "experimenters are unknown"},
    {"OFPBIC_EPERM", Where::kUnused, "all instructions are permitted"},
    {"OFPBMC_BAD_TAG", Where::kUnused, "OFPBMC_BAD_VALUE says it"},
    {"OFPBMC_BAD_DL_ADDR_MASK", Where::kUnused, "all masks do"},
    {"OFPBMC_BAD_NW_ADDR_MASK", Where::kUnused, "all masks do"},
    {"OFPBMC_EPERM", Where::kUnused, "all matches are permitted"},
    {"OFPFMFC_UNKNOWN", Where::kUnused, "there is always a better one"},
    {"OFPFMFC_EPERM", Where::kUnused, "a slave gets OFPBRC_IS_SLAVE"},
    {"OFPGMFC_WEIGHT_UNSUPPORTED", Where::kUnused,
     "weights are there; where a type has none it is OFPGMFC_INVALID_GROUP"},
    {"OFPGMFC_EPERM", Where::kUnused, "a slave gets OFPBRC_IS_SLAVE"},
    {"OFPTMFC_EPERM", Where::kUnused, "a slave gets OFPBRC_IS_SLAVE"},
    {"OFPQOFC_EPERM", Where::kUnused, "there are no queues"},
    {"OFPSCFC_BAD_LEN", Where::kUnused, "any length does"},
    {"OFPSCFC_EPERM", Where::kUnused, "any controller may set its configuration"},
    {"OFPRRFC_UNSUP", Where::kUnused, "all roles are there"},
    {"OFPMMFC_UNKNOWN", Where::kUnused, "there is always a better one"},
    {"OFPTFFC_BAD_METADATA", Where::kUnused, "all bits of metadata are there"},
};

/// What holds for the rows of a table that say nothing else.
struct TableDefault {
  const char* title;
  Where where;
  const char* text;
};
constexpr TableDefault kDefaults[] = {
    {"Multipart messages", Where::kHost, "answered"},
    {"Commands of flow-mod", Where::kHost, ""},
    {"Flags of flow-mod", Where::kHost, ""},
    {"Commands of group-mod", Where::kHost, ""},
    {"Capabilities of groups", Where::kBoth, ""},
    {"Commands of meter-mod", Where::kHost, ""},
    {"Capabilities of switches", Where::kHost, "announced"},
    {"Configuration of ports", Where::kHost, ""},
    {"State of ports", Where::kHost, ""},
    {"Features of ports", Where::kHost, "as the device behind the port says"},
    {"Reserved numbers", Where::kHost, ""},
    {"Flags of multipart messages", Where::kHost, ""},
    {"Reasons of packet-in", Where::kHost, "sent"},
    {"Reasons of flow-removed", Where::kHost, "sent"},
    {"Reasons of port-status", Where::kHost, "sent"},
    {"Roles", Where::kHost, ""},
    {"Properties of tables", Where::kHost, "read and set"},
    {"Types of errors", Where::kHost, "sent"},
};

/// What a row says.
struct Finding {
  Where where = Where::kHost;
  ErrorCode error = ErrorCode::kNone;
  std::string text;
};

/// A switch with a group, a meter and ports 1 to 4, that is asked.
class Asked {
 public:
  Asked() {
    EXPECT_EQ(pipeline_.group_mod(change_group(GroupCommand::kAdd, 1, GroupType::kIndirect, {{output(2)}}), 0),
              ErrorCode::kNone);
    EXPECT_EQ(pipeline_.meter_mod(change_meter(MeterCommand::kAdd, 1, meter_flag::kKbps, {drop_band()}), 0),
              ErrorCode::kNone);
  }

  static MeterBand drop_band() { return {MeterBandType::kDrop, 1000, 0, 0, 0, {}}; }

  template <typename T>
  Finding read(const T& body, Version version, T& read) {
    Message message, decoded;
    message.version = version;
    message.body = body;
    Bytes bytes;
    EXPECT_TRUE(encode(message, bytes));
    if (const ErrorCode error = decode(bytes, decoded); error != ErrorCode::kNone) return {Where::kRefused, error, {}};
    read = std::get<T>(decoded.body);
    return {};
  }

  /// What becomes of an entry with this match, and of its packets.
  Finding entry(const KeyMatch& match, std::vector<Instruction> instructions, Version version, uint64_t flags = 0) {
    FlowMod mod, written = flow(FlowCommand::kAdd, "", 1, std::move(instructions));
    written.match.key = match;
    written.flags = flags;
    if (const Finding finding = read(written, version, mod); finding.error != ErrorCode::kNone) return finding;
    if (const ErrorCode error = pipeline_.flow_mod(mod, version, 0); error != ErrorCode::kNone)
      return {Where::kRefused, error, {}};
    pipeline_.commit();
    PacketKey key;
    std::copy(match.value.begin(), match.value.end(), key.w);
    const AclMatch found = pipeline_.view().find(0, key.w);
    EXPECT_NE(found.number, AclMatch::kNone);
    const ProgramView program = pipeline_.view().program(found.data);
    bool host = program.has(program_flag::kNeedsHost);
    const auto look = [&](const uint32_t* op) {
      host |= op_of(op_word(op)) == Op::kGroup && pipeline_.view().group(op_slot(op_word(op))).needs_host();
    };
    program.apply_actions().each(look);
    program.write_actions().each(look);
    FlowMod away = flow(FlowCommand::kDelete, "", 0);
    EXPECT_EQ(pipeline_.flow_mod(away, Version::k1_3, 0), ErrorCode::kNone);
    return {host ? Where::kHost : Where::kBoth, ErrorCode::kNone, {}};
  }
  Finding actions(const char* match, std::vector<Action> actions, Version version = Version::k1_3) {
    return entry(match_of(match).key, {apply(std::move(actions))}, version);
  }
  Finding group(const GroupMod& mod) {
    if (const ErrorCode error = pipeline_.group_mod(mod, 0); error != ErrorCode::kNone)
      return {Where::kRefused, error, {}};
    return actions("", {to_group(mod.group)});
  }
  Finding meter(const MeterMod& written) {
    MeterMod mod;
    if (const Finding finding = read(written, Version::k1_3, mod); finding.error != ErrorCode::kNone) return finding;
    if (const ErrorCode error = pipeline_.meter_mod(mod, 0); error != ErrorCode::kNone)
      return {Where::kRefused, error, {}};
    const Finding finding = entry({}, {through_meter(mod.meter), apply({output(1)})}, Version::k1_3);
    EXPECT_EQ(pipeline_.meter_mod(change_meter(MeterCommand::kDelete, mod.meter), 0), ErrorCode::kNone);
    return finding;
  }
  Finding table_property(uint16_t type) {
    std::vector<TableFeatures> features = pipeline_.table_features();
    features[0].properties = {{type, {}, {}}};
    const ErrorCode error = pipeline_.set_table_features(features);
    return error == ErrorCode::kNone ? Finding() : Finding{Where::kRefused, error, {}};
  }

 private:
  OpenFlowPipeline pipeline_{pipeline_options()};
};

Finding ask_instruction(InstructionType type) {
  Instruction one = instruction(type);
  const uint32_t experimenter[] = {0xffff0008, 0x00000001};
  switch (type) {
    case InstructionType::kGotoTable:
      one.table = 1;
      break;
    case InstructionType::kMeter:
      one.meter = 1;
      break;
    case InstructionType::kWriteActions:
    case InstructionType::kApplyActions:
      one.actions = {output(1)};
      break;
    case InstructionType::kUnknown:
      for (const uint32_t word : experimenter)
        for (int shift = 24; shift >= 0; shift -= 8) one.as_written.push_back(static_cast<uint8_t>(word >> shift));
      break;
    default:
      one.metadata = one.metadata_mask = 1;
      break;
  }
  return Asked().entry({}, {one}, Version::k1_3);
}

/// A match under which an action makes sense.
const char* match_for(ActionType type) {
  switch (type) {
    case ActionType::kPopVlan:
      return "vlan_vid=0x1000/0x1000";
    case ActionType::kSetMplsTtl:
    case ActionType::kDecMplsTtl:
    case ActionType::kPopMpls:
    case ActionType::kCopyTtlIn:
    case ActionType::kCopyTtlOut:
      return "mpls";
    case ActionType::kSetNwTtl:
    case ActionType::kDecNwTtl:
      return "ip";
    case ActionType::kPopPbb:
      return "dl_type=0x88e7";
    default:
      return "";
  }
}

Finding ask_action(ActionType type) {
  Action one = action(type, 1);
  switch (type) {
    case ActionType::kPushVlan:
      one.number = 0x8100;
      break;
    case ActionType::kPushMpls:
      one.number = 0x8847;
      break;
    case ActionType::kPopMpls:
      one.number = 0x0800;
      break;
    case ActionType::kPushPbb:
      one.number = 0x88e7;
      break;
    case ActionType::kSetField:
      one = set_field("dl_dst", "02:00:00:00:00:01");
      break;
    case ActionType::kUnknown:
      one.as_written = {0xff, 0xff, 0, 8, 0, 0, 0, 1};
      break;
    default:
      break;
  }
  const bool only_1_0 = action_types()[static_cast<size_t>(type)].number_1_3 < 0;
  return Asked().actions(match_for(type), {one}, only_1_0 ? Version::k1_0 : Version::k1_3);
}

Finding ask_set_action_1_0(const SetAction10& row) {
  Action one = action(ActionType::kSetField);
  one.field = row.field;
  one.set.low = 1;
  if (row.field == kTransportSource || row.field == kTransportDestination) {
    one.type = ActionType::kSetTransport;
    one.value = 1;
    one.set = {};
  }
  return Asked().actions("udp", {one}, Version::k1_0);
}

Finding ask_group(GroupType type) {
  GroupMod mod = change_group(GroupCommand::kAdd, 2, type, {{output(1)}, {output(2)}});
  if (type == GroupType::kIndirect) mod.buckets.pop_back();
  if (type == GroupType::kFastFailover)
    for (Bucket& bucket : mod.buckets) bucket.watch_port = 1;
  return Asked().group(mod);
}

Finding ask_port(uint32_t number) {
  const Finding finding = Asked().actions("", {output(number == port::kMax ? 1 : number)});
  if (finding.where != Where::kRefused) return finding;
  // Perhaps in a packet-out.
  OpenFlowPipeline pipeline(pipeline_options());
  std::vector<uint32_t> program;
  if (number == port::kAny || pipeline.packet_out({output(number)}, program) != ErrorCode::kNone) return finding;
  return {Where::kHost, finding.error, {}};
}

Finding ask_meter_flag(uint16_t flag) {
  MeterMod mod = change_meter(MeterCommand::kAdd, 2, flag, {Asked::drop_band()});
  mod.bands[0].burst = 1000;
  return Asked().meter(mod);
}
Finding ask_band(MeterBandType type) {
  MeterMod mod = change_meter(MeterCommand::kAdd, 2, meter_flag::kKbps, {Asked::drop_band()});
  mod.bands[0].type = type;
  if (type == MeterBandType::kDscpRemark) mod.bands[0].precedence_levels = 1;
  if (type == MeterBandType::kExperimenter) mod.bands[0].experimenter = 1;
  return Asked().meter(mod);
}

/// Sets what a field requires, and what that requires.
void require(KeyMatch& match, const KeyField& field) {
  for (const KeyPrerequisite& p : field.prerequisites)
    if (p.field != nullptr) require(match, *find_key_field(p.field));
  for (const KeyPrerequisite& p : field.prerequisites) {
    if (p.field == nullptr) continue;
    const KeyField& other = *find_key_field(p.field);
    set_key_field(match.value, other, {0, p.value == 0 ? 1 : p.value});
    set_key_field(match.mask, other, key_field_ones(other));
  }
}
KeyValue one_of(const KeyField& field) { return {0, field.oxm == oxm::kVlanVid ? 0x1001u : 1u}; }

Finding ask_match(const KeyField& field) {
  KeyMatch match;
  require(match, field);
  set_key_field(match.value, field, one_of(field));
  set_key_field(match.mask, field, key_field_ones(field));
  return Asked().entry(match, {apply({output(1)})}, Version::k1_3);
}
Finding ask_set_field(const KeyField& field) {
  KeyMatch match;
  require(match, field);
  if (field.oxm == oxm::kVlanVid) match = match_of("vlan_vid=0x1000/0x1000").key;
  Action one = action(ActionType::kSetField);
  one.field = field.oxm;
  one.set = one_of(field);
  return Asked().entry(match, {apply({one})}, Version::k1_3);
}

/// What is found out about row `i` of a table; nothing: it is not asked.
std::optional<Finding> ask(const std::string& title, size_t i, const Definition& row) {
  if (title == "Messages") {
    const Sender sender = sender_of(static_cast<MessageType>(i));
    Message message;
    message.body = Experimenter{};
    if (i == message.body.index()) return Finding{Where::kRefused, unknown_experimenter(message), {}};
    const std::string name = row.name_1_3;
    return Finding{Where::kHost, ErrorCode::kNone,
                   sender == Sender::kSwitch ? "sent; a controller that sends it gets BAD_REQUEST/BAD_TYPE"
                   : name.find("REQUEST") != std::string::npos ? "answered"
                                                               : ""};
  }
  if (title == "Multipart messages" && i == static_cast<size_t>(MultipartType::kExperimenter)) {
    Message message;
    message.body = MultipartRequest{0, ExperimenterMultipart{}};
    return Finding{Where::kRefused, unknown_experimenter(message), {}};
  }
  if (title == "Instructions") return ask_instruction(static_cast<InstructionType>(i));
  if (title == "Actions") {
    if (static_cast<ActionType>(i) == ActionType::kSetTransport) return std::nullopt;
    return ask_action(static_cast<ActionType>(i));
  }
  if (title == "Actions of 1.0 that set fields") return ask_set_action_1_0(set_actions_1_0()[i]);
  if (title == "Flags of flow-mod") {
    const Version version = row.number_1_3 < 0 ? Version::k1_0 : Version::k1_3;
    const uint64_t flags = flags_from_wire(flow_mod_flags(), version, static_cast<uint32_t>(row.number(version)));
    Finding finding = Asked().entry({}, {apply({output(1)})}, version, flags);
    if (finding.where != Where::kRefused) finding.where = Where::kHost;
    return finding;
  }
  if (title == "Types of groups") return ask_group(static_cast<GroupType>(row.number_1_3));
  if (title == "Flags of meter-mod") return ask_meter_flag(static_cast<uint16_t>(row.number_1_3));
  if (title == "Bands of meters") return ask_band(static_cast<MeterBandType>(row.number_1_3));
  if (title == "Ports") return ask_port(static_cast<uint32_t>(row.number_1_3));
  if (title == "Properties of tables") return Asked().table_property(static_cast<uint16_t>(row.number_1_3));
  if (title == "Reserved numbers" && row.number_1_3 >= meter::kSlowpath &&
      std::string(row.name_1_3).find("OFPM_") == 0 && row.number_1_3 != meter::kAll)
    return Asked().meter(change_meter(MeterCommand::kAdd, static_cast<uint32_t>(row.number_1_3), meter_flag::kKbps,
                                      {Asked::drop_band()}));
  return std::nullopt;
}

const Fact* fact_of(const char* name) {
  for (const Fact& fact : kFacts)
    if (std::string(fact.name) == name) return &fact;
  return nullptr;
}

std::string short_error(ErrorCode code) {
  const ErrorDefinition& error = definition_of(code);
  return error_text(Version::k1_3, static_cast<uint16_t>(error.type_1_3), static_cast<uint16_t>(error.code_1_3));
}

std::string cell(const Finding& finding) {
  static constexpr const char* kWords[] = {"both processors", "host", "refused", "not used"};
  std::string text = kWords[static_cast<size_t>(finding.where)];
  if (finding.where == Where::kRefused) text += ", " + short_error(finding.error);
  if (!finding.text.empty()) text += ": " + finding.text;
  return text;
}

/// What was found out, with what kFacts adds to it. \param used gets the fact's name
Finding with_fact(const char* name, std::optional<Finding> found, std::set<std::string>& used) {
  const Fact* const fact = fact_of(name);
  if (fact == nullptr) {
    if (!found) {
      ADD_FAILURE() << name << ": nothing is known of it";
      return {};
    }
    EXPECT_NE(found->where, Where::kRefused) << name << ": why?";
    return *found;
  }
  used.insert(name);
  Finding finding{fact->where, fact->error, fact->text};
  if (found) {
    EXPECT_EQ(found->where, fact->where) << name << " is otherwise: " << cell(*found);
    EXPECT_EQ(found->error, fact->error) << name << " is otherwise: " << cell(*found);
  }
  return finding;
}

std::string number_text(int64_t number) {
  return number < 0 ? "" : number > 255 ? fmt::format("{:#x}", number) : fmt::format("{}", number);
}
std::string name_text(const char* name) { return name == nullptr ? "" : fmt::format("`{}`", name); }

std::string table_of(const DefinitionTable& table, std::set<std::string>& used) {
  std::string text =
      fmt::format("### {}\n\n| 1.3 | | 1.0 | | Headrace |\n| --- | --- | --- | --- | --- |\n", table.title);
  const TableDefault* fallback = nullptr;
  for (const TableDefault& one : kDefaults)
    if (std::string(one.title) == table.title) fallback = &one;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const Definition& row = table.rows[i];
    const char* const name = row.name_1_3 != nullptr ? row.name_1_3 : row.name_1_0;
    if (name == nullptr) continue;
    std::optional<Finding> found = ask(table.title, i, row);
    if (fallback != nullptr) {
      if (!found && fact_of(name) == nullptr) found = Finding{fallback->where, ErrorCode::kNone, fallback->text};
      if (found && found->where != Where::kRefused && found->text.empty()) found->text = fallback->text;
    }
    const Finding finding = with_fact(name, found, used);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name_text(row.name_1_3), number_text(row.number_1_3),
                        name_text(row.name_1_0), number_text(row.number_1_0), cell(finding));
  }
  return text + "\n";
}

std::string fields_table(std::set<std::string>& used) {
  std::string text = "### Fields\n\n| OXM | field | in 1.0 | match | set-field |\n| --- | --- | --- | --- | --- |\n";
  for (const KeyField& field : key_fields()) {
    const Finding match = ask_match(field);
    EXPECT_NE(match.where, Where::kRefused) << field.name << ": " << short_error(match.error);
    text += fmt::format("| {} | `{}` | {} | {}{} | {} |\n", field.oxm, field.name, field.wildcard_1_0 < 0 ? "" : "yes",
                        cell(match), field.maskable ? ", masks" : "",
                        cell(with_fact(field.name, ask_set_field(field), used)));
  }
  return text + "\n";
}

/// The errors that sources name, beside their definitions.
std::set<std::string> errors_in_sources() {
  std::set<std::string> names;
  const std::regex one("ErrorCode::(k[A-Za-z0-9]+)");
  for (const char* const folder : {"/src/control/openflow", "/elements/openflow"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(kSourceDir + folder)) {
      const std::string name = file.path().filename().string();
      if (name == "errors.hh" || name == "errors.cc" || name.find(".test.") != std::string::npos) continue;
      if (file.path().extension() != ".hh" && file.path().extension() != ".cc") continue;
      std::ifstream in(file.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      for (std::sregex_iterator at(text.begin(), text.end(), one), end; at != end; ++at) names.insert((*at)[1]);
    }
  return names;
}
/// The enumerators of ErrorCode, in order.
std::vector<std::string> error_enumerators() {
  std::ifstream in(kSourceDir + "/src/control/openflow/errors.hh");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t begin = text.find("enum class ErrorCode");
  const std::string list = text.substr(begin, text.find("};", begin) - begin);
  std::vector<std::string> names;
  const std::regex one("\\n  (k[A-Za-z0-9]+),");
  for (std::sregex_iterator at(list.begin(), list.end(), one), end; at != end; ++at) names.push_back((*at)[1]);
  return names;
}

std::string errors_table() {
  const std::set<std::string> sent = errors_in_sources();
  const std::vector<std::string> names = error_enumerators();
  EXPECT_EQ(names.size(), error_definitions().size() + 1);  // kNone
  std::map<std::string, const Fact*> unused;
  for (const Fact& fact : kUnusedErrors) unused[fact.name] = &fact;
  std::string text =
      "### Errors\n\n| 1.3 | type, code | 1.0 | type, code | Headrace |\n| --- | --- | --- | --- | --- |\n";
  for (size_t i = 0; i + 1 < names.size() && i < error_definitions().size(); ++i) {
    const ErrorDefinition& error = error_definitions()[i];
    const auto fact = unused.find(error.name_1_3);
    EXPECT_EQ(sent.count(names[i + 1]) == 0, fact != unused.end())
        << error.name_1_3 << (fact == unused.end() ? " is never sent: why?" : " is sent");
    const bool has_1_0 = error.type_1_0 >= 0;
    text += fmt::format("| `{}` | {}, {} | {} | {} | {} |\n", error.name_1_3, error.type_1_3, error.code_1_3,
                        name_text(error.name_1_0),
                        has_1_0 && (error.name_1_0 != nullptr || fact == unused.end())
                            ? fmt::format("{}, {}", error.type_1_0, error.code_1_0)
                            : "",
                        fact == unused.end() ? "sent" : fmt::format("not used: {}", fact->second->text));
    if (fact != unused.end()) unused.erase(fact);
  }
  for (const auto& [name, fact] : unused) ADD_FAILURE() << name << ": there is no such error";
  return text;
}

std::string support_page() {
  std::set<std::string> used;
  std::string page = fields_table(used);
  for (const DefinitionTable& table : definition_tables()) page += table_of(table, used);
  for (const Fact& fact : kFacts) EXPECT_EQ(used.count(fact.name), 1u) << fact.name << ": there is no such row";
  return page + errors_table();
}

using OpenFlowPage = StoredData;

TEST_F(OpenFlowPage, SaysOfEachDefinitionWhatBecomesOfIt) {
  const std::string page = support_page();
  const std::string path = kSourceDir + "/docs/openflow.md";
  const auto read = [&] {
    std::ifstream in(path);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  std::string text = read();
  const std::string begin = "<!-- Made from the definitions by the test OpenFlowPage. -->\n\n";
  const size_t at = text.find(begin);
  ASSERT_NE(at, std::string::npos);
  if (std::getenv("HEADRACE_WRITE_DOCS") != nullptr) std::ofstream(path) << text.substr(0, at) + begin + page;
  text = read();
  EXPECT_EQ(text.substr(at + begin.size()), page) << "HEADRACE_WRITE_DOCS=1 writes it";
}

}  // namespace
}  // namespace headrace::openflow
