#pragma once
/// \file
/// The man page and the completion script for bash, made from the descriptions of commands and options.

#include <span>
#include <string>
#include <string_view>

#include "cli/commands.hh"

namespace headrace::cli {

/// `text` as troff shows it.
std::string troff(std::string_view text);

/// Prints headrace(1). Each command prints its own section.
void print_man_page(std::span<const Command> commands);

/// Prints the completion script. Each command prints its own branch.
void print_bash_completion(std::span<const Command> commands);

}  // namespace headrace::cli
