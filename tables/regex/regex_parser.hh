#pragma once
/// \file
/// What parse_regex() does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tables/regex/regex_syntax.hh"

namespace headrace {

/// Reads one expression into a tree.
class RegexParser {
 public:
  RegexParser(std::string_view text, RegexSyntax& syntax) : text_(text), syntax_(syntax) {}

  RegexProblem parse(RegexFlags flags);

 private:
  using Kind = RegexNode::Kind;

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  bool failed() const { return problem_.kind == RegexProblem::Kind::kInvalid; }
  bool done() const { return failed() || at_ >= text_.size(); }
  bool ahead(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!ahead(what)) return false;
    at_ += what.size();
    return true;
  }
  void invalid(size_t position, std::string reason) {
    if (!failed()) problem_ = {RegexProblem::Kind::kInvalid, position, std::move(reason)};
  }
  void not_regular(size_t position, std::string reason) {
    if (problem_.kind == RegexProblem::Kind::kNone) {
      problem_ = {RegexProblem::Kind::kNotRegular, position, std::move(reason)};
    }
  }

  uint32_t put(RegexNode node) {
    syntax_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(syntax_.nodes.size() - 1);
  }
  uint32_t one_of(const ByteSet& bytes) {
    RegexNode node;
    node.kind = Kind::kBytes;
    node.bytes = bytes;
    return put(std::move(node));
  }
  uint32_t literal(unsigned byte, const RegexFlags& flags) {
    ByteSet set;
    set.add(byte);
    if (flags.nocase) set.fold_case();
    return one_of(set);
  }
  uint32_t sequence_of(std::vector<uint32_t> children) {
    if (children.size() == 1) return children[0];
    RegexNode node;
    node.kind = Kind::kSequence;
    node.children = std::move(children);
    return put(std::move(node));
  }
  uint32_t alternation_of(std::vector<uint32_t> children) {
    if (children.size() == 1) return children[0];
    RegexNode node;
    node.kind = Kind::kAlternation;
    node.children = std::move(children);
    return put(std::move(node));
  }
  uint32_t repeat(uint32_t child, uint32_t min, uint32_t max) {
    RegexNode node;
    node.kind = Kind::kRepeat;
    node.min = min;
    node.max = max;
    node.children = {child};
    return put(std::move(node));
  }
  uint32_t assertion(RegexAssertion which) {
    RegexNode node;
    node.kind = Kind::kAssertion;
    node.assertion = which;
    return put(std::move(node));
  }
  uint32_t empty() { return sequence_of({}); }
  uint32_t anything() { return repeat(one_of(ByteSet::all()), 0, RegexNode::kUnbounded); }

  // In regex_parser.cc.

  /// What stands between items and means nothing.
  void skip_ignored(const RegexFlags& flags);
  /// Alternatives up to a closing parenthesis or the end. Flags that change within hold to the end of the group.
  uint32_t alternation(RegexFlags flags, uint32_t depth);
  uint32_t sequence(RegexFlags& flags, uint32_t depth);
  /// An item and the quantifier behind it.
  uint32_t quantified(uint32_t item, const RegexFlags& flags);
  /// Reads {m}, {m,} or {m,n}; false if the brace is a literal one.
  bool braces(uint32_t& min, uint32_t& max);
  uint32_t atom(RegexFlags& flags, uint32_t depth);
  uint32_t any_byte(const RegexFlags& flags);
  uint32_t group(RegexFlags& flags, uint32_t depth);
  uint32_t wrapped(uint32_t node);
  bool named(char close, size_t position);
  /// (?i), (?i-s), (?i:...).
  template <typename Body>
  uint32_t inline_flags(RegexFlags& flags, size_t position, const Body& body);

  // In regex_escapes.cc.

  uint32_t escape(const RegexFlags& flags);
  uint32_t named_reference(size_t position);
  /// An escape that stands for one byte, in or out of a class; `at_` is at its backslash.
  bool escaped_byte(unsigned& byte);
  /// A class in brackets; `at_` is at the opening one.
  ByteSet bracketed(const RegexFlags& flags);
  /// Whether "[:name:]" or the like begins at a place, by PCRE2's rule; `end` is that of its name.
  bool posix_syntax(size_t at, size_t& end) const;
  /// One item of a class; true if it is a single byte, which can begin or end a range.
  bool class_item(const RegexFlags& flags, bool quoted, ByteSet& set, unsigned& byte);
  void posix(char mark, std::string_view name, bool negated, const RegexFlags& flags, ByteSet& set);

  std::string_view text_;
  RegexSyntax& syntax_;
  RegexProblem problem_;
  size_t at_ = 0;
  uint32_t captures_ = 0;    // groups that began so far
  bool quoted_ = false;      // between \Q and \E
  bool repeatable_ = false;  // the item just read can have a quantifier
  bool verb_ = false;        // no part of the tree can be relied on
};

}  // namespace headrace
