#include "tables/regex/regex_syntax.hh"

#include <fmt/format.h>

#include <bit>

#include "headrace/text.hh"

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

using Kind = RegexNode::Kind;

constexpr uint32_t kMostGroups = 250;     // nested; PCRE2's limit
constexpr uint32_t kMostRepeats = 65535;  // PCRE2's limit

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

constexpr ByteSet kDigits = range_of('0', '9');
constexpr ByteSet kUpper = range_of('A', 'Z');
constexpr ByteSet kLower = range_of('a', 'z');
constexpr ByteSet kAlpha = union_of(kUpper, kLower);
constexpr ByteSet kAlnum = union_of(kAlpha, kDigits);
constexpr ByteSet kWord = union_of(kAlnum, bytes_of("_"));
constexpr ByteSet kSpace = bytes_of(" \t\n\v\f\r");
/// What flag x ignores: PCRE2 with Unicode support counts U+0085 in, whether or not the expression is UTF-8.
constexpr ByteSet kIgnored = union_of(kSpace, bytes_of("\x85"));
constexpr ByteSet kHorizontal = bytes_of(" \t\xa0");
constexpr ByteSet kVertical = bytes_of("\n\v\f\r\x85");
constexpr ByteSet kPunct = bytes_of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");

struct PosixClass {
  std::string_view name;
  ByteSet bytes;
};
constexpr PosixClass kPosixClasses[] = {
    {"alpha", kAlpha},
    {"lower", kLower},
    {"upper", kUpper},
    {"alnum", kAlnum},
    {"ascii", range_of(0, 127)},
    {"blank", bytes_of(" \t")},
    {"cntrl", union_of(range_of(0, 31), range_of(127, 127))},
    {"digit", kDigits},
    {"graph", range_of(33, 126)},
    {"print", range_of(32, 126)},
    {"punct", kPunct},
    {"space", kSpace},
    {"word", kWord},
    {"xdigit", union_of(kDigits, union_of(range_of('a', 'f'), range_of('A', 'F')))},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_alnum(char c) { return kAlnum.has(static_cast<uint8_t>(c)); }

/// The set of a class escape such as \d. False if `c` is none.
bool class_escape(char c, ByteSet& set) {
  switch (c) {
    case 'd':
    case 'D':
      set = kDigits;
      break;
    case 'w':
    case 'W':
      set = kWord;
      break;
    case 's':
    case 'S':
      set = kSpace;
      break;
    case 'h':
    case 'H':
      set = kHorizontal;
      break;
    case 'v':
    case 'V':
      set = kVertical;
      break;
    default:
      return false;
  }
  if (c < 'a') set.invert();
  return true;
}

class Parser {
 public:
  Parser(std::string_view text, RegexSyntax& syntax) : text_(text), syntax_(syntax) {}

  RegexProblem parse(RegexFlags flags) {
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

 private:
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

  /// What stands between items and means nothing.
  void skip_ignored(const RegexFlags& flags) {
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

  /// Alternatives up to a closing parenthesis or the end. Flags that change within hold to the end of the group.
  uint32_t alternation(RegexFlags flags, uint32_t depth) {
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

  uint32_t sequence(RegexFlags& flags, uint32_t depth) {
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

  /// An item and the quantifier behind it.
  uint32_t quantified(uint32_t item, const RegexFlags& flags) {
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

  /// Reads {m}, {m,} or {m,n}; false if the brace is a literal one.
  bool braces(uint32_t& min, uint32_t& max) {
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

  uint32_t atom(RegexFlags& flags, uint32_t depth) {
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

  uint32_t any_byte(const RegexFlags& flags) {
    ByteSet set = ByteSet::all();
    if (!flags.dotall) set.remove('\n');
    return one_of(set);
  }

  uint32_t group(RegexFlags& flags, uint32_t depth) {
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

  uint32_t wrapped(uint32_t node) {
    RegexNode sequence;
    sequence.children = {node};
    return put(std::move(sequence));
  }

  bool named(char close, size_t position) {
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

  /// (?i), (?i-s), (?i:...).
  template <typename Body>
  uint32_t inline_flags(RegexFlags& flags, size_t position, const Body& body) {
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

  uint32_t escape(const RegexFlags& flags) {
    const size_t position = at_;
    if (at_ + 1 >= text_.size()) {
      invalid(position, "a \\ at the end");
      return empty();
    }
    const char c = text_[at_ + 1];
    ByteSet set;
    if (class_escape(c, set)) {
      at_ += 2;
      return one_of(set);
    }
    const auto zero_width = [&](RegexAssertion which) {
      at_ += 2;
      return assertion(which);
    };
    const auto widened = [&](const char* what, uint32_t node) {
      not_regular(position, what);
      return node;
    };
    switch (c) {
      case 'A':
        return zero_width(RegexAssertion::kTextStart);
      case 'z':
        return zero_width(RegexAssertion::kTextEnd);
      case 'Z':
        return zero_width(RegexAssertion::kTextEndNewline);
      case 'b':
        return zero_width(RegexAssertion::kWordBoundary);
      case 'B':
        return zero_width(RegexAssertion::kNotWordBoundary);
      case 'N':
        at_ += 2;
        if (ahead("{")) {
          verb_ = true;
          return widened("a character by its number", empty());
        }
        return any_byte(RegexFlags());
      case 'C':
        at_ += 2;
        return one_of(ByteSet::all());
      case 'K':
        at_ += 2;
        return widened("\\K", empty());
      case 'G':
        at_ += 2;
        return widened("\\G", empty());
      case 'R': {
        at_ += 2;
        const uint32_t pair = sequence_of({literal('\r', {}), literal('\n', {})});
        return widened("\\R", alternation_of({pair, one_of(kVertical)}));
      }
      case 'X':
        at_ += 2;
        return widened("\\X", anything());
      case 'p':
      case 'P':
        at_ += 2;
        if (take("{")) {
          const size_t end = text_.find('}', at_);
          if (end == std::string_view::npos) {
            invalid(position, "a property without its }");
            return empty();
          }
          at_ = end + 1;
        } else if (at_ < text_.size()) {
          ++at_;
        }
        return widened("a Unicode property", one_of(ByteSet::all()));
      case 'g':
      case 'k':
        return named_reference(position);
      default:
        break;
    }
    if (c >= '1' && c <= '9') {
      size_t i = at_ + 1;
      uint32_t number = 0;
      for (; i < text_.size() && is_digit(text_[i]) && number < 100000; ++i) {
        number = number * 10 + static_cast<uint32_t>(text_[i] - '0');
      }
      if (number < 10 || c >= '8' || number <= captures_) {
        at_ = i;
        return widened("a back reference", anything());
      }
    }
    unsigned byte = 0;
    if (!escaped_byte(byte)) return empty();
    return literal(byte, flags);
  }

  uint32_t named_reference(size_t position) {
    at_ += 2;
    char close = 0;
    if (take("{")) close = '}';
    if (!close && take("<")) close = '>';
    if (!close && take("'")) close = '\'';
    if (close) {
      const size_t end = text_.find(close, at_);
      if (end == std::string_view::npos) {
        invalid(position, "a reference without its end");
        return empty();
      }
      at_ = end + 1;
    } else {
      if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
      const size_t from = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      if (at_ == from) {
        invalid(position, "a reference to no group");
        return empty();
      }
    }
    not_regular(position, "a back reference");
    return anything();
  }

  /// An escape that stands for one byte, in or out of a class; `at_` is at its backslash.
  bool escaped_byte(unsigned& byte) {
    const size_t position = at_;
    const char c = text_[at_ + 1];
    at_ += 2;
    const auto octal = [&](int most) {
      byte = 0;
      for (; most > 0 && at_ < text_.size() && is_octal(text_[at_]); --most, ++at_) {
        byte = byte * 8 + static_cast<unsigned>(text_[at_] - '0');
      }
      if (byte > 255) invalid(position, "a character above 255");
      return !failed();
    };
    const auto braced = [&](unsigned base) {
      const size_t from = at_;
      byte = 0;
      for (; at_ < text_.size() && hex_digit(text_[at_]) >= 0 && hex_digit(text_[at_]) < int(base); ++at_) {
        byte = byte * base + static_cast<unsigned>(hex_digit(text_[at_]));
        if (byte > 255) break;
      }
      if (byte > 255) {
        invalid(position, "a character above 255");
      } else if (at_ == from || !take("}")) {
        invalid(position, "a number without its }");
      }
      return !failed();
    };
    switch (c) {
      case 'a':
        byte = 7;
        return true;
      case 'e':
        byte = 27;
        return true;
      case 'f':
        byte = '\f';
        return true;
      case 'n':
        byte = '\n';
        return true;
      case 'r':
        byte = '\r';
        return true;
      case 't':
        byte = '\t';
        return true;
      case 'x':
        if (take("{")) return braced(16);
        byte = 0;
        for (int i = 0; i < 2 && at_ < text_.size() && hex_digit(text_[at_]) >= 0; ++i, ++at_) {
          byte = byte * 16 + static_cast<unsigned>(hex_digit(text_[at_]));
        }
        return true;
      case 'o':
        if (take("{")) return braced(8);
        invalid(position, "\\o without {");
        return false;
      case 'c': {
        if (at_ >= text_.size() || text_[at_] < 32 || text_[at_] > 126) {
          invalid(position, "\\c without a printable character");
          return false;
        }
        const char letter = text_[at_++];
        byte = static_cast<unsigned>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter) ^ 0x40;
        return true;
      }
      default:
        break;
    }
    if (is_octal(c)) {
      --at_;
      return octal(3);
    }
    if (is_alnum(c)) {
      invalid(position, fmt::format("an unknown escape \\{}", c));
      return false;
    }
    byte = static_cast<uint8_t>(c);
    return true;
  }

  /// A class in brackets; `at_` is at the opening one.
  ByteSet bracketed(const RegexFlags& flags) {
    const size_t position = at_;
    ByteSet set;
    ++at_;
    size_t posix_end = 0;
    if (posix_syntax(at_ - 1, posix_end)) {
      invalid(position, "a POSIX class outside of a class");
      return set;
    }
    if (ahead("[:<:]]") || ahead("[:>:]]")) {
      not_regular(position, "[[:<:]] or [[:>:]]");
      verb_ = true;
      at_ += 6;
      return set;
    }
    const bool negated = take("^");
    bool first = true, quoted = false;
    // A quotation may begin or end between the ends of a range and its hyphen.
    enum { kNoRange, kMayBegin, kBegun } range = kNoRange;
    unsigned low = 0;
    size_t hyphen = 0;
    for (;; first = false) {
      while (true) {
        if (quoted ? take("\\E") : take("\\Q")) {
          quoted = !quoted;
        } else if (quoted || !take("\\E")) {
          break;
        }
      }
      if (at_ >= text_.size()) {
        invalid(position, "a [ without its ]");
        return set;
      }
      if (!quoted && !first && take("]")) {
        if (range == kBegun) set.add('-');
        break;
      }
      if (!quoted && range == kMayBegin && ahead("-")) {
        hyphen = at_++;
        range = kBegun;
        continue;
      }
      ByteSet some;
      unsigned byte = 0;
      const bool single = class_item(flags, quoted, some, byte);
      if (failed()) return set;
      if (range == kBegun) {
        if (!single) {
          invalid(hyphen, "a range of which one end is a class");
        } else if (byte < low) {
          invalid(hyphen, "a range that is out of order");
        }
        if (failed()) return set;
        set.add_range(low, byte);
        range = kNoRange;
        continue;
      }
      if (!single && !quoted && ahead("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        invalid(at_, "a range of which one end is a class");
        return set;
      }
      set.add(some);
      low = byte;
      range = single ? kMayBegin : kNoRange;
    }
    if (flags.nocase) set.fold_case();
    if (negated) set.invert();
    return set;
  }

  /// Whether "[:name:]" or the like begins at a place, by PCRE2's rule; `end` is that of its name.
  bool posix_syntax(size_t at, size_t& end) const {
    if (at + 1 >= text_.size() || text_[at] != '[') return false;
    const char mark = text_[at + 1];
    if (mark != ':' && mark != '.' && mark != '=') return false;
    for (size_t i = at + 2; i + 1 < text_.size(); ++i) {
      if (text_[i] == '\\' && (text_[i + 1] == ']' || text_[i + 1] == '\\')) {
        ++i;
      } else if ((text_[i] == '[' && text_[i + 1] == mark) || text_[i] == ']') {
        return false;
      } else if (text_[i] == mark && text_[i + 1] == ']') {
        end = i;
        return true;
      }
    }
    return false;
  }

  /// One item of a class; true if it is a single byte, which can begin or end a range.
  bool class_item(const RegexFlags& flags, bool quoted, ByteSet& set, unsigned& byte) {
    const size_t position = at_;
    size_t end = 0;
    if (!quoted && posix_syntax(at_, end)) {
      std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
      const bool negated = name.starts_with('^');
      if (negated) name.remove_prefix(1);
      posix(text_[at_ + 1], name, negated, flags, set);
      at_ = end + 2;
      return false;
    }
    if (quoted || text_[at_] != '\\') {
      byte = static_cast<uint8_t>(text_[at_++]);
      set.add(byte);
      return true;
    }
    if (at_ + 1 >= text_.size()) {
      invalid(at_, "a \\ at the end");
      return false;
    }
    const char c = text_[at_ + 1];
    if (class_escape(c, set)) {
      at_ += 2;
      return false;
    }
    if (c == 'b') {
      at_ += 2;
      byte = 8;
    } else if (c == 'p' || c == 'P') {
      // Wider than any property.
      not_regular(position, "a Unicode property");
      verb_ = true;
      at_ += 2;
      if (take("{")) {
        const size_t end = text_.find('}', at_);
        if (end == std::string_view::npos) {
          invalid(position, "a property without its }");
        } else {
          at_ = end + 1;
        }
      } else if (at_ < text_.size()) {
        ++at_;
      }
      return false;
    } else if (c == '8' || c == '9') {
      invalid(position, fmt::format("an unknown escape \\{} in a class", c));
      return false;
    } else if (!escaped_byte(byte)) {
      return false;
    }
    set.add(byte);
    return true;
  }

  void posix(char mark, std::string_view name, bool negated, const RegexFlags& flags, ByteSet& set) {
    if (mark != ':') return invalid(at_, "POSIX collating elements are not supported");
    if (flags.nocase && (name == "upper" || name == "lower")) name = "alpha";
    for (const PosixClass& known : kPosixClasses) {
      if (known.name != name) continue;
      ByteSet bytes = known.bytes;
      if (negated) bytes.invert();
      set.add(bytes);
      return;
    }
    invalid(at_, fmt::format("an unknown POSIX class '{}'", name));
  }

  std::string_view text_;
  RegexSyntax& syntax_;
  RegexProblem problem_;
  size_t at_ = 0;
  uint32_t captures_ = 0;    // groups that began so far
  bool quoted_ = false;      // between \Q and \E
  bool repeatable_ = false;  // the item just read can have a quantifier
  bool verb_ = false;        // no part of the tree can be relied on
};

bool nullable(const RegexSyntax& syntax, uint32_t at) {
  const RegexNode& node = syntax.nodes[at];
  switch (node.kind) {
    case Kind::kBytes:
      return false;
    case Kind::kAssertion:
      return true;
    case Kind::kSequence:
      for (const uint32_t child : node.children) {
        if (!nullable(syntax, child)) return false;
      }
      return true;
    case Kind::kAlternation:
      for (const uint32_t child : node.children) {
        if (nullable(syntax, child)) return true;
      }
      return false;
    case Kind::kRepeat:
      return node.min == 0 || nullable(syntax, node.children[0]);
  }
  return true;
}

}  // namespace

bool RegexSyntax::can_be_empty() const { return nullable(*this, root); }

RegexProblem parse_regex(std::string_view text, RegexFlags flags, RegexSyntax& syntax) {
  return Parser(text, syntax).parse(flags);
}

}  // namespace headrace
