#pragma once
/// \file
/// The programs of a switch: one for all entries with the same instructions.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "control/openflow/actions.hh"
#include "control/openflow/errors.hh"
#include "control/openflow/pipeline/program_words.hh"
#include "tables/openflow/word_store.hh"

namespace headrace::openflow {

/// Whose program it is; kTableMiss: of an entry with program_flag::kTableMiss.
enum class ProgramUser : uint8_t { kEntry, kTableMiss, kBucket };

/// A program as the control thread knows it.
struct Program {
  std::vector<Instruction> instructions;  ///< as they were written; a bucket has one kWriteActions
  ProgramUser user = ProgramUser::kEntry;
  uint32_t index = 0;  ///< AclMatch::data
  uint32_t words = 0;
  std::vector<uint32_t> ports, groups;  ///< that its actions name, each once
  uint32_t meter = 0;                   ///< 0: none
  size_t users = 0;

  bool outputs_to(uint32_t port) const;
  bool names_group(uint32_t group) const;
};

class Programs {
 public:
  explicit Programs(WordStore& store) : store_(store) {}

  /// Takes a program for one more user. On an error, TABLE_FULL or TOO_MANY, `program` stays as it was.
  ErrorCode take(const std::vector<Instruction>& instructions, ProgramUser user, const ProgramNames& names,
                 Program*& program);
  /// The same program for one more user.
  static Program* take_again(Program* program) {
    ++program->users;
    return program;
  }
  ErrorCode take_for_bucket(const std::vector<Action>& actions, const ProgramNames& names, Program*& program);
  /// Nothing that is published from now on has this user's program.
  void release(Program* program);

  size_t size() const { return programs_.size(); }
  /// Whether an action of one of them changes frames.
  bool change_frames() const;

 private:
  ErrorCode take(const std::vector<uint32_t>& words, const std::vector<Instruction>& instructions, ProgramUser user,
                 Program*& program);

  WordStore& store_;
  std::unordered_multimap<uint64_t, std::unique_ptr<Program>> programs_;  // by the hash of their words
};

}  // namespace headrace::openflow
