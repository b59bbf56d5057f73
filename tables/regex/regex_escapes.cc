// Escapes, and classes in brackets.

#include <fmt/format.h>

#include "headrace/text.hh"
#include "tables/regex/named_bytes.hh"
#include "tables/regex/regex_parser.hh"

namespace headrace {

namespace {

using named_bytes::bytes_of;
using named_bytes::kAlnum;
using named_bytes::kAlpha;
using named_bytes::kDigits;
using named_bytes::kHorizontal;
using named_bytes::kLower;
using named_bytes::kPunct;
using named_bytes::kSpace;
using named_bytes::kUpper;
using named_bytes::kVertical;
using named_bytes::kWord;
using named_bytes::range_of;
using named_bytes::union_of;

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

}  // namespace

uint32_t RegexParser::escape(const RegexFlags& flags) {
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

uint32_t RegexParser::named_reference(size_t position) {
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

bool RegexParser::escaped_byte(unsigned& byte) {
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

ByteSet RegexParser::bracketed(const RegexFlags& flags) {
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

bool RegexParser::posix_syntax(size_t at, size_t& end) const {
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

bool RegexParser::class_item(const RegexFlags& flags, bool quoted, ByteSet& set, unsigned& byte) {
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

void RegexParser::posix(char mark, std::string_view name, bool negated, const RegexFlags& flags, ByteSet& set) {
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

}  // namespace headrace
