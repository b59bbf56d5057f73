#include "control/openflow/pipeline/table_configs.hh"

#include <algorithm>
#include <set>

#include "control/openflow/match.hh"

namespace headrace::openflow {

namespace {

constexpr uint8_t kNotSettable[] = {oxm::kInPort, oxm::kInPhyPort, oxm::kMetadata, 39};
/// OFPTC_DEPRECATED_MASK: all bits that there are, without a meaning.
constexpr uint32_t kConfigBits = 3;

bool is_settable(const KeyField& field) {
  return std::find(std::begin(kNotSettable), std::end(kNotSettable), field.oxm) == std::end(kNotSettable);
}

/// The number of a field in an OXM header, without mask and length.
uint32_t field_of(uint32_t header) { return header >> 9; }

bool has_fields(uint16_t property) {
  return property >= table_property::kMatch && property <= table_property::kApplySetFieldMiss;
}

/// The property for entries in place of that for a miss.
uint16_t for_entries(uint16_t property) {
  switch (property) {
    case table_property::kInstructionsMiss:
    case table_property::kNextTablesMiss:
    case table_property::kWriteActionsMiss:
    case table_property::kApplyActionsMiss:
    case table_property::kWriteSetFieldMiss:
    case table_property::kApplySetFieldMiss:
      return property - 1;
    default:
      return property;
  }
}

}  // namespace

TableFeatures TableConfigs::all_of(uint32_t table, uint32_t most_entries) {
  TableFeatures all;
  all.table = static_cast<uint8_t>(table);
  all.name = default_name(table);
  all.metadata_match = all.metadata_write = ~uint64_t{0};
  all.max_entries = most_entries;
  std::vector<uint32_t> instructions, next, actions, matched, wildcards, set;
  for (size_t type = 0; type < static_cast<size_t>(InstructionType::kUnknown); ++type)
    instructions.push_back(static_cast<uint32_t>(instruction_types()[type].number_1_3));
  for (uint32_t other = table + 1; other < kMostTables; ++other) next.push_back(other);
  for (size_t type = 0; type < static_cast<size_t>(ActionType::kUnknown); ++type)
    if (static_cast<ActionType>(type) != ActionType::kSetQueue)
      actions.push_back(static_cast<uint32_t>(action_types()[type].number_1_3));
  for (const KeyField& field : key_fields()) {
    matched.push_back(oxm_header(field, field.maskable));
    wildcards.push_back(oxm_header(field, false));
    if (is_settable(field)) set.push_back(oxm_header(field, false));
  }
  all.properties = {{table_property::kInstructions, instructions, {}},
                    {table_property::kNextTables, next, {}},
                    {table_property::kWriteActions, actions, {}},
                    {table_property::kApplyActions, actions, {}},
                    {table_property::kMatch, matched, {}},
                    {table_property::kWildcards, wildcards, {}},
                    {table_property::kWriteSetField, set, {}},
                    {table_property::kApplySetField, set, {}}};
  return all;
}

TableConfigs::TableConfigs(uint32_t most_entries) : most_entries_(most_entries) { present_.set(); }

ErrorCode TableConfigs::table_mod(const TableMod& mod) {
  if (mod.table != kAllTables && !has(mod.table)) return ErrorCode::kTableModBadTable;
  if ((mod.config & ~kConfigBits) != 0) return ErrorCode::kTableModBadConfig;
  if (mod.table == kAllTables) {
    config_.fill(mod.config);
  } else {
    config_[mod.table] = mod.config;
  }
  return ErrorCode::kNone;
}

ErrorCode TableConfigs::check(const TableFeatures& wanted, const TableFeatures& possible) {
  if (wanted.max_entries > possible.max_entries || (wanted.config & ~kConfigBits) != 0)
    return ErrorCode::kTableFeaturesBadArgument;
  std::set<uint16_t> seen;
  for (const TableProperty& property : wanted.properties) {
    if (property.type >= table_property::kExperimenter) return ErrorCode::kTableFeaturesBadType;
    if (!seen.insert(property.type).second) return ErrorCode::kTableFeaturesBadType;
    const auto same = std::find_if(possible.properties.begin(), possible.properties.end(),
                                   [&](const auto& other) { return other.type == for_entries(property.type); });
    if (same == possible.properties.end()) return ErrorCode::kTableFeaturesBadType;
    const bool fields = has_fields(property.type);
    for (const uint32_t value : property.values) {
      const bool can = std::any_of(same->values.begin(), same->values.end(), [&](uint32_t other) {
        return fields ? field_of(other) == field_of(value) : other == value;
      });
      if (!can) return ErrorCode::kTableFeaturesBadArgument;
    }
  }
  return ErrorCode::kNone;
}

ErrorCode TableConfigs::set(const std::vector<TableFeatures>& features, const std::bitset<kMostTables>& has_entries) {
  std::bitset<kMostTables> present;
  for (const TableFeatures& wanted : features) {
    if (wanted.table >= kMostTables || present[wanted.table]) return ErrorCode::kTableFeaturesBadTable;
    present.set(wanted.table);
  }
  // Packets begin in table 0.
  if (!present[0]) return ErrorCode::kTableFeaturesBadTable;
  for (const TableFeatures& wanted : features)
    if (const ErrorCode error = check(wanted, all_of(wanted.table, most_entries_)); error != ErrorCode::kNone)
      return error;
  if ((has_entries & ~present).any()) return ErrorCode::kTableFeaturesEperm;
  for (const TableFeatures& wanted : features) {
    set_[wanted.table] = wanted;
    config_[wanted.table] = wanted.config;
  }
  present_ = present;
  return ErrorCode::kNone;
}

std::vector<TableFeatures> TableConfigs::features() const {
  std::vector<TableFeatures> all;
  for (uint32_t table = 0; table < kMostTables; ++table) {
    if (!present_[table]) continue;
    all.push_back(set_[table] ? *set_[table] : all_of(table, most_entries_));
    all.back().config = config_[table];
    for (TableProperty& property : all.back().properties)
      if (for_entries(property.type) == table_property::kNextTables)
        std::erase_if(property.values, [&](uint32_t next) { return !has(next); });
  }
  return all;
}

}  // namespace headrace::openflow
