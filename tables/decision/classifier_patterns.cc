#include "tables/decision/classifier_patterns.hh"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/text.hh"

namespace headrace {

namespace {

using decision::Expression;
using decision::Test;

/// Frames are at most 64 KiB long.
constexpr uint32_t kOffsetLimit = 65536 - 4;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A byte written in two digits: its bits, and which of them are given.
struct Byte {
  uint8_t bits;
  uint8_t given;
};

Byte read_byte(std::string_view digits) {
  Byte byte{0, 0};
  for (int i = 0; i < 2; ++i) {
    const int digit = hex_digit(digits[i]);
    const int shift = i == 0 ? 4 : 0;
    if (digit < 0) continue;
    byte.bits |= static_cast<uint8_t>(digit << shift);
    byte.given |= static_cast<uint8_t>(0xf << shift);
  }
  return byte;
}

class PatternParser {
 public:
  PatternParser(std::string_view text, size_t number, Errors& errors) : rest_(text), number_(number), errors_(errors) {}

  /// The pattern, or nothing after an error.
  std::optional<Expression> parse() {
    if (rest_ == "-") return Expression();
    std::vector<Expression> clauses;
    for (skip_space(); !rest_.empty(); skip_space()) {
      if (!parse_clause(clauses)) return std::nullopt;
    }
    return ok_ ? std::optional(Expression::all(std::move(clauses))) : std::nullopt;
  }

 private:
  template <typename... A>
  void error(fmt::format_string<A...> format, A&&... args) {
    (void)errors_.error("pattern {}: {}", number_, fmt::format(format, std::forward<A>(args)...));
    ok_ = false;
  }

  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take_hex() {
    size_t length = 0;
    while (length < rest_.size() && (rest_[length] == '?' || hex_digit(rest_[length]) >= 0)) ++length;
    const std::string_view digits = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return digits;
  }

  /// Reads one clause. False if the rest of the pattern cannot be read.
  bool parse_clause(std::vector<Expression>& clauses) {
    const bool negated = take('!');
    if (negated) skip_space();
    if (rest_.empty() || !is_digit(rest_.front())) {
      error("expected a digit");
      return false;
    }
    uint64_t offset = 0;
    while (!rest_.empty() && is_digit(rest_.front())) {
      if (offset < kOffsetLimit) offset = 10 * offset + static_cast<uint64_t>(rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (!take('/')) {
      error("expected '/'");
      return false;
    }
    const std::string_view value = take_hex();
    std::optional<std::string_view> mask;
    if (take('%')) mask = take_hex();

    if (value.size() < 2) {
      error("value has less than 2 hex digits");
    } else if (value.size() % 2 != 0) {
      error("value has odd number of hex digits");
    } else if (mask && mask->size() != value.size()) {
      error("mask has too {} hex digits", mask->size() > value.size() ? "many" : "few");
    } else if (offset + value.size() / 2 > kOffsetLimit) {
      error("offset out of range, bound {}", kOffsetLimit);
    } else {
      clauses.push_back(words(static_cast<uint32_t>(offset), value, mask));
      if (negated) clauses.back().negate();
    }
    return true;
  }

  static Expression words(uint32_t offset, std::string_view value, std::optional<std::string_view> mask) {
    std::vector<Expression> tests;
    Test test;
    for (size_t i = 0; i < value.size(); i += 2, ++offset) {
      Byte byte = read_byte(value.substr(i, 2));
      if (mask) {
        const Byte masked = read_byte(mask->substr(i, 2));
        byte.given &= masked.bits & masked.given;
        byte.bits &= byte.given;
      }
      if (i == 0 || offset % 4 == 0) {
        if (i != 0) tests.emplace_back(test);
        test = Test{};
        test.offset = static_cast<uint16_t>(offset / 4 * 4);
      }
      const int shift = 24 - 8 * static_cast<int>(offset % 4);
      test.value |= static_cast<uint32_t>(byte.bits) << shift;
      test.mask |= static_cast<uint32_t>(byte.given) << shift;
    }
    tests.emplace_back(test);
    return Expression::all(std::move(tests));
  }

  std::string_view rest_;
  size_t number_;
  Errors& errors_;
  bool ok_ = true;
};

}  // namespace

Status compile_classifier(std::span<const std::string> patterns, Errors& errors, DecisionProgram& program) {
  Status status;
  decision::Graph graph(decision::kFailure);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const std::optional<Expression> pattern = PatternParser(patterns[i], i, errors).parse();
    if (!pattern) {
      status &= Status::failed();
      continue;
    }
    graph.otherwise(decision::Graph(*pattern, decision::to_output(static_cast<int>(i)), decision::kFailure));
  }
  if (!status) return status;
  graph.set_failure(decision::kNever);
  graph.optimize(false);
  program = DecisionProgram(std::move(graph), DecisionProgram::Space::kFrame);
  return status;
}

}  // namespace headrace
