#pragma once
/// \file
/// Elements that are not built in: loadable packages, and hints for a class that does not exist.

#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"

namespace headrace {

/// Folders searched for packages before $HEADRACE_PATH and the installation's.
void add_package_path(std::string folder);
/// Loads NAME.so (or libNAME.so), once. Its elements register themselves.
Status load_package(const std::string& name, const Landmark& where, Errors& errors);
/// The packages loaded so far.
std::vector<std::string> loaded_packages();
/// Why this build lacks a class of the tree, for example because a library was missing; empty for other names.
std::string_view absent_reason(std::string_view name);
/// " (did you mean 'CheckIPHeader'?)", or nothing when no name is similar.
std::string suggest_name(std::string_view name, const std::vector<std::string_view>& names);
/// The same for an element class, or the reason why this build lacks the class, or nothing.
std::string suggest_class(std::string_view name);

}  // namespace headrace
