#pragma once
/// \file
/// The number of workers and the size of batches, which every command that runs or checks a configuration takes under the same names.

#include <string>

#include "cli/command_line.hh"
#include "headrace/batch.hh"
#include "headrace/batch_size.hh"
#include "headrace/worker.hh"

namespace headrace::cli {

/// \param otherwise says what holds without the option
inline void add_workers_option(CommandLine& line, int& workers, const std::string& otherwise) {
  line.add_option("-w,--workers,-j,--threads", workers, "Worker threads; " + otherwise)
      ->check(CLI::Range(1, kMaxThreads - 1))
      ->option_text("N")
      ->group("Running");
}

inline void add_batch_option(CommandLine& line) {
  line.add_option_function<int>(
          "--batch", [](int packets) { set_default_batch(packets); },
          "Packets that sources hand on together where their BURST does not say; default: as many as fit into the "
          "first-level cache")
      ->check(CLI::Range(1, Batch::kCapacity))
      ->option_text("N")
      ->group("Running");
}

}  // namespace headrace::cli
