#pragma once
/// \file
/// The option `--dpdk` of the commands that run a configuration.

#include <CLI/CLI.hpp>

namespace headrace::cli {

/// Adds `--dpdk "ARGUMENTS"`; an error of the command line where this build has no DPDK.
void add_dpdk_option(CLI::App& app);

}  // namespace headrace::cli
