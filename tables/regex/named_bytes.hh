#pragma once
/// \file
/// Sets of bytes that regular expressions have names for.

#include <cstdint>
#include <string_view>

#include "tables/regex/regex_syntax.hh"

namespace headrace::named_bytes {

constexpr ByteSet bytes_of(std::string_view text) {
  ByteSet set;
  for (const char c : text) set.add(static_cast<uint8_t>(c));
  return set;
}
constexpr ByteSet range_of(unsigned first, unsigned last) {
  ByteSet set;
  set.add_range(first, last);
  return set;
}
constexpr ByteSet union_of(ByteSet a, const ByteSet& b) {
  a.add(b);
  return a;
}

inline constexpr ByteSet kDigits = range_of('0', '9');
inline constexpr ByteSet kUpper = range_of('A', 'Z');
inline constexpr ByteSet kLower = range_of('a', 'z');
inline constexpr ByteSet kAlpha = union_of(kUpper, kLower);
inline constexpr ByteSet kAlnum = union_of(kAlpha, kDigits);
inline constexpr ByteSet kWord = union_of(kAlnum, bytes_of("_"));
inline constexpr ByteSet kSpace = bytes_of(" \t\n\v\f\r");
/// What flag x ignores: PCRE2 with Unicode support counts U+0085 in, whether or not the expression is UTF-8.
inline constexpr ByteSet kIgnored = union_of(kSpace, bytes_of("\x85"));
inline constexpr ByteSet kHorizontal = bytes_of(" \t\xa0");
inline constexpr ByteSet kVertical = bytes_of("\n\v\f\r\x85");
inline constexpr ByteSet kPunct = bytes_of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");

}  // namespace headrace::named_bytes
