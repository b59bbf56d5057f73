#include "control/script_program.hh"

#include <algorithm>

#include "base/argument_text.hh"
#include "headrace/args.hh"

namespace headrace::control {

namespace {

/// How what follows an instruction's word is read.
enum class Form { kText, kPause, kWaitOrPause, kVariable, kOptionalVariable, kLabel, kNothing, kPrint, kSave };

struct Word {
  std::string_view name;
  Op op;
  Form form;
  bool unquote = false;
  bool newline = true;
  bool append = false;
};

constexpr Word kWords[] = {
    {"append", Op::kPrint, Form::kSave, false, true, true},
    {"end", Op::kEnd, Form::kNothing},
    {"error", Op::kError, Form::kText},
    {"errorq", Op::kError, Form::kText, true},
    {"exit", Op::kExit, Form::kNothing},
    {"export", Op::kExport, Form::kOptionalVariable},
    {"exportq", Op::kExport, Form::kOptionalVariable, true},
    {"goto", Op::kGoto, Form::kText},
    {"init", Op::kInit, Form::kOptionalVariable},
    {"initq", Op::kInit, Form::kOptionalVariable, true},
    {"label", Op::kLabel, Form::kLabel},
    {"loop", Op::kGoto, Form::kNothing},
    {"pause", Op::kPause, Form::kPause},
    {"print", Op::kPrint, Form::kPrint},
    {"printn", Op::kPrint, Form::kPrint, false, false},
    {"printnq", Op::kPrint, Form::kPrint, true, false},
    {"printq", Op::kPrint, Form::kPrint, true},
    {"read", Op::kRead, Form::kText},
    {"readq", Op::kRead, Form::kText, true},
    {"return", Op::kReturn, Form::kText},
    {"returnq", Op::kReturn, Form::kText, true},
    {"save", Op::kPrint, Form::kSave},
    {"set", Op::kSet, Form::kVariable},
    {"setq", Op::kSet, Form::kVariable, true},
    {"stop", Op::kStop, Form::kNothing},
    {"wait", Op::kWait, Form::kWaitOrPause},
    {"wait_for", Op::kWait, Form::kText},
    {"wait_step", Op::kPause, Form::kPause},
    {"wait_stop", Op::kPause, Form::kPause},
    {"wait_time", Op::kWait, Form::kText},
    {"write", Op::kWrite, Form::kText},
    {"writeq", Op::kWrite, Form::kText, true},
};

bool parse_count(std::string_view text, int& count) {
  uint32_t n = 1;
  if (!text.empty() && (!parse_argument(text, n, {}) || n > INT32_MAX)) return false;
  count = static_cast<int>(n);
  return true;
}

/// Takes `>FILE` or `>>FILE` off the front of a print's text.
void take_redirection(std::string_view& text, Instruction& in) {
  if (!text.starts_with('>')) return;
  in.append = text.starts_with(">>");
  text.remove_prefix(in.append ? 2 : 1);
  in.file = lang::take_word(text);
}

/// Fills `in` from what follows its word. Returns what was expected there, or null if it was there.
const char* read_operands(const Word& word, std::string_view rest, Instruction& in) {
  switch (word.form) {
    case Form::kText:
      break;
    case Form::kNothing:
      return rest.empty() ? nullptr : "no operand";
    case Form::kPause:
      return parse_count(rest, in.number) ? nullptr : "a count";
    case Form::kWaitOrPause:
      if (rest.empty()) {
        in.op = Op::kPause;
        in.number = 1;
      }
      break;
    case Form::kLabel:
      in.name = lang::take_word(rest);
      return !in.name.empty() && rest.empty() ? nullptr : "one name";
    case Form::kVariable:
    case Form::kOptionalVariable:
      in.name = lang::take_word(rest);
      if (in.name.empty()) return "a variable";
      if (word.form == Form::kVariable && rest.empty()) return "a variable and its value";
      break;
    case Form::kPrint:
      take_redirection(rest, in);
      break;
    case Form::kSave: {
      const std::string_view handler = lang::take_word(rest);
      in.append = word.append;
      in.file = rest.empty() ? std::string_view("-") : rest;
      rest = handler;
      break;
    }
  }
  in.text = rest;
  return nullptr;
}

Status compile_one(const std::string& argument, Program& program, Errors& errors) {
  const std::string text = lang::uncomment(argument);
  std::string_view rest = text;
  const std::string name(lang::take_word(rest));
  if (name.empty()) return {};
  const Word* word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& w) { return w.name == name; });
  if (word == std::end(kWords)) return errors.error("syntax error at '{}'", name);
  Instruction in{
      .op = word->op, .unquote = word->unquote, .newline = word->newline, .file = {}, .name = {}, .text = {}};
  if (const char* expected = read_operands(*word, rest, in))
    return errors.error("syntax error at '{}', expected {}", name, expected);
  if (program.instructions.empty() && in.op != Op::kPause && in.op != Op::kWait)
    program.instructions.push_back({.op = Op::kStart, .file = {}, .name = {}, .text = {}});
  program.instructions.push_back(std::move(in));
  return {};
}

}  // namespace

int Program::find_label(std::string_view label) const {
  for (size_t i = 0; i < instructions.size(); ++i)
    if (instructions[i].op == Op::kLabel && instructions[i].name == label) return static_cast<int>(i);
  if (label == "begin" || label == "loop") return 0;
  if (label == "end") return kToEnd;
  if (label == "exit") return kToExit;
  if (label == "stop") return kToStop;
  if (label == "error" || label == "errorq") return kToError;
  return kNowhere;
}

Status compile(const std::vector<std::string>& arguments, Op last, Program& program, Errors& errors) {
  Status status;
  for (const std::string& argument : arguments) status &= compile_one(argument, program, errors);
  for (Instruction& in : program.instructions) {
    // Without a label it is a `loop`, which goes to the first instruction.
    if (in.op != Op::kGoto || in.text.empty()) continue;
    std::string_view rest = in.text;
    const std::string label(lang::take_word(rest));
    in.number = program.find_label(label);
    if (in.number == kNowhere) status &= errors.error("no such label '{}'", label);
    in.text = std::string(rest);
  }
  if (program.instructions.empty())
    program.instructions.push_back(last == Op::kStop
                                       ? Instruction{.op = Op::kPause, .file = {}, .name = {}, .text = {}, .number = 1}
                                       : Instruction{.op = Op::kStart, .file = {}, .name = {}, .text = {}});
  program.instructions.push_back({.op = last, .file = {}, .name = {}, .text = {}});
  return status;
}

}  // namespace headrace::control
