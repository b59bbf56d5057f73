#pragma once
/// \file
/// `headrace bench --steps`: what happens when load, traffic or settings change while packets flow.

#include <string>

#include "cli/bench_router.hh"

namespace headrace::cli {

/// \param file its lines are `TIME_MS [rate=MPPS] [length=BYTES] [payload=text|random] [mode=MODE] [handler NAME VALUE]`
/// \return the exit status
int bench_steps(lang::Configuration configuration, const BenchOptions& options, const std::string& file);

}  // namespace headrace::cli
