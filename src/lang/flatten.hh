#pragma once
/// \file
/// From a Program to a flat Configuration.

#include <headrace/error.hh>

#include "lang/definition.hh"
#include "lang/lang.hh"

namespace headrace::lang {

/// Expands compound elements and variables, and leads connections through groups and compound elements. Definitions of
/// compound elements that come with the program are added to it. Errors are reported; what they leave is in `out`.
void flatten(Program& program, const Options& options, Configuration& out, Errors& errors);

}  // namespace headrace::lang
