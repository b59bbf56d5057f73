#include "headrace/bandwidth.hh"

#include "base/characters.hh"
#include "base/decimal.hh"

namespace headrace {
namespace {

struct Unit {
  std::string_view name;
  uint64_t divisor;
};
constexpr Unit kUnits[] = {{"baud", 8}, {"bps", 8}, {"b/s", 8}, {"Bps", 1}, {"B/s", 1}};

struct Prefix {
  std::string_view name;
  int power10;
  uint64_t factor;
};
constexpr Prefix kPrefixes[] = {
    {"Ki", 0, uint64_t{1} << 10},
    {"Mi", 0, uint64_t{1} << 20},
    {"Gi", 0, uint64_t{1} << 30},
    {"Ti", 0, uint64_t{1} << 40},
    {"k", 3, 1},
    {"K", 3, 1},
    {"M", 6, 1},
    {"G", 9, 1},
    {"T", 12, 1},
};

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::string Bandwidth::unparse() const {
  // From here on the number of bits would not fit; whole megabits of so large a number are exact enough.
  if (bytes_per_second > UINT64_MAX / 8) return unparse_decimal(bytes_per_second / 125000, 3) + "Gbps";
  const uint64_t bits = bytes_per_second * 8;
  if (bits >= 1000000000) return unparse_decimal(bits, 9) + "Gbps";
  if (bits >= 1000000) return unparse_decimal(bits, 6) + "Mbps";
  return unparse_decimal(bits, 3) + "kbps";
}

BandwidthStatus parse(std::string_view text, Bandwidth& out) {
  DecimalScale scale;
  for (const Unit& unit : kUnits)
    if (take_suffix(text, unit.name)) {
      scale.divisor = unit.divisor;
      break;
    }
  for (const Prefix& prefix : kPrefixes)
    if (take_suffix(text, prefix.name)) {
      scale.power10 = prefix.power10;
      scale.factor = prefix.factor;
      break;
    }
  while (!text.empty() && lang::is_space(text.back())) text.remove_suffix(1);
  Decimal value;
  switch (parse_decimal(text, scale, false, value)) {
    case DecimalStatus::kOk:
      out.bytes_per_second = value.magnitude;
      return BandwidthStatus::kOk;
    case DecimalStatus::kOutOfRange:
      return BandwidthStatus::kOutOfRange;
    case DecimalStatus::kInvalid:
      break;
  }
  return BandwidthStatus::kInvalid;
}

}  // namespace headrace
