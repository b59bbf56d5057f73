#pragma once
/// \file
/// The handlers of a Script that calculate: numbers, truth, text.

#include <random>
#include <span>
#include <string>

#include "headrace/error.hh"

namespace headrace {
class Element;
}

namespace headrace::control {

/// What a function may use besides its parameters.
struct FunctionContext {
  const Element& element;
  std::mt19937_64& random;
};

struct ScriptFunction {
  const char* name;
  /// Reads the words of `parameters` and sets `value`.
  Status (*call)(std::string_view parameters, FunctionContext& context, std::string& value, Errors& errors);
  unsigned flags = 0;  ///< of the handler, besides kParameters
};

std::span<const ScriptFunction> script_functions();

/// "INT", "SIGINT" or "2" as a signal number below 32, or 0.
int signal_number(std::string_view name);

}  // namespace headrace::control
