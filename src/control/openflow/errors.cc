#include "control/openflow/errors.hh"

#include <fmt/format.h>

#include <string_view>

namespace headrace::openflow {

namespace {

constexpr Definition kErrorTypes[] = {
    in_both("OFPET_HELLO_FAILED", 0, 0),
    in_both("OFPET_BAD_REQUEST", 1, 1),
    in_both("OFPET_BAD_ACTION", 2, 2),
    in_1_3("OFPET_BAD_INSTRUCTION", 3),
    in_1_3("OFPET_BAD_MATCH", 4),
    in_both("OFPET_FLOW_MOD_FAILED", 5, 3),
    in_1_3("OFPET_GROUP_MOD_FAILED", 6),
    in_both("OFPET_PORT_MOD_FAILED", 7, 4),
    in_1_3("OFPET_TABLE_MOD_FAILED", 8),
    in_both("OFPET_QUEUE_OP_FAILED", 9, 5),
    in_1_3("OFPET_SWITCH_CONFIG_FAILED", 10),
    in_1_3("OFPET_ROLE_REQUEST_FAILED", 11),
    in_1_3("OFPET_METER_MOD_FAILED", 12),
    in_1_3("OFPET_TABLE_FEATURES_FAILED", 13),
    in_1_3("OFPET_EXPERIMENTER", 0xffff),
};

// The name, type and code of 1.3; those of 1.0.
constexpr ErrorDefinition kErrors[] = {
    {"OFPHFC_INCOMPATIBLE", 0, 0, "OFPHFC_INCOMPATIBLE", 0, 0},
    {"OFPHFC_EPERM", 0, 1, "OFPHFC_EPERM", 0, 1},
    {"OFPBRC_BAD_VERSION", 1, 0, "OFPBRC_BAD_VERSION", 1, 0},
    {"OFPBRC_BAD_TYPE", 1, 1, "OFPBRC_BAD_TYPE", 1, 1},
    {"OFPBRC_BAD_MULTIPART", 1, 2, "OFPBRC_BAD_STAT", 1, 2},
    {"OFPBRC_BAD_EXPERIMENTER", 1, 3, "OFPBRC_BAD_VENDOR", 1, 3},
    {"OFPBRC_BAD_EXP_TYPE", 1, 4, "OFPBRC_BAD_SUBTYPE", 1, 4},
    {"OFPBRC_EPERM", 1, 5, "OFPBRC_EPERM", 1, 5},
    {"OFPBRC_BAD_LEN", 1, 6, "OFPBRC_BAD_LEN", 1, 6},
    {"OFPBRC_BUFFER_EMPTY", 1, 7, "OFPBRC_BUFFER_EMPTY", 1, 7},
    {"OFPBRC_BUFFER_UNKNOWN", 1, 8, "OFPBRC_BUFFER_UNKNOWN", 1, 8},
    {"OFPBRC_BAD_TABLE_ID", 1, 9, nullptr, 1, 5},
    {"OFPBRC_IS_SLAVE", 1, 10, nullptr, 1, 5},
    {"OFPBRC_BAD_PORT", 1, 11, nullptr, 2, 4},
    {"OFPBRC_BAD_PACKET", 1, 12, nullptr, 1, 6},
    {"OFPBRC_MULTIPART_BUFFER_OVERFLOW", 1, 13, nullptr, 1, 6},
    {"OFPBAC_BAD_TYPE", 2, 0, "OFPBAC_BAD_TYPE", 2, 0},
    {"OFPBAC_BAD_LEN", 2, 1, "OFPBAC_BAD_LEN", 2, 1},
    {"OFPBAC_BAD_EXPERIMENTER", 2, 2, "OFPBAC_BAD_VENDOR", 2, 2},
    {"OFPBAC_BAD_EXP_TYPE", 2, 3, "OFPBAC_BAD_VENDOR_TYPE", 2, 3},
    {"OFPBAC_BAD_OUT_PORT", 2, 4, "OFPBAC_BAD_OUT_PORT", 2, 4},
    {"OFPBAC_BAD_ARGUMENT", 2, 5, "OFPBAC_BAD_ARGUMENT", 2, 5},
    {"OFPBAC_EPERM", 2, 6, "OFPBAC_EPERM", 2, 6},
    {"OFPBAC_TOO_MANY", 2, 7, "OFPBAC_TOO_MANY", 2, 7},
    {"OFPBAC_BAD_QUEUE", 2, 8, "OFPBAC_BAD_QUEUE", 2, 8},
    {"OFPBAC_BAD_OUT_GROUP", 2, 9, nullptr, 2, 5},
    {"OFPBAC_MATCH_INCONSISTENT", 2, 10, nullptr, 2, 5},
    {"OFPBAC_UNSUPPORTED_ORDER", 2, 11, nullptr, 3, 5},
    {"OFPBAC_BAD_TAG", 2, 12, nullptr, 2, 5},
    {"OFPBAC_BAD_SET_TYPE", 2, 13, nullptr, 2, 5},
    {"OFPBAC_BAD_SET_LEN", 2, 14, nullptr, 2, 1},
    {"OFPBAC_BAD_SET_ARGUMENT", 2, 15, nullptr, 2, 5},
    {"OFPBIC_UNKNOWN_INST", 3, 0, nullptr, 3, 5},
    {"OFPBIC_UNSUP_INST", 3, 1, nullptr, 3, 5},
    {"OFPBIC_BAD_TABLE_ID", 3, 2, nullptr, 3, 5},
    {"OFPBIC_UNSUP_METADATA", 3, 3, nullptr, 3, 5},
    {"OFPBIC_UNSUP_METADATA_MASK", 3, 4, nullptr, 3, 5},
    {"OFPBIC_BAD_EXPERIMENTER", 3, 5, nullptr, 3, 5},
    {"OFPBIC_BAD_EXP_TYPE", 3, 6, nullptr, 3, 5},
    {"OFPBIC_BAD_LEN", 3, 7, nullptr, 1, 6},
    {"OFPBIC_EPERM", 3, 8, nullptr, 3, 2},
    {"OFPBMC_BAD_TYPE", 4, 0, nullptr, 3, 5},
    {"OFPBMC_BAD_LEN", 4, 1, nullptr, 1, 6},
    {"OFPBMC_BAD_TAG", 4, 2, nullptr, 3, 5},
    {"OFPBMC_BAD_DL_ADDR_MASK", 4, 3, nullptr, 3, 5},
    {"OFPBMC_BAD_NW_ADDR_MASK", 4, 4, nullptr, 3, 5},
    {"OFPBMC_BAD_WILDCARDS", 4, 5, nullptr, 3, 5},
    {"OFPBMC_BAD_FIELD", 4, 6, nullptr, 3, 5},
    {"OFPBMC_BAD_VALUE", 4, 7, nullptr, 3, 5},
    {"OFPBMC_BAD_MASK", 4, 8, nullptr, 3, 5},
    {"OFPBMC_BAD_PREREQ", 4, 9, nullptr, 3, 5},
    {"OFPBMC_DUP_FIELD", 4, 10, nullptr, 3, 5},
    {"OFPBMC_EPERM", 4, 11, nullptr, 3, 2},
    {"OFPFMFC_UNKNOWN", 5, 0, nullptr, 3, 5},
    {"OFPFMFC_TABLE_FULL", 5, 1, "OFPFMFC_ALL_TABLES_FULL", 3, 0},
    {"OFPFMFC_BAD_TABLE_ID", 5, 2, nullptr, 3, 5},
    {"OFPFMFC_OVERLAP", 5, 3, "OFPFMFC_OVERLAP", 3, 1},
    {"OFPFMFC_EPERM", 5, 4, "OFPFMFC_EPERM", 3, 2},
    {"OFPFMFC_BAD_TIMEOUT", 5, 5, "OFPFMFC_BAD_EMERG_TIMEOUT", 3, 3},
    {"OFPFMFC_BAD_COMMAND", 5, 6, "OFPFMFC_BAD_COMMAND", 3, 4},
    {"OFPFMFC_BAD_FLAGS", 5, 7, "OFPFMFC_UNSUPPORTED", 3, 5},
    {"OFPGMFC_GROUP_EXISTS", 6, 0, nullptr, -1, -1},
    {"OFPGMFC_INVALID_GROUP", 6, 1, nullptr, -1, -1},
    {"OFPGMFC_WEIGHT_UNSUPPORTED", 6, 2, nullptr, -1, -1},
    {"OFPGMFC_OUT_OF_GROUPS", 6, 3, nullptr, -1, -1},
    {"OFPGMFC_OUT_OF_BUCKETS", 6, 4, nullptr, -1, -1},
    {"OFPGMFC_CHAINING_UNSUPPORTED", 6, 5, nullptr, -1, -1},
    {"OFPGMFC_WATCH_UNSUPPORTED", 6, 6, nullptr, -1, -1},
    {"OFPGMFC_LOOP", 6, 7, nullptr, -1, -1},
    {"OFPGMFC_UNKNOWN_GROUP", 6, 8, nullptr, -1, -1},
    {"OFPGMFC_CHAINED_GROUP", 6, 9, nullptr, -1, -1},
    {"OFPGMFC_BAD_TYPE", 6, 10, nullptr, -1, -1},
    {"OFPGMFC_BAD_COMMAND", 6, 11, nullptr, -1, -1},
    {"OFPGMFC_BAD_BUCKET", 6, 12, nullptr, -1, -1},
    {"OFPGMFC_BAD_WATCH", 6, 13, nullptr, -1, -1},
    {"OFPGMFC_EPERM", 6, 14, nullptr, -1, -1},
    {"OFPPMFC_BAD_PORT", 7, 0, "OFPPMFC_BAD_PORT", 4, 0},
    {"OFPPMFC_BAD_HW_ADDR", 7, 1, "OFPPMFC_BAD_HW_ADDR", 4, 1},
    {"OFPPMFC_BAD_CONFIG", 7, 2, nullptr, 4, 0},
    {"OFPPMFC_BAD_ADVERTISE", 7, 3, nullptr, 4, 0},
    {"OFPPMFC_EPERM", 7, 4, nullptr, 1, 5},
    {"OFPTMFC_BAD_TABLE", 8, 0, nullptr, -1, -1},
    {"OFPTMFC_BAD_CONFIG", 8, 1, nullptr, -1, -1},
    {"OFPTMFC_EPERM", 8, 2, nullptr, -1, -1},
    {"OFPQOFC_BAD_PORT", 9, 0, "OFPQOFC_BAD_PORT", 5, 0},
    {"OFPQOFC_BAD_QUEUE", 9, 1, "OFPQOFC_BAD_QUEUE", 5, 1},
    {"OFPQOFC_EPERM", 9, 2, "OFPQOFC_EPERM", 5, 2},
    {"OFPSCFC_BAD_FLAGS", 10, 0, nullptr, 1, 5},
    {"OFPSCFC_BAD_LEN", 10, 1, nullptr, 1, 6},
    {"OFPSCFC_EPERM", 10, 2, nullptr, 1, 5},
    {"OFPRRFC_STALE", 11, 0, nullptr, 1, 5},
    {"OFPRRFC_UNSUP", 11, 1, nullptr, 1, 5},
    {"OFPRRFC_BAD_ROLE", 11, 2, nullptr, 1, 5},
    {"OFPMMFC_UNKNOWN", 12, 0, nullptr, -1, -1},
    {"OFPMMFC_METER_EXISTS", 12, 1, nullptr, -1, -1},
    {"OFPMMFC_INVALID_METER", 12, 2, nullptr, -1, -1},
    {"OFPMMFC_UNKNOWN_METER", 12, 3, nullptr, -1, -1},
    {"OFPMMFC_BAD_COMMAND", 12, 4, nullptr, -1, -1},
    {"OFPMMFC_BAD_FLAGS", 12, 5, nullptr, -1, -1},
    {"OFPMMFC_BAD_RATE", 12, 6, nullptr, -1, -1},
    {"OFPMMFC_BAD_BURST", 12, 7, nullptr, -1, -1},
    {"OFPMMFC_BAD_BAND", 12, 8, nullptr, -1, -1},
    {"OFPMMFC_BAD_BAND_VALUE", 12, 9, nullptr, -1, -1},
    {"OFPMMFC_OUT_OF_METERS", 12, 10, nullptr, -1, -1},
    {"OFPMMFC_OUT_OF_BANDS", 12, 11, nullptr, -1, -1},
    {"OFPTFFC_BAD_TABLE", 13, 0, nullptr, -1, -1},
    {"OFPTFFC_BAD_METADATA", 13, 1, nullptr, -1, -1},
    {"OFPTFFC_BAD_TYPE", 13, 2, nullptr, -1, -1},
    {"OFPTFFC_BAD_LEN", 13, 3, nullptr, -1, -1},
    {"OFPTFFC_BAD_ARGUMENT", 13, 4, nullptr, -1, -1},
    {"OFPTFFC_EPERM", 13, 5, nullptr, -1, -1},
};
static_assert(std::size(kErrors) == static_cast<size_t>(ErrorCode::kTableFeaturesEperm));

/// Without the prefix, which names the specification's enum.
std::string_view without_prefix(const char* name) {
  const std::string_view text = name;
  return text.substr(text.find('_') + 1);
}

}  // namespace

std::span<const Definition> error_types() { return kErrorTypes; }
std::span<const ErrorDefinition> error_definitions() { return kErrors; }
const ErrorDefinition& definition_of(ErrorCode code) { return kErrors[static_cast<size_t>(code) - 1]; }

std::string error_text(Version version, uint16_t type, uint16_t code) {
  const int row = find_number(kErrorTypes, version, type);
  std::string text = row < 0 ? fmt::format("{}", type) : std::string(without_prefix(kErrorTypes[row].name(version)));
  for (const ErrorDefinition& error : kErrors) {
    const char* const name = version == Version::k1_0 ? error.name_1_0 : error.name_1_3;
    if (name != nullptr && error.type(version) == type && error.code(version) == code)
      return fmt::format("{}/{}", text, without_prefix(name));
  }
  return fmt::format("{}/{}", text, code);
}

}  // namespace headrace::openflow
