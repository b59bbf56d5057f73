#pragma once
/// \file
/// The instructions of a Script, from text.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"

namespace headrace::control {

enum class Op {
  kStart,
  kPause,
  kWait,
  kPrint,
  kRead,
  kWrite,
  kSet,
  kInit,
  kExport,
  kLabel,
  kGoto,
  kReturn,
  kError,
  kEnd,
  kExit,
  kStop
};

/// Where a jump may go besides to an instruction.
enum : int { kToEnd = -1, kToExit = -2, kToStop = -3, kToError = -4, kNowhere = -5 };

struct Instruction {
  Op op;
  /// Takes a layer of quotation off its text (setq, printq, ...).
  bool unquote = false;
  /// kPrint: ends the line if the text does not.
  bool newline = true;
  /// kPrint: "" prints to standard output; `append` keeps what the file has.
  std::string file;
  bool append = false;
  /// kSet, kInit, kExport: the variable. kLabel: the label.
  std::string name;
  /// What follows, with variables: text, a handler, a time, a condition.
  std::string text;
  /// kPause: the number of steps. kGoto: an instruction, or one of the constants above.
  int number = 0;
};

/// A Script's program. The first instruction is kStart, kPause or kWait, the last an end.
struct Program {
  std::vector<Instruction> instructions;

  /// The instruction with that label, one of the constants, or kNowhere.
  int find_label(std::string_view label) const;
};

/// Reports every instruction that is wrong.
/// \param last what a program that runs to its end does
Status compile(const std::vector<std::string>& arguments, Op last, Program& program, Errors& errors);

}  // namespace headrace::control
