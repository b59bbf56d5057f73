#pragma once
/// \file
/// The chains of a router as a program for the CPU: C++ generated from its plans.

#include <string>
#include <vector>

#include "headrace/device/embedded.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// The source of all plans: for each entry, a function that runs a batch through the shaders behind it. Packets pass
/// shaders one after the other in a loop over the batch, without a call, until one of these:
///
/// - a shader that prefers whole batches, or that prefetches: packets wait in a list, so that their table entries are on
///   the way when the next loop looks them up;
/// - a shader that sends packets different ways: each way has a list and a loop of its own;
/// - an exit.
///
/// Ways that differ only in the values of their shaders share one loop. What shaders hold is part of the source; a second
/// body of each chain reads from memory what handlers may change. Comments show names and arguments as in the
/// configuration. The program includes only embedded headers and those of the compiler.
///
/// \param marks the program tells in ChainRun::mark where it is: mark_of() of a step
/// \param open only the body for any values that handlers may set: configurations that differ in nothing else have the
/// same program
std::string cpu_program_source(const std::vector<Plan>& plans, bool marks = false, bool open = false);
constexpr uint32_t mark_of(size_t plan, size_t step) { return static_cast<uint32_t>(plan << 16 | (step + 1)); }

/// The embedded headers that a source includes, directly or not, by path. What is not embedded is left out: it stands
/// behind a condition that programs do not meet.
std::vector<EmbeddedText> included_headers(std::string_view source);

}  // namespace headrace::offload
