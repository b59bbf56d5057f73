#pragma once
/// \file
/// The option `--dpdk` of the commands that run a configuration.

#include <CLI/CLI.hpp>
#include <string>

namespace headrace::cli {

/// Takes the words of `text` as arguments for DPDK. Returns why this build cannot, or nothing.
std::string set_dpdk_arguments(const std::string& text);

/// Adds `--dpdk "ARGUMENTS"`; an error of the command line where this build has no DPDK.
void add_dpdk_option(CLI::App& app);

}  // namespace headrace::cli
