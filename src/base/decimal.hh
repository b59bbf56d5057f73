#pragma once
/// \file
/// Real numbers in arguments, read exactly: a binary fraction would turn 0.1 s into 99999999.99 ns.

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

/// What a number is multiplied with: 10^power10 * factor / divisor. `factor` is at most 2^40, `divisor` at most 8.
struct DecimalScale {
  int power10 = 0;
  uint64_t factor = 1;
  uint64_t divisor = 1;
};

struct Decimal {
  bool negative = false;
  uint64_t magnitude = 0;
};

enum class DecimalStatus { kOk, kInvalid, kOutOfRange };

/// Reads all of `text` as a decimal number with optional fraction and exponent ("1_000.5e-3"), scales it, and rounds to
/// the nearest whole number, halves away from zero. A minus sign is kInvalid unless `allow_negative`.
DecimalStatus parse_decimal(std::string_view text, const DecimalScale& scale, bool allow_negative, Decimal& out);

/// The number value / 10^digits without trailing zeros: unparse_decimal(1500, 3) is "1.5".
std::string unparse_decimal(uint64_t value, int digits);

}  // namespace headrace
