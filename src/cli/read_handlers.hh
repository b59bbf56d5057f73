#pragma once
/// \file
/// Handlers named on a command line.

#include <string>
#include <vector>

#include "headrace/router.hh"

namespace headrace::cli {

/// Prints the values of read handlers to standard output, as `click -h` does: "element.handler" or "handler", where the
/// element may be a pattern with * ? [] or the name of a class. One value stands alone; several, or those of a pattern,
/// are headed by their names.
Status print_handlers(const Router& router, const std::vector<std::string>& names, Errors& errors);

/// Reads a handler as an exit status: an integer, or true (0) or false (1). -1, with an error, when it is neither.
int read_exit_status(Router& router, const std::string& name, Errors& errors);

}  // namespace headrace::cli
