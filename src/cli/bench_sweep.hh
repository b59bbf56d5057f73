#pragma once
/// \file
/// `headrace bench --sweep`: settings of one running router, compared in turn.

#include <string>
#include <vector>

#include "cli/bench_router.hh"

namespace headrace::cli {

struct SweepOptions {
  static constexpr const char* kDefault = "0,0.25,0.5,0.75,0.9,1x64,256,1024x2,8";
  static constexpr double kSeconds = 0.3;

  std::string points;  // as on the command line
  int rounds = 3;
  double settle = 0.3;
  double p99_us = 0;  // 0: no bound
  // Of `points`.
  std::vector<double> fractions;
  std::vector<int> jobs, places;
  std::string mistake;

  /// Reads `points`: "default", or FRACTIONS, FRACTIONSxJOBS or FRACTIONSxJOBSxPLACES, each a list with commas. False, with
  /// `mistake`, for anything else.
  bool parse();
};

/// Measures and prints; the exit status.
int bench_sweep(lang::Configuration configuration, BenchOptions options, const SweepOptions& sweep);

}  // namespace headrace::cli
