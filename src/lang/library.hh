#pragma once
/// \file
/// Configuration files that a configuration requires.

#include <optional>
#include <string>
#include <vector>

namespace headrace::lang {

/// The path of a library as `require(library name)` in the file `requiring_file` finds it, or nothing.
std::optional<std::string> find_library(const std::string& name, const std::string& requiring_file,
                                        const std::vector<std::string>& search_path);

/// All of a regular file, or nothing when it cannot be read.
std::optional<std::string> read_file(const std::string& path);

}  // namespace headrace::lang
