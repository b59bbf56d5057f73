#include "tables/regex/regex_syntax.hh"

#include <fmt/format.h>

#include <bit>

#include "tables/regex/regex_parser.hh"

namespace headrace {

int ByteSet::count() const {
  int n = 0;
  for (const uint64_t word : words_) n += std::popcount(word);
  return n;
}

unsigned ByteSet::first() const {
  for (unsigned i = 0; i < words_.size(); ++i) {
    if (words_[i]) return i * 64 + static_cast<unsigned>(std::countr_zero(words_[i]));
  }
  return 0;
}

std::string RegexProblem::text() const { return fmt::format("{} (at offset {})", reason, position); }

bool parse_regex_flags(std::string_view letters, RegexFlags& flags) {
  for (const char c : letters) {
    switch (c) {
      case 'i':
        flags.nocase = true;
        break;
      case 's':
        flags.dotall = true;
        break;
      case 'm':
        flags.multiline = true;
        break;
      case 'x':
        flags.extended = true;
        break;
      default:
        return false;
    }
  }
  return true;
}

std::string regex_flag_letters(RegexFlags flags) {
  std::string letters;
  if (flags.nocase) letters += 'i';
  if (flags.dotall) letters += 's';
  if (flags.multiline) letters += 'm';
  if (flags.extended) letters += 'x';
  return letters;
}

namespace {

bool nullable(const RegexSyntax& syntax, uint32_t at) {
  const RegexNode& node = syntax.nodes[at];
  switch (node.kind) {
    case RegexNode::Kind::kBytes:
      return false;
    case RegexNode::Kind::kAssertion:
      return true;
    case RegexNode::Kind::kSequence:
      for (const uint32_t child : node.children) {
        if (!nullable(syntax, child)) return false;
      }
      return true;
    case RegexNode::Kind::kAlternation:
      for (const uint32_t child : node.children) {
        if (nullable(syntax, child)) return true;
      }
      return false;
    case RegexNode::Kind::kRepeat:
      return node.min == 0 || nullable(syntax, node.children[0]);
  }
  return true;
}

}  // namespace

bool RegexSyntax::can_be_empty() const { return nullable(*this, root); }

RegexProblem parse_regex(std::string_view text, RegexFlags flags, RegexSyntax& syntax) {
  return RegexParser(text, syntax).parse(flags);
}

}  // namespace headrace
