#include "tables/regex/regex_parser.hh"

#include <fmt/format.h>

#include "tables/regex/named_bytes.hh"

namespace headrace {

namespace {

using named_bytes::kIgnored;
using named_bytes::kWord;

constexpr uint32_t kMostGroups = 250;     // nested; PCRE2's limit
constexpr uint32_t kMostRepeats = 65535;  // PCRE2's limit

}  // namespace

RegexProblem RegexParser::parse(RegexFlags flags) {
  syntax_ = RegexSyntax();
  syntax_.root = alternation(flags, 0);
  if (!failed() && at_ < text_.size()) invalid(at_, "a ) without its (");
  if (failed()) {
    syntax_ = RegexSyntax();
    syntax_.root = sequence_of({});
    return problem_;
  }
  syntax_.exact = problem_.kind == RegexProblem::Kind::kNone;
  // A verb may end a match anywhere or change the meaning of everything.
  if (verb_) syntax_.root = anything();
  return problem_;
}

void RegexParser::skip_ignored(const RegexFlags& flags) {
  while (!done()) {
    if (ahead("(?#")) {
      const size_t end = text_.find(')', at_);
      if (end == std::string_view::npos) return invalid(at_, "a (?# comment without its )");
      at_ = end + 1;
    } else if (flags.extended && kIgnored.has(static_cast<uint8_t>(text_[at_]))) {
      ++at_;
    } else if (flags.extended && text_[at_] == '#') {
      const size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end + 1;
    } else if (!take("\\Q\\E") && !take("\\E")) {
      return;
    }
  }
}

uint32_t RegexParser::alternation(RegexFlags flags, uint32_t depth) {
  if (depth > kMostGroups) {
    invalid(at_, fmt::format("groups are nested deeper than {}", kMostGroups));
    return empty();
  }
  std::vector<uint32_t> branches;
  do {
    branches.push_back(sequence(flags, depth));
  } while (!failed() && take("|"));
  return alternation_of(std::move(branches));
}

uint32_t RegexParser::sequence(RegexFlags& flags, uint32_t depth) {
  std::vector<uint32_t> items;
  for (;;) {
    if (!quoted_) skip_ignored(flags);
    if (done()) break;
    if (quoted_ && take("\\E")) {
      quoted_ = false;
      continue;
    }
    if (!quoted_) {
      if (take("\\Q")) {
        quoted_ = true;
        continue;
      }
      if (ahead("|") || ahead(")")) break;
    }
    repeatable_ = true;
    uint32_t item = quoted_ ? literal(static_cast<uint8_t>(text_[at_++]), flags) : atom(flags, depth);
    if (failed()) break;
    if (quoted_ && take("\\E")) quoted_ = false;
    if (!quoted_) item = quantified(item, flags);
    items.push_back(item);
  }
  return sequence_of(std::move(items));
}

uint32_t RegexParser::quantified(uint32_t item, const RegexFlags& flags) {
  const bool repeatable = repeatable_ && syntax_.nodes[item].kind != Kind::kAssertion;
  skip_ignored(flags);
  if (done()) return item;
  const size_t position = at_;
  uint32_t min = 0, max = 0;
  if (take("*")) {
    max = RegexNode::kUnbounded;
  } else if (take("+")) {
    min = 1;
    max = RegexNode::kUnbounded;
  } else if (take("?")) {
    max = 1;
  } else if (!ahead("{") || !braces(min, max)) {
    return item;
  }
  if (!failed() && !repeatable) invalid(position, "a quantifier with nothing before it to repeat");
  if (failed()) return item;
  if (take("+")) {
    not_regular(position, "a possessive quantifier");
  } else {
    take("?");
  }
  return repeat(item, min, max);
}

bool RegexParser::braces(uint32_t& min, uint32_t& max) {
  size_t i = at_ + 1;
  bool spaces = false;
  const auto skip_spaces = [&] {
    for (; i < text_.size() && (text_[i] == ' ' || text_[i] == '\t'); ++i) spaces = true;
  };
  const auto number = [&](uint32_t& value) {
    const size_t from = i;
    uint32_t n = 0;
    for (; i < text_.size() && is_digit(text_[i]); ++i) n = n > kMostRepeats ? n : n * 10 + uint32_t(text_[i] - '0');
    value = n;
    return i > from;
  };
  skip_spaces();
  const bool has_min = number(min);
  skip_spaces();
  bool has_max = false, comma = false;
  if (i < text_.size() && text_[i] == ',') {
    comma = true;
    ++i;
    skip_spaces();
    has_max = number(max);
    skip_spaces();
  }
  if (i >= text_.size() || text_[i] != '}' || (!has_min && !has_max)) return false;
  if (spaces || !has_min) {
    not_regular(at_, "a quantifier that not all versions of PCRE know");
    verb_ = true;
    return false;
  }
  if (!comma) max = min;
  if (comma && !has_max) max = RegexNode::kUnbounded;
  if (min > kMostRepeats || (max != RegexNode::kUnbounded && max > kMostRepeats)) {
    invalid(at_, fmt::format("more than {} repetitions", kMostRepeats));
  } else if (min > max) {
    invalid(at_, "the numbers of {m,n} are out of order");
  }
  at_ = i + 1;
  return true;
}

uint32_t RegexParser::atom(RegexFlags& flags, uint32_t depth) {
  const char c = text_[at_];
  switch (c) {
    case '\\':
      return escape(flags);
    case '[':
      return one_of(bracketed(flags));
    case '(':
      return group(flags, depth);
    case '.':
      ++at_;
      return any_byte(flags);
    case '^':
      ++at_;
      return assertion(flags.multiline ? RegexAssertion::kLineStart : RegexAssertion::kTextStart);
    case '$':
      ++at_;
      return assertion(flags.multiline ? RegexAssertion::kLineEnd : RegexAssertion::kTextEndNewline);
    case '*':
    case '+':
    case '?':
      invalid(at_, "a quantifier with nothing before it to repeat");
      return empty();
    case '{': {
      uint32_t min, max;
      const size_t position = at_;
      if (braces(min, max)) {
        invalid(position, "a quantifier with nothing before it to repeat");
        return empty();
      }
      break;
    }
    default:
      break;
  }
  ++at_;
  return literal(static_cast<uint8_t>(c), flags);
}

uint32_t RegexParser::any_byte(const RegexFlags& flags) {
  ByteSet set = ByteSet::all();
  if (!flags.dotall) set.remove('\n');
  return one_of(set);
}

uint32_t RegexParser::group(RegexFlags& flags, uint32_t depth) {
  const size_t position = at_;
  ++at_;
  const auto body = [&](RegexFlags inner) {
    const uint32_t node = alternation(inner, depth + 1);
    if (!failed() && !take(")")) invalid(position, "a ( without its )");
    // A group can be repeated, whatever it contains: an assertion alone is wrapped for that.
    repeatable_ = true;
    return failed() || syntax_.nodes[node].kind != Kind::kAssertion ? node : wrapped(node);
  };
  const auto zero_width = [&](const char* what) {
    not_regular(position, what);
    body(flags);
    return empty();
  };
  const auto skip_to_close = [&](const char* what) {
    not_regular(position, what);
    const size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) {
      invalid(position, "a ( without its )");
    } else {
      at_ = end + 1;
    }
    return anything();
  };

