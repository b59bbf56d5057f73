#pragma once
/// \file
/// What this binary was built from.

namespace headrace {

/// The version of the project, "0.1.0".
extern const char* const kVersion;

/// The commit of the sources, 12 hex digits; "-dirty" is appended if tracked files differed from it; "unknown" outside
/// a git checkout.
extern const char* const kCommit;

/// Build type, compiler and target in one line: "Release, GNU 12.2.0, -march=native".
extern const char* const kBuild;

}  // namespace headrace
