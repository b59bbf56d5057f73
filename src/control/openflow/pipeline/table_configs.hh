#pragma once
/// \file
/// What a controller can set of tables, and what it can learn of them.

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/openflow/errors.hh"
#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "tables/openflow/openflow_view.hh"

namespace headrace::openflow {

/// Names, sizes and presence of tables (ONF TS-023, sections 7.3.3 and 7.3.5.5). A controller may set table features: the
/// tables that it lists are then all that there are, with its names and sizes and with what it says of instructions, fields
/// and actions. That must be part of what all tables can do; the switch remembers it, and goes on to accept entries that
/// need more.
class TableConfigs {
 public:
  /// \param most_entries of each table
  explicit TableConfigs(uint32_t most_entries);

  uint32_t count() const { return static_cast<uint32_t>(present_.count()); }
  bool has(uint32_t table) const { return table < kMostTables && present_[table]; }
  uint32_t most_entries(uint32_t table) const { return set_[table] ? set_[table]->max_entries : most_entries_; }
  std::string name(uint32_t table) const { return set_[table] ? set_[table]->name : default_name(table); }

  /// Errors: TABLE_MOD_FAILED with BAD_TABLE and BAD_CONFIG.
  ErrorCode table_mod(const TableMod& mod);
  /// All parts of a request at once. `has_entries` says whether a table that is not in the list would lose some. Errors:
  /// TABLE_FEATURES_FAILED with its codes.
  ErrorCode set(const std::vector<TableFeatures>& features, const std::bitset<kMostTables>& has_entries);
  /// Of the tables that there are.
  std::vector<TableFeatures> features() const;

 private:
  static std::string default_name(uint32_t table) { return "table" + std::to_string(table); }
  /// All that a table can do.
  static TableFeatures all_of(uint32_t table, uint32_t most_entries);
  static ErrorCode check(const TableFeatures& wanted, const TableFeatures& possible);

  const uint32_t most_entries_;
  std::array<std::optional<TableFeatures>, kMostTables> set_;  // what a controller has set
  std::array<uint32_t, kMostTables> config_{};
  std::bitset<kMostTables> present_;
};

}  // namespace headrace::openflow
