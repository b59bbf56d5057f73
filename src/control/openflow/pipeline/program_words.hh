#pragma once
/// \file
/// Instructions as the words of a program (tables/openflow/program_view.hh).

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "control/openflow/actions.hh"

namespace headrace::openflow {

/// The numbers of a controller as places in the switch, of groups and meters that exist.
struct ProgramNames {
  std::function<uint32_t(uint32_t group)> slot_of_group;
  std::function<uint32_t(uint32_t meter)> place_of_meter;
};

/// An action list as an action set: each type, and set-field for each field, once, with what is written last, in the
/// order in which a set runs (ONF TS-023, section 5.10). An output beside a group is left out.
std::vector<Action> action_set(const std::vector<Action>& actions);

/// The program of an entry. Nothing if it is too long, which is TOO_MANY. The instructions must have passed
/// check_instructions().
/// \param flags of program_flag, besides those that follow from the instructions
std::optional<std::vector<uint32_t>> entry_program(const std::vector<Instruction>& instructions,
                                                   const ProgramNames& names, uint32_t flags = 0);
/// The program of a bucket: its set of actions.
std::optional<std::vector<uint32_t>> bucket_program(const std::vector<Action>& actions, const ProgramNames& names);

}  // namespace headrace::openflow
