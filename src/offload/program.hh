#pragma once
/// \file
/// The device program of a router: CUDA C++ generated from its plans.

#include <string>
#include <vector>

#include "offload/backend.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// The source of all plans: for each plan, a function that runs a slot through its shaders, with comments that show
/// names and arguments as in the configuration. It includes only embedded headers.
/// `headrace_run_plan<class>(plan, slot, parameters)` selects the plan; `headrace_prepare_block<class>()` is called once by
/// a block of threads before it runs any.
std::string program_source(const std::vector<Plan>& plans);

/// The program, with what a backend needs to know about its plans.
Program make_program(const std::vector<Plan>& plans, size_t images);

}  // namespace headrace::offload
