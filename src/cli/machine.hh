#pragma once
/// \file
/// The machine that commands run on.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/runtime.hh"

namespace headrace::cli {

/// CPUs that this process may use, in order.
std::vector<int> usable_cpus();

/// Sets options.real_time for options.threads workers. False, with a message that begins with `program`, where these
/// workers must not run under the real-time policy that the process was started with.
bool plan_scheduling(const char* program, Runtime::Options& options);

/// "AMD EPYC (family 26, model 2, L1d 48 KiB, L2 1024 KiB, L3 32768 KiB, AVX-512), 2 CPUs, Linux 6.18.5": machines of one
/// name differ by factors.
std::string machine_name();
/// The same in full: family, model, stepping, caches of one CPU in KiB by level, vector extensions.
nlohmann::ordered_json cpu_details();
/// Cycles of the time-stamp counter in a second, measured once.
double tsc_hz();

}  // namespace headrace::cli
