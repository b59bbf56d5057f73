#pragma once
/// \file
/// Small pieces of text: hexadecimal digits, whole numbers, words between blanks. Numbers and words of arguments have
/// more forms, see <headrace/args.hh>.

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace headrace {

/// The value of a hexadecimal digit, or -1.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// All of `text` as a number from 0 to `most`: digits and nothing else, not even a sign.
template <std::integral T>
std::optional<T> whole_number(std::string_view text, T most = std::numeric_limits<T>::max(), int base = 10) {
  std::make_unsigned_t<T> value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || value > static_cast<std::make_unsigned_t<T>>(most))
    return std::nullopt;
  return static_cast<T>(value);
}

namespace detail {
/// What isspace() is true for in the C locale.
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
}  // namespace detail

/// The text without blanks and line ends around it.
constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && detail::is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && detail::is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes the first word off `text`: what stands before the next blank or line end. Empty at the end of the text.
constexpr std::string_view next_word(std::string_view& text) {
  size_t begin = 0;
  while (begin < text.size() && detail::is_blank(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && !detail::is_blank(text[end])) ++end;
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace headrace
