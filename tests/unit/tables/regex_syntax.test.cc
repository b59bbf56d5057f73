#include "tables/regex/regex_syntax.hh"

#include <gtest/gtest.h>

#include "tables/regex/regex_literals.hh"

namespace headrace {
namespace {

RegexProblem problem_of(std::string_view text, RegexFlags flags = {}) {
  RegexSyntax syntax;
  return parse_regex(text, flags, syntax);
}

TEST(RegexSyntax, FaultsHavePlaces) {
  const std::pair<const char*, const char*> kCases[] = {
      {"ab(c", "a ( without its ) (at offset 2)"},
      {"ab)c", "a ) without its ( (at offset 2)"},
      {"a[bc", "a [ without its ] (at offset 1)"},
      {"*a", "a quantifier with nothing before it to repeat (at offset 0)"},
      {"a**", "a quantifier with nothing before it to repeat (at offset 2)"},
      {"^*", "a quantifier with nothing before it to repeat (at offset 1)"},
      {"x{3,2}", "the numbers of {m,n} are out of order (at offset 1)"},
      {"x{1,70000}", "more than 65535 repetitions (at offset 1)"},
      {"[z-a]", "a range that is out of order (at offset 2)"},
      {"[[:alfa:]]", "an unknown POSIX class 'alfa' (at offset 1)"},
      {"abc\\", "a \\ at the end (at offset 3)"},
      {"\\y", "an unknown escape \\y (at offset 0)"},
      {"\\x{100}", "a character above 255 (at offset 0)"},
  };
  for (const auto& [text, expected] : kCases) {
    const RegexProblem problem = problem_of(text);
    EXPECT_EQ(problem.kind, RegexProblem::Kind::kInvalid) << text;
    EXPECT_EQ(problem.text(), expected) << text;
  }
  EXPECT_EQ(problem_of(std::string(300, '(') + std::string(300, ')')).kind, RegexProblem::Kind::kInvalid);
}

TEST(RegexSyntax, WhatIsNotRegularIsNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {"(a)x\\1", "a back reference (at offset 4)"},
      {"ab(?=c)", "a look-ahead (at offset 2)"},
      {"(?<!a)b", "a negative look-behind (at offset 0)"},
      {"a++b", "a possessive quantifier (at offset 1)"},
      {"(?>a|b)c", "an atomic group (at offset 0)"},
      {"a\\Kb", "\\K (at offset 1)"},
      {"(a(?1)?b)", "a recursion (at offset 2)"},
      {"(a)?(?(1)b|c)", "a condition (at offset 4)"},
      {"(*ACCEPT)a", "a verb (at offset 0)"},
      {"\\p{L}", "a Unicode property (at offset 0)"},
  };
  for (const auto& [text, expected] : kCases) {
    const RegexProblem problem = problem_of(text);
    EXPECT_EQ(problem.kind, RegexProblem::Kind::kNotRegular) << text;
    EXPECT_EQ(problem.text(), expected) << text;
  }
}

std::string literals_of(std::string_view text, RegexFlags flags = {}) {
  RegexSyntax syntax;
  parse_regex(text, flags, syntax);
  std::string all;
  for (const RegexLiteral& literal : required_literals(syntax)) {
    all += (all.empty() ? "" : " ") + literal.bytes + (literal.nocase ? "/i" : "");
  }
  return all;
}

TEST(RegexSyntax, RequiredLiterals) {
  EXPECT_EQ(literals_of("foo.*barbaz"), "barbaz");
  EXPECT_EQ(literals_of("foo.*BARbaz", {.nocase = true}), "barbaz/i");
  EXPECT_EQ(literals_of("a(?:one|two|three)b"), "one two three");
  EXPECT_EQ(literals_of("ab(?=c)cd"), "abcd");
  EXPECT_EQ(literals_of("(ab){2,}c"), "abab");
  EXPECT_EQ(literals_of("a?b?"), "");
  EXPECT_EQ(literals_of("(?:foo|x?)bar"), "bar");
  EXPECT_EQ(literals_of("(*COMMIT)foobar"), "");
  // Nested repetitions multiply: it ends all the same.
  std::string nested = "ab";
  for (int i = 0; i < 100; ++i) nested = "(?:" + nested + "){4}";
  EXPECT_EQ(literals_of(nested).substr(0, 4), "abab");
}

}  // namespace
}  // namespace headrace
