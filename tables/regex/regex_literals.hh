#pragma once
/// \file
/// What every match of a regular expression must contain.

#include <cstddef>
#include <string>
#include <vector>

#include "tables/regex/regex_syntax.hh"

namespace headrace {

/// A text of an expression.
struct RegexLiteral {
  std::string bytes;  ///< letters in lower case if `nocase`
  bool nocase = false;
  bool operator==(const RegexLiteral&) const = default;
};

/// Texts of which every match contains at least one, at most `most` of them, each as long as can be found; none if
/// there is no such set with texts of two bytes or more.
std::vector<RegexLiteral> required_literals(const RegexSyntax& syntax, size_t most = 16);

}  // namespace headrace
