#pragma once
/// \file
/// The syntax of Perl-compatible regular expressions over bytes, read into a tree of byte sets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// A set of byte values.
class ByteSet {
 public:
  static constexpr ByteSet all() {
    ByteSet set;
    set.words_ = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
    return set;
  }
  constexpr bool has(unsigned byte) const { return words_[byte >> 6] >> (byte & 63) & 1; }
  constexpr void add(unsigned byte) { words_[byte >> 6] |= uint64_t{1} << (byte & 63); }
  constexpr void add_range(unsigned first, unsigned last) {
    for (unsigned byte = first; byte <= last; ++byte) add(byte);
  }
  constexpr void remove(unsigned byte) { words_[byte >> 6] &= ~(uint64_t{1} << (byte & 63)); }
  constexpr void add(const ByteSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  constexpr void invert() {
    for (uint64_t& word : words_) word = ~word;
  }
  /// With each ASCII letter its other case.
  constexpr void fold_case() {
    for (unsigned c = 'a'; c <= 'z'; ++c) {
      if (has(c) || has(c - 32)) {
        add(c);
        add(c - 32);
      }
    }
  }
  int count() const;
  /// The lowest byte; the set is not empty.
  unsigned first() const;
  bool operator==(const ByteSet&) const = default;

 private:
  std::array<uint64_t, 4> words_{};
};

/// How an expression is to be read: the letters i, s, m and x after `/expr/`.
struct RegexFlags {
  bool nocase = false;     ///< i: ASCII letters match either case
  bool dotall = false;     ///< s: a dot matches a newline, too
  bool multiline = false;  ///< m: ^ and $ also match at the newlines within
  bool extended = false;   ///< x: white space and # comments are not part of the expression

  bool operator==(const RegexFlags&) const = default;
};

enum class RegexAssertion : uint8_t {
  kTextStart,        ///< \A, and ^ without multiline
  kLineStart,        ///< ^ with multiline: at the start, and after each newline that is not the last byte
  kTextEnd,          ///< \z
  kTextEndNewline,   ///< \Z, and $ without multiline: at the end, and before a newline that is the last byte
  kLineEnd,          ///< $ with multiline: at the end, and before each newline
  kWordBoundary,     ///< \b
  kNotWordBoundary,  ///< \B
};

struct RegexNode {
  enum class Kind : uint8_t {
    kBytes,        ///< one byte of `bytes`
    kSequence,     ///< the children, one after the other; none: the empty text
    kAlternation,  ///< any of the children
    kRepeat,       ///< the child `min` to `max` times
    kAssertion
  };
  static constexpr uint32_t kUnbounded = ~uint32_t{0};

  Kind kind = Kind::kSequence;
  RegexAssertion assertion{};
  uint32_t min = 0, max = 0;
  ByteSet bytes;
  std::vector<uint32_t> children;
};

/// An expression as a tree. If `exact` is false, it is a wider one: whatever the expression matches ends where the tree
/// matches, but not the reverse.
struct RegexSyntax {
  std::vector<RegexNode> nodes;
  uint32_t root = 0;
  bool exact = true;

  /// Whether it can match without a byte, were all assertions true.
  bool can_be_empty() const;
};

/// What is wrong with an expression.
struct RegexProblem {
  enum class Kind : uint8_t {
    kNone,
    kInvalid,     ///< not an expression
    kNotRegular,  ///< no finite automaton can do it exactly; there is a wider tree
  };
  Kind kind = Kind::kNone;
  size_t position = 0;  ///< in bytes from the start of the expression
  std::string reason;

  /// "REASON (at offset N)".
  std::string text() const;
};

/// Reads `text`, which may contain any bytes, as PCRE2 does without UTF: literals, escapes, classes, groups, inline
/// flags, alternation, all quantifiers, anchors and word boundaries. Back references, look-around, atomic groups,
/// conditions, recursion and verbs are not regular: they are read and widened.
RegexProblem parse_regex(std::string_view text, RegexFlags flags, RegexSyntax& syntax);

/// The letters of `/expr/letters`. False at a letter that is not one of "ismx".
bool parse_regex_flags(std::string_view letters, RegexFlags& flags);
std::string regex_flag_letters(RegexFlags flags);

}  // namespace headrace
