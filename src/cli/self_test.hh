#pragma once
/// \file
/// The unit tests inside the binary (preset `portable`), so that a machine can be checked that has nothing but the
/// binary.

namespace headrace {

/// Runs the tests with GoogleTest's arguments (argv[0] is skipped) and returns the exit status. Null in builds without
/// them; set before main() in the others.
inline int (*self_test)(int argc, char** argv) = nullptr;

}  // namespace headrace
