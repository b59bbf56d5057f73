#include "control/openflow/pipeline/programs.hh"

#include <algorithm>
#include <span>
#include <utility>

#include "tables/hash/hash_view.hh"
#include "tables/openflow/program_view.hh"

namespace headrace::openflow {

namespace {

uint64_t hash_of_words(std::span<const uint32_t> words) {
  uint64_t h = words.size();
  for (const uint32_t word : words) h = fold_multiply(h ^ word, 0x9e3779b97f4a7c15ull);
  return h;
}

bool contains(const std::vector<uint32_t>& list, uint32_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

void add_once(std::vector<uint32_t>& list, uint32_t number) {
  if (!contains(list, number)) list.push_back(number);
}

}  // namespace

bool Program::outputs_to(uint32_t port) const { return contains(ports, port); }
bool Program::names_group(uint32_t group) const { return contains(groups, group); }

ErrorCode Programs::take(const std::vector<Instruction>& instructions, ProgramUser user, const ProgramNames& names,
                         Program*& program) {
  const uint32_t flags = user == ProgramUser::kTableMiss ? program_flag::kTableMiss : 0;
  const auto words = entry_program(instructions, names, flags);
  return words ? take(*words, instructions, user, program) : ErrorCode::kActionTooMany;
}

ErrorCode Programs::take_for_bucket(const std::vector<Action>& actions, const ProgramNames& names, Program*& program) {
  const auto words = bucket_program(actions, names);
  if (!words) return ErrorCode::kActionTooMany;
  Instruction written;
  written.type = InstructionType::kWriteActions;
  written.actions = actions;
  return take(*words, {written}, ProgramUser::kBucket, program);
}

ErrorCode Programs::take(const std::vector<uint32_t>& words, const std::vector<Instruction>& instructions,
                         ProgramUser user, Program*& program) {
  const uint64_t hash = hash_of_words(words);
  const auto [begin, end] = programs_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->user != user || it->second->instructions != instructions) continue;
    program = it->second.get();
    ++program->users;
    return ErrorCode::kNone;
  }
  auto made = std::make_unique<Program>();
  made->instructions = instructions;
  made->user = user;
  made->words = static_cast<uint32_t>(words.size());
  made->users = 1;
  for (const Instruction& instruction : instructions) {
    if (instruction.type == InstructionType::kMeter) made->meter = instruction.meter;
    for (const Action& action : instruction.actions) {
      if (action.type == ActionType::kOutput) add_once(made->ports, action.value);
      if (action.type == ActionType::kGroup) add_once(made->groups, action.value);
    }
  }
  const auto place = programs_.emplace(hash, std::move(made));
  const auto index = store_.add(words);
  if (!index) {
    programs_.erase(place);
    return ErrorCode::kFlowModTableFull;
  }
  program = place->second.get();
  program->index = *index;
  return ErrorCode::kNone;
}

void Programs::release(Program* program) {
  if (--program->users != 0) return;
  store_.give_up(program->index, program->words);
  const auto [begin, end] = programs_.equal_range(hash_of_words({store_.data() + program->index, program->words}));
  programs_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second.get() == program; }));
}

bool Programs::change_frames() const {
  const auto changes = [](const Action& action) {
    return action.type != ActionType::kOutput && action.type != ActionType::kGroup;
  };
  for (const auto& [hash, program] : programs_)
    for (const Instruction& instruction : program->instructions)
      if (std::any_of(instruction.actions.begin(), instruction.actions.end(), changes)) return true;
  return false;
}

}  // namespace headrace::openflow
