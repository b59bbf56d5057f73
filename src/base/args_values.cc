/// The parse functions and parser objects of <headrace/args.hh>, apart from addresses.

#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/argument_text.hh"
#include "base/characters.hh"
#include "base/decimal.hh"
#include "headrace/args.hh"
#include "headrace/packet.hh"

namespace headrace {
namespace {

constexpr int kMaxBase = 36;

int digit_value(char c) {
  if (lang::is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return kMaxBase;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Takes the sign and the prefix that tells the base off an integer's text. Returns whether it is negative.
bool take_integer_prefix(std::string_view& text, bool is_signed, int& base) {
  const bool negative = is_signed && text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const char second = text.size() > 2 && text[0] == '0' ? lower(text[1]) : '\0';
  if ((base == 0 || base == 16) && second == 'x') {
    base = 16;
    text.remove_prefix(2);
  } else if (base == 0 && second == 'b') {
    base = 2;
    text.remove_prefix(2);
  } else if (base == 0) {
    base = text.starts_with('0') ? 8 : 10;
  }
  return negative;
}

enum class DigitsStatus { kOk, kInvalid, kOverflow };

/// Digits with single underscores between them.
DigitsStatus read_digits(std::string_view text, int base, uint64_t& value) {
  value = 0;
  bool overflow = false, after_digit = false;
  for (const char c : text) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const int digit = digit_value(c);
    if (digit >= base) return DigitsStatus::kInvalid;
    overflow |= __builtin_mul_overflow(value, static_cast<uint64_t>(base), &value);
    overflow |= __builtin_add_overflow(value, static_cast<uint64_t>(digit), &value);
    after_digit = true;
  }
  if (!after_digit) return DigitsStatus::kInvalid;
  return overflow ? DigitsStatus::kOverflow : DigitsStatus::kOk;
}

/// Unquoted text of what must be one word.
bool parse_string(std::string_view text, std::string& out, const ArgContext& context) {
  std::string_view rest = text;
  if (text.empty() || lang::take_word(rest).size() != text.size())
    return context.expect("one word, or text in quotation marks");
  out = lang::unquote(text);
  return true;
}

struct TimeUnit {
  std::string_view name;
  int power10;
  uint64_t factor;
};
// A name stands before every shorter one that it ends in.
constexpr TimeUnit kTimeUnits[] = {
    {"nsec", -9, 1}, {"usec", -6, 1}, {"msec", -3, 1},   {"sec", 0, 1},   {"ns", -9, 1},
    {"us", -6, 1},   {"ms", -3, 1},   {"s", 0, 1},       {"min", 0, 60},  {"m", 0, 60},
    {"hr", 0, 3600}, {"h", 0, 3600},  {"day", 0, 86400}, {"d", 0, 86400},
};

bool parse_nanoseconds(std::string_view text, bool allow_negative, int64_t& out, const ArgContext& context) {
  DecimalScale scale;
  for (const TimeUnit& unit : kTimeUnits)
    if (text.ends_with(unit.name)) {
      scale.power10 = unit.power10;
      scale.factor = unit.factor;
      text.remove_suffix(unit.name.size());
      while (!text.empty() && lang::is_space(text.back())) text.remove_suffix(1);
      break;
    }
  scale.power10 += 9;
  Decimal value;
  const DecimalStatus status = parse_decimal(text, scale, allow_negative, value);
  if (status == DecimalStatus::kInvalid) return context.expect("a time, such as 1.5 (seconds), 20ms or 3h");
  if (status == DecimalStatus::kOutOfRange || value.magnitude > static_cast<uint64_t>(INT64_MAX))
    return context.error("out of range");
  const int64_t ns = static_cast<int64_t>(value.magnitude);
  out = value.negative ? -ns : ns;
  return true;
}

/// The home directory that `~` or `~user` stands for, or nothing.
std::optional<std::string> home_directory(const std::string& tilde) {
  if (tilde.size() == 1) {
    const char* home = std::getenv("HOME");
    return home ? std::optional<std::string>(home) : std::nullopt;
  }
  passwd entry, *result = nullptr;
  char buffer[4096];
  if (getpwnam_r(tilde.c_str() + 1, &entry, buffer, sizeof buffer, &result) != 0 || !result || !result->pw_dir)
    return std::nullopt;
  return std::string(result->pw_dir);
}

/// A name or offset as a place in the annotation area.
std::optional<AnnotationRange> find_annotation_range(std::string_view text, const ArgContext& context) {
  if (context.scope())
    if (const auto range = context.scope()->find_annotation(text)) return range;
  if (const auto range = find_builtin_annotation(text)) return range;
  uint8_t offset;
  if (!parse_argument(text, offset, ArgContext())) return std::nullopt;
  return AnnotationRange{offset, 0};
}

bool fits(const AnnotationRange& range, int size) {
  return range.offset >= 0 && range.offset + std::max(size, 1) <= static_cast<int>(Packet::kAnnoSize);
}

}  // namespace

namespace detail {

bool parse_integer(std::string_view text, int base, int64_t min, uint64_t max, uint64_t& out,
                   const ArgContext& context) {
  const bool negative = take_integer_prefix(text, min < 0, base);
  uint64_t magnitude;
  const DigitsStatus status = read_digits(text, base, magnitude);
  if (status == DigitsStatus::kInvalid) return context.error("expected an integer");
  const uint64_t limit = negative ? uint64_t{0} - static_cast<uint64_t>(min) : max;
  if (status == DigitsStatus::kOverflow || magnitude > limit)
    return negative ? context.error("out of range, bound {}", min) : context.error("out of range, bound {}", max);
  out = negative ? uint64_t{0} - magnitude : magnitude;
  return true;
}

bool parse_annotation(std::string_view text, int size, int& offset, const ArgContext& context) {
  const auto range = find_annotation_range(text, context);
  if (!range || (range->size != 0 && range->size != size) || !fits(*range, size))
    return context.expect("an annotation of this size, by name or offset");
  offset = range->offset;
  return true;
}

std::vector<std::string> words_of(std::string_view text) { return lang::split_words(text); }

std::string_view class_name_of(std::string_view pretty_function) {
  const size_t equals = pretty_function.find("T = ");
  if (equals == std::string_view::npos) return pretty_function;
  std::string_view name = pretty_function.substr(equals + 4);
  name = name.substr(0, name.find_first_of(";]"));
  const size_t arguments = name.find('<');
  const size_t colons = name.substr(0, arguments).rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace detail

std::string Interval::unparse() const {
  if (ns == 0 || ns >= 1000000000) return unparse_decimal(static_cast<uint64_t>(ns), 9) + "s";
  if (ns % 1000000 == 0) return fmt::format("{}ms", ns / 1000000);
  if (ns % 1000 == 0) return fmt::format("{}us", ns / 1000);
  return fmt::format("{}ns", ns);
}

bool parse_argument(std::string_view text, bool& out, const ArgContext& context) {
  for (const std::string_view word : {"0", "false", "no", "f", "n"})
    if (text == word) {
      out = false;
      return true;
    }
  for (const std::string_view word : {"1", "true", "yes", "t", "y"})
    if (text == word) {
      out = true;
      return true;
    }
  return context.expect("true or false");
}

bool parse_argument(std::string_view text, double& out, const ArgContext& context) {
  // strtod() skips space in front.
  if (text.empty() || lang::is_space(text[0])) return context.expect("a number");
  const std::string terminated(text);
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(terminated.c_str(), &end);
  if (end != terminated.c_str() + terminated.size()) return context.expect("a number");
  if (errno == ERANGE)
    return value == 0 || std::abs(value) < 1 ? context.error("underflow, rounded to {:g}", value)
                                             : context.error("out of range, bound {:g}", value);
  out = value;
  return true;
}

bool parse_argument(std::string_view text, std::string& out, const ArgContext& context) {
  return parse_string(text, out, context);
}

bool parse_argument(std::string_view text, Interval& out, const ArgContext& context) {
  return parse_nanoseconds(text, false, out.ns, context);
}

bool parse_argument(std::string_view text, Timestamp& out, const ArgContext& context) {
  return parse_nanoseconds(text, false, out.ns, context);
}

bool parse_argument(std::string_view text, Bandwidth& out, const ArgContext& context) {
  const BandwidthStatus status = parse(text, out);
  if (status == BandwidthStatus::kOk) return true;
  return status == BandwidthStatus::kOutOfRange ? context.error("out of range")
                                                : context.expect("a rate, such as 1500 (bytes a second) or 10Mbps");
}

bool parse_argument(std::string_view text, AnnotationRange& out, const ArgContext& context) {
  const auto range = find_annotation_range(text, context);
  if (!range || !fits(*range, range->size)) return context.expect("an annotation, by name or offset");
  out = *range;
  return true;
}

bool parse_argument(std::string_view text, Element*& out, const ArgContext& context) {
  std::string name;
  Element* element = nullptr;
  if (context.scope() && parse_string(text, name, context)) element = context.scope()->find_element(name);
  if (!element) return context.error("does not name an element");
  out = element;
  return true;
}

bool AnyArg::parse(std::string_view text, std::string& out, const ArgContext&) const {
  out = text;
  return true;
}

bool WordArg::parse(std::string_view text, std::string& out, const ArgContext& context) const {
  std::string word;
  if (!parse_string(text, word, context) || !lang::is_word(word)) return context.expect("one word");
  out = std::move(word);
  return true;
}

std::string NameScope::find_file(std::string_view name) const { return std::string(name); }

bool InputFile::parse(std::string_view text, std::string& out, const ArgContext& context) const {
  if (!FileName{}.parse(text, out, context)) return false;
  if (context.scope()) out = context.scope()->find_file(out);
  return true;
}

bool FileName::parse(std::string_view text, std::string& out, const ArgContext& context) const {
  std::string name;
  if (!parse_string(text, name, context) || name.empty()) return context.expect("the name of a file");
  if (name[0] == '~') {
    const size_t slash = std::min(name.find('/'), name.size());
    if (const auto home = home_directory(name.substr(0, slash))) name.replace(0, slash, *home);
  }
  name.erase(std::unique(name.begin(), name.end(), [](char a, char b) { return a == '/' && b == '/'; }), name.end());
  out = std::move(name);
  return true;
}

bool HandlerName::parse(std::string_view text, std::string& out, const ArgContext& context) const {
  std::string name;
  if (!parse_string(text, name, context) || !lang::is_word(name) || name.ends_with('.'))
    return context.error("expected the name of a handler");
  out = std::move(name);
  return true;
}

bool TcpUdpPort::parse(std::string_view text, uint16_t& out, const ArgContext& context) const {
  std::optional<uint16_t> named;
  if (context.scope()) named = context.scope()->find_port(text, protocol);
  if (!named) named = find_service(text, protocol);
  if (named) {
    out = *named;
    return true;
  }
  uint32_t number;
  if (!parse_argument(text, number, ArgContext())) return context.expect("a port, by number or name");
  if (number > UINT16_MAX) return context.error("overflow, range 0-65535");
  out = static_cast<uint16_t>(number);
  return true;
}

bool IpProtocol::parse(std::string_view text, uint8_t& out, const ArgContext& context) const {
  if (const auto named = find_ip_protocol(text)) {
    out = *named;
    return true;
  }
  return parse_argument(text, out, context);
}

bool SignedTime::parse(std::string_view text, Timestamp& out, const ArgContext& context) const {
  return parse_nanoseconds(text, true, out.ns, context);
}

}  // namespace headrace
