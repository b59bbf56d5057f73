#pragma once
/// \file
/// Small pieces of the text of rules.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/text.hh"

namespace headrace::rules {

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

inline bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

/// As whole_number(), with a sign.
inline std::optional<int32_t> signed_number(std::string_view text, int32_t most) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  const std::optional<uint32_t> value = whole_number(text, static_cast<uint32_t>(most));
  if (!value) return {};
  return minus ? -static_cast<int32_t>(*value) : static_cast<int32_t>(*value);
}

/// Takes the text up to `separator` off the front of `text`; all of it when there is none.
inline std::string_view take_until(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view piece = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return trimmed(piece);
}

}  // namespace headrace::rules
