#pragma once
/// \file
/// What the generators of programs have in common.

#include <string>
#include <string_view>

#include "offload/plan.hh"

namespace headrace::offload {

/// A configuration as one line of a comment, truncated if it is long.
std::string as_comment(std::string text);
/// The embedded header with a step's shader; empty if there is none.
std::string_view header_of(const Step& step);
/// What a code means, for a comment.
std::string meaning(const Plan& plan, uint16_t code);

}  // namespace headrace::offload
