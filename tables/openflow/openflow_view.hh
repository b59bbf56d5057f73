#pragma once
/// \file
/// The tables of an OpenFlow switch, for both processors. Includes no standard header.
///
/// A packet walks them like this: parse the frame into a PacketKey; `table(0).find(key)`; the program of what was found;
/// change the key as the program's operations say, so that the next table matches what the packet has become; go on with
/// goto_table(). Each entry that was found is counted by its number when the packet leaves.

#include <headrace/shader_types.hh>

#include "tables/acl/acl_view.hh"
#include "tables/openflow/group_view.hh"
#include "tables/openflow/program_view.hh"

namespace headrace::openflow {

/// Tables are numbered from 0 to 254.
inline constexpr uint32_t kMostTables = 255;

/// Where the parts of a switch are. Pointers to tables are replaced under readers, all others stay.
struct OpenFlowTables {
  const AclGeneration* tables[kMostTables];  ///< null: the table has no entries
  const uint32_t* words;                     ///< of programs and groups
  const uint32_t* groups;                    ///< by slot: the index of the record; 0: none
  const uint32_t* live;
  uint32_t miss_to_controller;
};

/// Trivially copyable, one pointer, which stays as long as the switch; what it leads to is valid until the reader's next
/// quiescent state (headrace/rcu.hh).
class OpenFlowView {
 public:
  OpenFlowView() = default;
  bool operator==(const OpenFlowView&) const = default;
  HEADRACE_SHADER explicit OpenFlowView(const OpenFlowTables* tables) : tables_(tables) {}

  /// False: it has no entries, and every packet misses.
  HEADRACE_SHADER bool has_table(uint32_t table) const { return load_generation(table) != nullptr; }
  /// What was found for the first words of a key, as many as the table has; all are there in a PacketKey.
  HEADRACE_SHADER AclMatch find(uint32_t table, const uint32_t* key) const {
    const AclGeneration* const generation = load_generation(table);
    return generation == nullptr ? AclMatch() : AclView(generation).find(key);
  }
  /// \param table one that has_table()
  HEADRACE_SHADER AclView table(uint32_t table) const { return AclView(load_generation(table)); }
  /// \param index an entry's AclMatch::data, or that of a bucket
  HEADRACE_SHADER ProgramView program(uint32_t index) const { return ProgramView(tables_->words + index); }
  HEADRACE_SHADER GroupView group(uint32_t slot) const {
    const uint32_t record = load_shared(tables_->groups + slot);
    return {record == 0 ? nullptr : tables_->words + record, LiveView(tables_->live)};
  }
  HEADRACE_SHADER bool port_alive(uint32_t bit) const { return LiveView(tables_->live).alive(bit); }
  /// A packet that no entry matches goes to the controllers that speak 1.0; in 1.3 it is dropped. In every table.
  HEADRACE_SHADER bool miss_to_controller() const { return load_shared(&tables_->miss_to_controller) != 0; }

 private:
  HEADRACE_SHADER const AclGeneration* load_generation(uint32_t table) const {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    return load_shared(&tables_->tables[table]);
#else
    // What it leads to was written before.
    return __atomic_load_n(&tables_->tables[table], __ATOMIC_ACQUIRE);
#endif
  }

  const OpenFlowTables* tables_ = nullptr;
};

}  // namespace headrace::openflow
