#pragma once
/// \file
/// The search for one literal in one payload.

#include <emmintrin.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "tables/rules/rule_text.hh"

namespace headrace::rules {

inline constexpr uint32_t kNotFound = UINT32_MAX;

namespace detail {
inline bool equal_folded(const char* text, const char* small, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i)
    if (lower(text[i]) != small[i]) return false;
  return true;
}
}  // namespace detail

/// Where `literal` (not empty; lower case with `nocase`) begins first in `text` at `from` or later, or kNotFound.
/// Sixteen places at a time are asked for its first and its last byte; the rest is compared where both are there.
inline uint32_t find_literal(std::string_view text, std::string_view literal, uint32_t from, bool nocase) {
  const auto n = static_cast<uint32_t>(literal.size());
  if (text.size() < n || from > text.size() - n) return kNotFound;
  const uint32_t last_start = static_cast<uint32_t>(text.size()) - n;
  const char* const data = text.data();
  const auto is_here = [&](uint32_t at) {
    return nocase ? detail::equal_folded(data + at, literal.data(), n) : std::memcmp(data + at, literal.data(), n) == 0;
  };
  const auto fold = [&](char c) { return static_cast<char>(nocase && c >= 'a' && c <= 'z' ? 0x20 : 0); };
  const char first = literal.front(), last = literal.back();
  const __m128i firsts = _mm_set1_epi8(first), lasts = _mm_set1_epi8(last);
  const __m128i fold_first = _mm_set1_epi8(fold(first)), fold_last = _mm_set1_epi8(fold(last));
  uint32_t at = from;
  for (; at + 15 <= last_start; at += 16) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at + n - 1));
    const __m128i both = _mm_and_si128(_mm_cmpeq_epi8(_mm_or_si128(a, fold_first), firsts),
                                       _mm_cmpeq_epi8(_mm_or_si128(b, fold_last), lasts));
    for (auto places = static_cast<uint32_t>(_mm_movemask_epi8(both)); places != 0; places &= places - 1) {
      const uint32_t place = at + static_cast<uint32_t>(__builtin_ctz(places));
      if (is_here(place)) return place;
    }
  }
  for (; at <= last_start; ++at)
    if ((data[at] | fold(first)) == first && is_here(at)) return at;
  return kNotFound;
}

}  // namespace headrace::rules
