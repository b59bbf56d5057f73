#include "control/openflow/actions.hh"

namespace headrace::openflow {

namespace {

/// What follows an instruction's type and length, in both directions; `act` has the actions.
template <typename IO, typename OneInstruction, typename Act>
void body(IO& io, OneInstruction& instruction, Act&& act) {
  switch (instruction.type) {
    case InstructionType::kGotoTable:
      io.u8(instruction.table);
      io.pad(3);
      break;
    case InstructionType::kWriteMetadata:
      io.pad(4);
      io.u64(instruction.metadata);
      io.u64(instruction.metadata_mask);
      break;
    case InstructionType::kMeter:
      io.u32(instruction.meter);
      break;
    case InstructionType::kClearActions:
      io.pad(4);
      break;
    default:
      io.pad(4);
      act();
      break;
  }
}

void write_instructions_1_0(Writer& io, const std::vector<Instruction>& instructions, const KeyMatch& match) {
  for (const InstructionType type : {InstructionType::kApplyActions, InstructionType::kWriteActions}) {
    for (const Instruction& instruction : instructions)
      if (instruction.type == type) actions(io, instruction.actions, &match);
  }
  size_t kinds = 0;
  for (const Instruction& instruction : instructions) {
    switch (instruction.type) {
      case InstructionType::kApplyActions:
        ++kinds;
        break;
      case InstructionType::kWriteActions:
        // A set of actions has an order of its own.
        kinds += instruction.actions.size() > 1 ? 2 : 1;
        break;
      case InstructionType::kClearActions:
        break;
      default:
        io.inexact();
        break;
    }
  }
  if (kinds > 1) io.inexact();
}

}  // namespace

void instructions(Reader& io, std::vector<Instruction>& instructions) {
  if (io.is_1_0()) {
    if (io.left() == 0) return;
    actions(io, instructions.emplace_back().actions);
    return;
  }
  uint32_t seen = 0;
  io.list(instructions, [&](Instruction& instruction) {
    const uint16_t type = io.peek_u16(0), size = io.peek_u16(2);
    if (io.left() < 8 || size < 8) return io.fail(ErrorCode::kInstructionBadLen);
    const int row = find_number(instruction_types(), Version::k1_3, type);
    if (row < 0) return io.fail(ErrorCode::kInstructionUnknownInst);
    instruction.type = static_cast<InstructionType>(row);
    // 1.3 allows one of each and names no error for a second one.
    if ((seen >> row & 1) != 0 && instruction.type != InstructionType::kUnknown)
      io.object(ErrorCode::kInstructionUnsupInst);
    if (!io.ok()) return;
    seen |= 1u << row;
    io.sized(2, 8, ErrorCode::kInstructionBadLen, [&] {
      if (instruction.type == InstructionType::kUnknown) {
        io.object(ErrorCode::kInstructionBadExperimenter);
        return io.rest(instruction.as_written);
      }
      io.pad(4);
      body(io, instruction, [&] { actions(io, instruction.actions); });
    });
  });
}

void instructions(Writer& io, const std::vector<Instruction>& instructions, const KeyMatch& match) {
  if (io.is_1_0()) return write_instructions_1_0(io, instructions, match);
  for (const Instruction& instruction : instructions) {
    if (instruction.type == InstructionType::kUnknown) {
      io.bytes(instruction.as_written);
      continue;
    }
    io.sized(2, 8, ErrorCode::kInstructionBadLen, [&] {
      io.u16(instruction_types()[static_cast<size_t>(instruction.type)].number_1_3);
      io.length();
      body(io, instruction, [&] { actions(io, instruction.actions, &match); });
    });
  }
}

}  // namespace headrace::openflow
