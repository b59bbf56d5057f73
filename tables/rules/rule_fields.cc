#include "tables/rules/rule_fields.hh"

#include <fmt/core.h>

#include <algorithm>
#include <headrace/args.hh>

#include "tables/rules/rule_text.hh"

namespace headrace::rules {

namespace {

using Compare = FieldTest::Compare;

struct NumberOption {
  std::string_view name;
  Field field;
  uint32_t most;
};
constexpr NumberOption kNumbers[] = {
    {"dsize", Field::kPayloadLength, 65535},
    {"ttl", Field::kTtl, 255},
    {"tos", Field::kTos, 255},
    {"id", Field::kIpId, 65535},
    {"fragoffset", Field::kFragmentOffset, 8191},
    {"seq", Field::kTcpSequence, UINT32_MAX},
    {"ack", Field::kTcpAcknowledgment, UINT32_MAX},
    {"window", Field::kTcpWindow, 65535},
    {"itype", Field::kIcmpType, 255},
    {"icode", Field::kIcmpCode, 255},
    {"icmp_id", Field::kIcmpId, 65535},
    {"icmp_seq", Field::kIcmpSequence, 65535},
};

constexpr std::string_view kOthers[] = {"ip_proto", "flags", "fragbits", "ipopts", "sameip"};

const NumberOption* find_number(std::string_view name) {
  const auto* const at =
      std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const auto& o) { return o.name == name; });
  return at == std::end(kNumbers) ? nullptr : at;
}

/// Decimal, or hexadecimal as 0x1f or x1f.
std::optional<uint32_t> value_of(std::string_view text, uint32_t most) {
  text = trimmed(text);
  const size_t x =
      text.starts_with("0x") || text.starts_with("0X") ? 2 : text.starts_with('x') || text.starts_with('X');
  if (x == 0) return whole_number<uint32_t>(text, most);
  text.remove_prefix(x);
  return whole_number(text, most, 16);
}

/// N, !N, <N, >N, <=N, >=N, A<>B (without A and B), A<=>B and A-B (with them). Nothing can be above `most`.
bool read_number(std::string_view text, uint32_t most, FieldTest& test) {
  const auto set = [&](uint32_t a, uint32_t b) {
    test.a = a;
    test.b = b;
    return a <= b;
  };
  const auto between = [&](size_t at, size_t length, uint32_t inside) {
    const auto a = value_of(text.substr(0, at), most), b = value_of(text.substr(at + length), most);
    return a && b && *b > *a && set(*a + inside, *b - inside);
  };
  if (const size_t at = text.find("<=>"); at != std::string_view::npos) return between(at, 3, 0);
  if (const size_t at = text.find("<>"); at != std::string_view::npos) return between(at, 2, 1);
  const auto starts = [&](std::string_view mark) {
    if (!text.starts_with(mark)) return false;
    text.remove_prefix(mark.size());
    return true;
  };
  std::optional<uint32_t> v;
  if (starts("<=")) return (v = value_of(text, most)) && set(0, *v);
  if (starts(">=")) return (v = value_of(text, most)) && set(*v, most);
  if (starts("<")) return (v = value_of(text, most)) && *v > 0 && set(0, *v - 1);
  if (starts(">")) return (v = value_of(text, most)) && *v < most && set(*v + 1, most);
  if (starts("!")) {
    starts("=");
    test.compare = Compare::kNotWithin;
  } else {
    starts("=");
  }
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) return between(dash, 1, 0);
  return (v = value_of(text, most)) && set(*v, *v);
}

