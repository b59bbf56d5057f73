#include "base/decimal.hh"

#include <fmt/core.h>

#include <algorithm>

#include "base/characters.hh"

namespace headrace {
namespace {

using lang::is_digit;

__extension__ using Wide = unsigned __int128;

// With at most 25 digits, times a factor of up to 2^40, a mantissa stays below 2^124.
constexpr int kMaxDigits = 25;
// Far beyond every result that differs from zero and from overflow.
constexpr int kMaxExponent = 100000;

struct Number {
  bool negative = false;
  Wide mantissa = 0;
  int exponent = 0;
};

/// Whether an underscore at `at` stands between two digits.
bool is_digit_separator(std::string_view text, size_t at) {
  return text[at] == '_' && at > 0 && is_digit(text[at - 1]) && at + 1 < text.size() && is_digit(text[at + 1]);
}

bool read_exponent(std::string_view text, int& exponent) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return false;
  int value = 0;
  for (const char c : text) value = std::min(value * 10 + (c - '0'), kMaxExponent);
  exponent += negative ? -value : value;
  return true;
}

bool read_number(std::string_view text, bool allow_negative, Number& out) {
  if (!text.empty() && (text[0] == '+' || (allow_negative && text[0] == '-'))) {
    out.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  bool seen_digit = false, seen_point = false;
  int significant = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      seen_digit = true;
      if (significant < kMaxDigits) {
        out.mantissa = out.mantissa * 10 + static_cast<unsigned>(c - '0');
        if (out.mantissa != 0) ++significant;
        if (seen_point) --out.exponent;
      } else if (!seen_point) {
        ++out.exponent;
      }
    } else if (c == '.' && !seen_point) {
      seen_point = true;
    } else if ((c == 'e' || c == 'E') && seen_digit) {
      return read_exponent(text.substr(at + 1), out.exponent);
    } else if (!is_digit_separator(text, at)) {
      return false;
    }
  }
  return seen_digit;
}

}  // namespace

DecimalStatus parse_decimal(std::string_view text, const DecimalScale& scale, bool allow_negative, Decimal& out) {
  Number number;
  if (!read_number(text, allow_negative, number)) return DecimalStatus::kInvalid;
  Wide value = number.mantissa * scale.factor;
  int exponent = number.exponent + scale.power10;
  for (; exponent > 0 && value != 0; --exponent) {
    if (value > Wide{UINT64_MAX} * scale.divisor) return DecimalStatus::kOutOfRange;
    value *= 10;
  }
  Wide divisor = scale.divisor;
  for (; exponent < 0 && value != 0; ++exponent) {
    // The next divisor would be at least 2^127, the value is below 2^124: the quotient rounds to zero.
    if (divisor > ~Wide{0} / 20) {
      value = 0;
      break;
    }
    divisor *= 10;
  }
  value = value / divisor + (value % divisor * 2 >= divisor ? 1 : 0);
  if (value > UINT64_MAX) return DecimalStatus::kOutOfRange;
  out.negative = number.negative;
  out.magnitude = static_cast<uint64_t>(value);
  return DecimalStatus::kOk;
}

std::string unparse_decimal(uint64_t value, int digits) {
  uint64_t one = 1;
  for (int i = 0; i < digits; ++i) one *= 10;
  std::string text = std::to_string(value / one);
  if (const uint64_t fraction = value % one) {
    text += fmt::format(".{:0{}}", fraction, digits);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text;
}

}  // namespace headrace
