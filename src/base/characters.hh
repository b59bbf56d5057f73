#pragma once
/// \file
/// Character classes of the Click language, independent of the locale.

#include <cstddef>
#include <string_view>

namespace headrace::lang {

constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// What `$name` may consist of.
constexpr bool is_variable_character(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

/// What an element or class name may consist of, apart from the slashes between its components.
constexpr bool is_name_character(char c) { return is_variable_character(c) || c == '@'; }

/// Whether a comment of either kind begins at `position`.
constexpr bool comment_at(std::string_view text, size_t position) {
  return position + 1 < text.size() && text[position] == '/' &&
         (text[position + 1] == '/' || text[position + 1] == '*');
}

}  // namespace headrace::lang
