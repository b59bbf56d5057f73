#pragma once
/// \file
/// The pattern language of Classifier.

#include <headrace/error.hh>
#include <span>
#include <string>

#include "tables/decision/decision_program.hh"

namespace headrace {

/// Compiles one pattern for each output; the first that matches a packet names its output.
///
/// A pattern is `-` (every packet) or clauses `offset/value` or `offset/value%mask`, all of which must hold: a decimal
/// offset into the packet's data, and as many bytes in hexadecimal, `?` standing for any digit. `!` before a clause
/// negates it. A clause beyond the packet's end fails.
///
/// Errors (`pattern N: ...`, as Click words them) leave `program` as it was.
Status compile_classifier(std::span<const std::string> patterns, Errors& errors, DecisionProgram& program);

}  // namespace headrace
