#pragma once
/// \file
/// From a Program to a flat Configuration.

#include <headrace/error.hh>

#include "lang/definition.hh"
#include "lang/lang.hh"

namespace headrace::lang {

/// Expands compound elements and variables, and leads connections through groups and compound elements. Errors are
/// reported; what they leave is in `out`.
void flatten(const Program& program, const Options& options, Configuration& out, Errors& errors);

}  // namespace headrace::lang