/// Letters that stand for bits, with one of + (all of them, and others), * (any of them), ! (not all of them) before or
/// behind; without it, exactly these of those in `mask`.
bool read_bits(std::string_view text, std::string_view letters, const uint8_t* bits, uint32_t mask, FieldTest& test) {
  char how = 0;
  uint32_t wanted = 0;
  bool some = false;
  for (const char c : text) {
    if (is_blank(c)) continue;
    if (c == '+' || c == '*' || c == '!') {
      if (how != 0) return false;
      how = c;
      continue;
    }
    some = true;
    if (c == '0') continue;
    const size_t at = letters.find(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
    if (at == std::string_view::npos) return false;
    wanted |= bits[at];
  }
  if (!some) return false;
  test.a = wanted;
  test.b = mask;
  switch (how) {
    case '+':
      test.compare = Compare::kAllBits;
      break;
    case '*':
      test.compare = Compare::kAnyBits;
      break;
    case '!':
      // "not 0": some bit is set.
      test.compare = wanted == 0 ? Compare::kAnyBits : Compare::kNotAllBits;
      if (wanted == 0) test.a = mask;
      break;
    default:
      test.compare = Compare::kEqualBits;
      // What the mask leaves out cannot be asked for.
      test.a &= mask;
  }
  return true;
}

bool read_tcp_flags(std::string_view text, FieldTest& test) {
  static constexpr std::string_view kLetters = "FSRPAUEC21";
  static constexpr uint8_t kBits[] = {1, 2, 4, 8, 16, 32, 64, 128, 64, 128};
  uint32_t mask = 0xff;
  const std::string_view wanted = take_until(text, ',');
  if (!text.empty()) {
    FieldTest ignored{};
    if (!read_bits(trimmed(text), kLetters, kBits, 0xff, ignored) || ignored.compare != Compare::kEqualBits)
      return false;
    mask = ~ignored.a & 0xff;
  }
  return read_bits(wanted, kLetters, kBits, mask, test);
}

bool read_ip_options(std::string_view name, FieldTest& test) {
  static constexpr std::pair<std::string_view, uint32_t> kNames[] = {
      {"rr", kOptionRecordRoute},  {"eol", kOptionEnd},          {"nop", kOptionNop},
      {"ts", kOptionTimestamp},    {"sec", kOptionSecurity},     {"esec", kOptionExtendedSecurity},
      {"lsrr", kOptionLooseRoute}, {"lsrre", kOptionLooseRoute}, {"ssrr", kOptionStrictRoute},
      {"satid", kOptionStreamId},  {"cipso", kOptionCipso},      {"rtralt", kOptionRouterAlert},
      {"qs", kOptionQuickStart},   {"any", ~uint32_t{0}},
  };
  for (const auto& [known, bits] : kNames) {
    if (!same_word(known, name)) continue;
    test.compare = Compare::kAnyBits;
    test.a = test.b = bits;
    return true;
  }
  return false;
}

}  // namespace

bool is_field_option(std::string_view name) {
  return find_number(name) || std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

bool read_field_option(std::string_view name, std::string_view value, std::vector<FieldTest>& tests,
                       std::string& error) {
  FieldTest test{};
  bool good = false;
  if (const NumberOption* option = find_number(name)) {
    test.field = option->field;
    good = read_number(value, option->most, test);
  } else if (name == "ip_proto") {
    test.field = Field::kIpProtocol;
    std::string_view protocol = value;
    const char mark = protocol.empty() ? '\0' : protocol.front();
    if (mark == '!' || mark == '<' || mark == '>') protocol = trimmed(protocol.substr(1));
    if (const auto known = whole_number<uint32_t>(protocol) ? std::nullopt : find_ip_protocol(protocol)) {
      good = read_number(
          (mark == '!' || mark == '<' || mark == '>' ? std::string(1, mark) : "") + std::to_string(*known), 255, test);
    } else {
      good = read_number(value, 255, test);
    }
  } else if (name == "flags") {
    test.field = Field::kTcpFlags;
    good = read_tcp_flags(value, test);
  } else if (name == "fragbits") {
    static constexpr uint8_t kBits[] = {1, 2, 4};
    test.field = Field::kFragmentBits;
    good = read_bits(value, "MDR", kBits, 7, test);
  } else if (name == "ipopts") {
    test.field = Field::kIpOptions;
    good = read_ip_options(value, test);
  } else if (name == "sameip") {
    test = {Field::kSameAddresses, Compare::kWithin, 1, 1};
    good = value.empty();
  }
  if (!good) {
    error = fmt::format("{}: bad value '{}'", name, value);
    return false;
  }
  tests.push_back(test);
  return true;
}

}  // namespace headrace::rules
