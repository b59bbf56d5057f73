#pragma once
/// \file
/// printf-like formatting of words.

#include <string>
#include <string_view>

namespace headrace::control {

/// The first word of `text` is a format with the conversions o x X u d i s %, with flags, widths and precisions ("*"
/// takes them from a word) and h, l, ll, q; the words behind it are its arguments. False when a word is missing, left
/// over or no number.
bool format_words(std::string_view text, std::string& out);

}  // namespace headrace::control