  if (ahead("*")) {
    verb_ = true;
    return skip_to_close("a verb");
  }
  if (!take("?")) {
    ++captures_;
    return body(flags);
  }
  if (take(":") || take("|")) return body(flags);
  if (take(">")) {
    not_regular(position, "an atomic group");
    return body(flags);
  }
  if (take("=")) return zero_width("a look-ahead");
  if (take("!")) return zero_width("a negative look-ahead");
  if (take("<=")) return zero_width("a look-behind");
  if (take("<!")) return zero_width("a negative look-behind");
  if (ahead("P=")) return skip_to_close("a back reference");
  if (ahead("P>") || ahead("&") || ahead("R")) return skip_to_close("a recursion");
  if (ahead("C")) return skip_to_close("a callout");
  if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '+')) return skip_to_close("a recursion");
  if (at_ + 1 < text_.size() && text_[at_] == '-' && is_digit(text_[at_ + 1])) return skip_to_close("a recursion");
  if (take("(")) {
    not_regular(position, "a condition");
    if (ahead("?")) {
      --at_;
      group(flags, depth + 1);
    } else {
      skip_to_close("a condition");
    }
    if (failed()) return empty();
    return repeat(body(flags), 0, 1);
  }
  if (take("P<") || take("<")) return named('>', position) ? body(flags) : empty();
  if (take("'")) return named('\'', position) ? body(flags) : empty();
  return inline_flags(flags, position, body);
}

uint32_t RegexParser::wrapped(uint32_t node) {
  RegexNode sequence;
  sequence.children = {node};
  return put(std::move(sequence));
}

bool RegexParser::named(char close, size_t position) {
  const size_t from = at_;
  while (at_ < text_.size() && kWord.has(static_cast<uint8_t>(text_[at_]))) ++at_;
  if (at_ == from || is_digit(text_[from]) || at_ - from > 32 || at_ >= text_.size() || text_[at_] != close) {
    invalid(position, "a group with a bad name");
    return false;
  }
  ++at_;
  ++captures_;
  return true;
}

template <typename Body>
uint32_t RegexParser::inline_flags(RegexFlags& flags, size_t position, const Body& body) {
  RegexFlags changed = flags;
  bool value = true;
  for (; at_ < text_.size(); ++at_) {
    switch (text_[at_]) {
      case '^':
        if (text_[at_ - 1] != '?') {
          invalid(at_, "a ^ behind flags");
          return empty();
        }
        changed = RegexFlags();
        continue;
      case '-':
        if (!value) {
          invalid(at_, "two hyphens in flags");
          return empty();
        }
        value = false;
        continue;
      case 'i':
        changed.nocase = value;
        continue;
      case 's':
        changed.dotall = value;
        continue;
      case 'm':
        changed.multiline = value;
        continue;
      case 'x':
        if (changed.extended && text_[at_ - 1] == 'x') {
          not_regular(at_, "the flag xx");
          verb_ = true;
        }
        changed.extended = value;
        continue;
      case 'U':  // laziness, names and captures change nothing about where matches end
      case 'J':
      case 'n':
        continue;
      case ')':
        ++at_;
        flags = changed;
        repeatable_ = false;
        return empty();
      case ':':
        ++at_;
        return body(changed);
      default:
        invalid(at_, "an unknown character behind (?");
        return empty();
    }
  }
  invalid(position, "a ( without its )");
  return empty();
}

}  // namespace headrace
