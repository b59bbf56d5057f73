#pragma once
/// \file
/// An entry of a flow table, as the control thread knows it.

#include <cstdint>
#include <limits>

#include "control/openflow/pipeline/programs.hh"
#include "tables/openflow/entry_counters.hh"

namespace headrace::openflow {

/// Nanoseconds since any moment; steady.
using Time = int64_t;
inline constexpr Time kNoTime = std::numeric_limits<Time>::max();

struct MaskGroup;

/// What decides between entries: the priority; for one that is exact in 1.0, above all priorities.
inline constexpr uint32_t kExactRank = 0x10000;

struct FlowEntry {
  enum class State : uint8_t { kFree, kThere, kGone } state = State::kFree;
  uint8_t table = 0;
  uint16_t priority = 0;  ///< as it was written
  uint16_t idle_timeout = 0, hard_timeout = 0;
  uint32_t rank = 0;
  uint32_t slot = 0;      ///< in its mask group
  uint64_t serial = 0;    ///< of its addition: no two are the same
  uint64_t modified = 0;  ///< which modification was the last
  MaskGroup* masks = nullptr;
  Program* program = nullptr;
  uint64_t flags = 0;
  uint64_t cookie = 0;
  Time created = 0;
  Time due = kNoTime;  ///< when it has to be looked at for its timeouts
  Count base;          ///< what had been counted under its number when its counters were reset
};

}  // namespace headrace::openflow
