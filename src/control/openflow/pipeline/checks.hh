#pragma once
/// \file
/// What a switch checks of actions and instructions beyond their form.

#include <cstdint>
#include <functional>
#include <vector>

#include "control/openflow/actions.hh"
#include "control/openflow/errors.hh"

namespace headrace::openflow {

/// What exists in a switch.
struct SwitchNames {
  std::function<bool(uint32_t port)> has_port;  ///< a real port, or LOCAL
  std::function<bool(uint32_t group)> has_group;
  std::function<bool(uint32_t meter)> has_meter;
  std::function<bool(uint8_t table)> has_table;
};

/// Errors: BAD_ACTION with BAD_OUT_PORT, BAD_OUT_GROUP, BAD_QUEUE, BAD_SET_TYPE. `packet_out`: output to TABLE is one, too.
ErrorCode check_actions(const std::vector<Action>& actions, const SwitchNames& names, bool packet_out = false);

/// Of an entry of `table`. Errors: those of check_actions(), BAD_INSTRUCTION/BAD_TABLE_ID, METER_MOD_FAILED/INVALID_METER.
ErrorCode check_instructions(const std::vector<Instruction>& instructions, uint8_t table, const SwitchNames& names);

}  // namespace headrace::openflow
