#pragma once
/// \file
/// The number of workers, which every command that runs or checks a configuration takes under the same names.

#include <string>

#include "cli/command_line.hh"
#include "headrace/worker.hh"

namespace headrace::cli {

/// \param otherwise says what holds without the option
inline void add_workers_option(CommandLine& line, int& workers, const std::string& otherwise) {
  line.add_option("-w,--workers,-j,--threads", workers, "Worker threads; " + otherwise)
      ->check(CLI::Range(1, kMaxThreads - 1))
      ->option_text("N")
      ->group("Running");
}

}  // namespace headrace::cli
