#pragma once
/// \file
/// printf-like formatting of words.

#include <string>
#include <string_view>

#include "headrace/error.hh"

namespace headrace::control {

/// The first word of `text` is a format with the conversions o x X u d i s %, with flags, widths and precisions ("*"
/// takes them from a word) and h, l, ll, q; the words behind it are its arguments. Errors: a word is missing, left over or
/// no number, or a conversion is unknown.
Status format_words(std::string_view text, std::string& out, Errors& errors);

}  // namespace headrace::control
