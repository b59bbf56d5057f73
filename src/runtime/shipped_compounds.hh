#pragma once
/// \file
/// The compound elements of headrace/compound.hh, for the language.

#include "lang/lang.hh"

namespace headrace {

/// Lets configurations use every compound element that is registered, now or later.
void add_shipped_compounds(lang::Options& options);

}  // namespace headrace
