#include "control/openflow/pipeline/checks.hh"

namespace headrace::openflow {

namespace {

constexpr uint8_t kIp6ExtensionHeaders = 39;  // OXM number: which headers there are cannot be set

bool can_output(uint32_t number, const SwitchNames& names, bool packet_out) {
  switch (number) {
    case port::kInPort:
    case port::kNormal:
    case port::kFlood:
    case port::kAll:
    case port::kController:
      return true;
    case port::kTable:
      return packet_out;
    default:
      return names.has_port(number);
  }
}

ErrorCode check_action(const Action& action, const SwitchNames& names, bool packet_out) {
  switch (action.type) {
    case ActionType::kOutput:
      return can_output(action.value, names, packet_out) ? ErrorCode::kNone : ErrorCode::kActionBadOutPort;
    case ActionType::kGroup:
      return names.has_group(action.value) ? ErrorCode::kNone : ErrorCode::kActionBadOutGroup;
    case ActionType::kSetQueue:
    case ActionType::kEnqueue:
      return ErrorCode::kActionBadQueue;  // there are no queues
    case ActionType::kSetField:
      return action.field == kIp6ExtensionHeaders ? ErrorCode::kActionBadSetType : ErrorCode::kNone;
    case ActionType::kUnknown:
      return ErrorCode::kActionBadExperimenter;
    default:
      return ErrorCode::kNone;
  }
}

}  // namespace

ErrorCode check_actions(const std::vector<Action>& actions, const SwitchNames& names, bool packet_out) {
  for (const Action& action : actions)
    if (const ErrorCode error = check_action(action, names, packet_out); error != ErrorCode::kNone) return error;
  return ErrorCode::kNone;
}

ErrorCode check_instructions(const std::vector<Instruction>& instructions, uint8_t table, const SwitchNames& names) {
  for (const Instruction& instruction : instructions) {
    switch (instruction.type) {
      case InstructionType::kGotoTable:
        if (instruction.table <= table || !names.has_table(instruction.table)) return ErrorCode::kInstructionBadTableId;
        break;
      case InstructionType::kMeter:
        if (!names.has_meter(instruction.meter)) return ErrorCode::kMeterModInvalidMeter;
        break;
      case InstructionType::kUnknown:
        return ErrorCode::kInstructionBadExperimenter;
      default:
        break;
    }
    if (const ErrorCode error = check_actions(instruction.actions, names); error != ErrorCode::kNone) return error;
  }
  return ErrorCode::kNone;
}

}  // namespace headrace::openflow
