#pragma once
/// \file
/// The device program of a router: CUDA C++ made from its plans.

#include <string>
#include <vector>

#include "offload/backend.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// The source of all plans: for each a function that runs a slot through its shaders, in which names and arguments
/// stand as in the configuration. Nothing but embedded headers is included. `headrace_run_plan(plan, slot, parameters)`
/// chooses among them.
std::string program_source(const std::vector<Plan>& plans);

/// The program with what a backend must know of its plans.
Program make_program(const std::vector<Plan>& plans, size_t images);

}  // namespace headrace::offload
