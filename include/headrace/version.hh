#pragma once
/// \file
/// What this binary was made from.

namespace headrace {

/// The version of the project, "0.1.0".
extern const char* const kVersion;

/// The commit the sources were at, 12 hex digits, with "-dirty" behind when tracked files differed from it; "unknown"
/// outside a git checkout.
extern const char* const kCommit;

/// Build type, compiler and target in one line: "Release, GNU 12.2.0, -march=native".
extern const char* const kBuild;

}  // namespace headrace
