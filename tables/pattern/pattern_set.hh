#pragma once
/// \file
/// Patterns to search for, and their text form.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"
#include "tables/pattern/match_view.hh"

namespace headrace {

/// A string of bytes to search for.
struct Pattern {
  std::string bytes;
  bool nocase = false;  ///< ASCII letters match in both cases
  bool operator==(const Pattern&) const = default;
};

/// Reads a pattern's text:
///
///     GET /cmd.exe|3f 2f|      bytes as they are; between bars, hexadecimal
///     i:user-agent: sqlmap     i: both cases
///     "  two blanks before"    in quotes blanks at both ends belong to it
///     \x90\x90\n\\\|\"         escapes: \xHH \n \r \t \0 \\ \| \" \# \; \:
///
/// Returns what is wrong, or an empty text.
std::string parse_pattern(std::string_view text, Pattern& pattern);
/// A text that parse_pattern() reads as the same pattern.
std::string unparse_pattern(const Pattern& pattern);

/// Patterns, numbered from 0 in the order in which they were added. Equal ones have a number each, and each is
/// reported.
class PatternSet {
 public:
  /// Errors: an empty pattern, one longer than kLongestPattern, more than kMostPatterns.
  Status add(Pattern pattern, Errors& errors);
  /// Adds the patterns of a file, one a line as parse_pattern() reads it, with or without a carriage return at its end.
  /// Empty lines and those whose first character is `#` are ignored. The file may be compressed by xz or gzip. The
  /// first 20 bad lines are named one by one; the good ones are added nevertheless.
  Status add_file(const std::string& path, Errors& errors);

  /// Letters of all patterns match in both cases.
  void ignore_case() {
    for (Pattern& pattern : patterns_) pattern.nocase = true;
  }

  size_t size() const { return patterns_.size(); }
  bool empty() const { return patterns_.empty(); }
  const Pattern& operator[](size_t number) const { return patterns_[number]; }
  auto begin() const { return patterns_.begin(); }
  auto end() const { return patterns_.end(); }
  /// Bytes of the longest one.
  size_t longest() const { return longest_; }
  size_t total_bytes() const { return total_bytes_; }

 private:
  std::string refuse(const Pattern& pattern) const;
  void take(Pattern pattern);

  std::vector<Pattern> patterns_;
  size_t longest_ = 0;
  size_t total_bytes_ = 0;
};

/// The small letter of an ASCII capital; other bytes as they are.
inline unsigned char fold_case(unsigned char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }
inline bool is_letter(unsigned char c) { return fold_case(c) >= 'a' && fold_case(c) <= 'z'; }

}  // namespace headrace
