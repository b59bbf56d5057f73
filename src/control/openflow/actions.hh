#pragma once
/// \file
/// Actions and instructions of both versions in one form.

#include <cstdint>
#include <vector>

#include "control/openflow/definitions.hh"
#include "control/openflow/match.hh"
#include "control/openflow/wire.hh"
#include "tables/key/key_fields.hh"

namespace headrace::openflow {

struct Action {
  ActionType type = ActionType::kOutput;
  /// kSetField: the OXM number. kSetTransport: kTransportSource or kTransportDestination.
  uint8_t field = 0;
  /// kOutput: bytes for the controller, at most. kPush*, kPopMpls: the Ethernet type.
  uint16_t number = 0;
  /// kOutput and kEnqueue: the port. kGroup: the group. kSetQueue: the queue. kSet*Ttl: the TTL. kSetVlanVid,
  /// kSetVlanPcp, kSetTransport: the value.
  uint32_t value = 0;
  uint32_t queue = 0;               ///< kEnqueue
  KeyValue set;                     ///< kSetField
  std::vector<uint8_t> as_written;  ///< kUnknown: the whole action

  bool operator==(const Action&) const = default;
};

/// The place of an action in an action set (ONF TS-023, section 5.10).
int place_in_set(ActionType type);

struct Instruction {
  InstructionType type = InstructionType::kApplyActions;
  uint8_t table = 0;      ///< kGotoTable
  uint32_t meter = 0;     ///< kMeter
  uint64_t metadata = 0;  ///< kWriteMetadata
  uint64_t metadata_mask = 0;
  std::vector<Action> actions;      ///< kWriteActions, kApplyActions
  std::vector<uint8_t> as_written;  ///< kUnknown: the whole instruction

  bool operator==(const Instruction&) const = default;
};

/// Reads actions up to the end. Errors: BAD_ACTION with all its codes but those that take a switch to find.
void actions(Reader& io, std::vector<Action>& actions);
/// Writes actions in the version's form. `match`, if not null, is that of the entry that they belong to: what they mean
/// to the packets that it matches is kept. What the version cannot say is left out and clears `io.exact()`.
void actions(Writer& io, const std::vector<Action>& actions, const KeyMatch* match);

/// 1.3: instructions up to the end; errors: BAD_INSTRUCTION with UNKNOWN_INST, BAD_EXPERIMENTER, BAD_LEN, and UNSUP_INST for
/// a second one of a type. 1.0: actions, which become kApplyActions.
void instructions(Reader& io, std::vector<Instruction>& instructions);
/// In 1.0 the actions of kApplyActions and then of kWriteActions, as they mean the same there to a table that is the last.
void instructions(Writer& io, const std::vector<Instruction>& instructions, const KeyMatch& match);

}  // namespace headrace::openflow
