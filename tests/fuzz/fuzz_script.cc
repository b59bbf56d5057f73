// Feeds text to the parts of Script that read it: the first line chooses a function by name, or "compile".

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "base/argument_text.hh"
#include "control/script_functions.hh"
#include "control/script_program.hh"
#include "headrace/element.hh"

namespace {

using namespace headrace;

/// Whatever was accepted can be run: jumps lead into the program, and its end is an end.
void compile(std::string_view text) {
  control::Program program;
  Errors errors;
  const bool good = control::compile(lang::split_arguments(text), control::Op::kEnd, program, errors).ok();
  if (good == (errors.error_count() > 0)) abort();
  if (!good) return;
  const int size = static_cast<int>(program.instructions.size());
  if (size < 2 || program.instructions.back().op != control::Op::kEnd) abort();
  for (const control::Instruction& in : program.instructions) {
    if (in.op == control::Op::kGoto && (in.number >= size || in.number <= control::kNowhere)) abort();
    if (in.op == control::Op::kPause && in.number < 0) abort();
  }
}

/// These look at the world outside of their parameters.
bool is_impure(std::string_view name) {
  return name == "cat" || name == "catq" || name == "kill" || name == "readable" || name == "writable";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  if (line == std::string_view::npos) return 0;
  const std::string_view name = input.substr(0, line), text = input.substr(line + 1);
  if (name == "compile") {
    compile(text);
    return 0;
  }
  for (const control::ScriptFunction& f : control::script_functions()) {
    if (f.name != name || is_impure(name)) continue;
    const Element element;
    std::mt19937_64 random(1);
    control::FunctionContext context{element, random};
    std::string value;
    Errors errors;
    if (f.call(text, context, value, errors).ok() == (errors.error_count() > 0)) abort();
  }
  return 0;
}
