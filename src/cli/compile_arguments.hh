#pragma once
/// \file
/// The options about compiled chains that `run` and `bench` share.

#include <CLI/CLI.hpp>

#include "headrace/compile_options.hh"

namespace headrace::cli {

/// Adds --compile and --compiled. `options` must outlive the parsing.
/// \param usual what the help calls the default
void add_compile_arguments(CLI::App& app, CompileOptions& options, const char* usual);

}  // namespace headrace::cli
